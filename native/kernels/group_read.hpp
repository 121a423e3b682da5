// Columns as vectors of machine words: how tables see keys and arguments.
//
// Rule: one canonical 64-bit form per value. Integers, dates, times and short decimals are extended to 64
// bits, booleans are 0 or 1, floats are the bits of the double with one zero and one NaN; wide decimals are
// two words, the lower first. So equal values have equal words, and loops exist once, not once per type.
// Words of NULL rows are garbage.
#pragma once

#include <bit>
#include <cstdint>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "kernels/group_text.hpp"

namespace bireme {

constexpr bool is_float(Kind kind) {
  return kind == Kind::Float32 || kind == Kind::Float64;
}

// Whether values have a canonical form of one word.
constexpr bool is_word(Kind kind) {
  return kind == Kind::Bool || (width_of(kind) > 0 && width_of(kind) <= 8);
}

// Whether values have a canonical form at all, and so can be keys, compared and kept. Intervals are equal by
// more than their bits.
constexpr bool is_canonical(Kind kind) {
  return is_word(kind) || kind == Kind::Decimal128 || kind == Kind::Null || is_string(kind);
}

inline constexpr uint64_t kNanBits = 0x7ff8000000000000ULL;

inline uint64_t canonical_bits(double value) {
  if (value != value) return kNanBits;
  return std::bit_cast<uint64_t>(value + 0.0);  // -0.0 + 0.0 is 0.0
}

// Turns canonical words of a type into ones that order as signed integers, and back (its own inverse).
inline uint64_t order_word(Kind kind, uint64_t word) {
  if (is_float(kind)) return word ^ (static_cast<uint64_t>(static_cast<int64_t>(word) >> 63) >> 1);
  if (kind == Kind::UInt64) return word ^ (uint64_t{1} << 63);
  return word;
}

// Fills `words` for rows [begin, begin + rows) of a column with is_word(kind) that is not dictionary-encoded.
void read_words(const Column& column, int64_t begin, int64_t rows, uint64_t* words);

// The words where they lie if the column has them in canonical form, else filled into `scratch`.
const uint64_t* words_of(const Column& column, int64_t begin, int64_t rows, uint64_t* scratch);

// Fills `valid` with 1 or 0 per row; returns whether any is 0. Rows are looked at only if the column may have
// NULLs.
bool read_validity(const Column& column, int64_t begin, int64_t rows, uint8_t* valid);

// The value of a string column that is not dictionary-encoded.
inline Text text_at(const Column& column, int64_t row) {
  const int32_t begin = column.offsets[row];
  return text_over(column.as<char>() + begin, static_cast<uint32_t>(column.offsets[row + 1] - begin));
}

// The reverse: columns from canonical words (two per value for Decimal128). `valid` has a byte per row or is
// null.
OutputColumn column_of_words(const Type& type, Buffer words, const uint8_t* valid, int64_t rows);

// Throws Unsupported where the bytes exceed what 32-bit offsets reach.
OutputColumn column_of_texts(const Type& type, const Text* texts, const uint8_t* valid, int64_t rows);

OutputColumn null_column(int64_t rows);

// Sets the validity of a column from a byte per row; null: all valid.
void set_validity(OutputColumn& column, const uint8_t* valid);

}  // namespace bireme
