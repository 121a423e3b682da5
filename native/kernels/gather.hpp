// Columns made from rows of others: by row numbers that kernels made themselves, or chunk after chunk.
//
// Rule: row numbers are not checked; they come from kernels, never from outside (take.hpp is for those).
#pragma once

#include <cstdint>
#include <span>

#include "arrow/column.hpp"
#include "arrow/output.hpp"

namespace bireme {

// A row number that gives NULL.
inline constexpr uint32_t kMissingRow = 0xFFFFFFFF;

// Whether columns of this type can be gathered.
constexpr bool can_gather(Kind kind) {
  return kind != Kind::Other;
}

// The values at the rows; of a dictionary column, the codes. `may_miss` says whether some may be kMissingRow.
// Throws Unsupported where text would exceed what 32-bit offsets reach.
OutputColumn gather(const Column& column, const uint32_t* rows, int64_t count, bool may_miss);

// Copies bits [from, from + count) of `source` to `to` on. Other threads may write other bits of `out`, which
// was zeroed.
void copy_bits(const uint8_t* source, int64_t from, int64_t count, uint8_t* out, int64_t to);

}  // namespace bireme
