// The loops of expressions over plain buffers, in tables of function pointers, one table per instruction set.
//
// Rule: no loop looks at validity. Values under NULL are computed like others; what cannot be computed sets
// `bad`, and the caller decides (evaluation.cpp) whether the row was valid. All arithmetic wraps on bad rows,
// never traps.
#pragma once

#include <cstdint>

#include "kernels/dispatch.hpp"
#include "kernels/expression/vector.hpp"

namespace bireme {

enum class Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
inline constexpr int kComparisonCount = 6;

// Which operands are vectors; the other is one value.
enum class Form : uint8_t { VectorVector, VectorConstant, ConstantVector };
inline constexpr int kFormCount = 3;

enum class Arithmetic : uint8_t { Add, Subtract, Multiply };
inline constexpr int kArithmeticCount = 3;

// Writes 1 where a[row] <comparison> b[row]. NaN equals NaN and is above all numbers.
using CompareLoop = void (*)(const void* a, const void* b, uint8_t* out, int64_t rows);

// Writes a[row] op b[row]; returns whether any result left its type (integers) or [-bound, bound] (decimals).
// With `bad`, also writes for each row whether it did.
using ArithmeticLoop = bool (*)(const void* a, const void* b, void* out, uint8_t* bad, int64_t rows,
                                int128 bound);

struct Loops {
  // By Comparison, Physical and Form (VectorVector and VectorConstant only); none for B8's order and Str.
  CompareLoop compare[kComparisonCount][kPhysicalCount][2];
  // By Arithmetic, Physical and Form. Integers: checked by type. Floats: unchecked.
  ArithmeticLoop arithmetic[kArithmeticCount][kPhysicalCount][kFormCount];
  // Decimals in int64: within a bound, or without any check (`exact`, where the types prove that it fits).
  ArithmeticLoop bounded64[kArithmeticCount][kFormCount];
  ArithmeticLoop exact64[kArithmeticCount][kFormCount];
  // Decimals in int128, within a bound.
  ArithmeticLoop bounded128[kArithmeticCount][kFormCount];
  // int64 times int64 as int128, which always fits.
  ArithmeticLoop multiply_wide[kFormCount];

  // out[i] = source[rows[i]] for values of 1, 2, 4, 8 or 16 bytes (index: log2 of the width). `gather` takes
  // ascending rows without repetition (a selection), `look_up` any (codes of a dictionary).
  void (*gather[5])(const void* source, const uint32_t* rows, int64_t count, void* out);
  void (*look_up[5])(const void* source, const uint32_t* rows, int64_t count, void* out);
  // out[i] = mask[i] ? a[i] : b[i]; a and b are advanced by their step (0 for a constant, else 1).
  void (*blend[5])(const uint8_t* mask, const void* a, int64_t a_step, const void* b, int64_t b_step,
                   int64_t count, void* out);

  // Bytes of 0 and 1.
  void (*and_bytes)(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count);
  void (*or_bytes)(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count);
  void (*and_not_bytes)(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count);  // a and not b
  void (*not_bytes)(const uint8_t* a, uint8_t* out, int64_t count);
  int64_t (*count_bytes)(const uint8_t* a, int64_t count);
  // Writes first + i for every i with mask[i], returns how many. `out` has room for `count`.
  int64_t (*select)(const uint8_t* mask, int64_t count, uint32_t first, uint32_t* out);
  // Keeps rows[i] for every i with mask[i], in place, returns how many.
  int64_t (*refine)(const uint8_t* mask, int64_t count, uint32_t* rows);

  // Bitmaps to bytes and back. `unpack` starts at any bit; `pack` at bit 0, zeroing the last byte's unused
  // bits.
  void (*unpack)(const uint8_t* bits, int64_t bit_offset, int64_t count, uint8_t* out);
  void (*pack)(const uint8_t* bytes, int64_t count, uint8_t* bits);
  // out[i] = bit rows[i] + bit_offset.
  void (*gather_bits)(const uint8_t* bits, int64_t bit_offset, const uint32_t* rows, int64_t count,
                      uint8_t* out);
};

namespace baseline {
void fill_compare(Loops& loops);
void fill_arithmetic(Loops& loops);
void fill_rows(Loops& loops);
}  // namespace baseline

#ifdef BIREME_HAS_AVX2
namespace avx2 {
void fill_compare(Loops& loops);
void fill_arithmetic(Loops& loops);
void fill_rows(Loops& loops);
}  // namespace avx2
#endif

// The table of this machine.
const Loops& loops();
// The table of a given instruction set, which the machine must have; for tests.
Loops loops_of(Isa isa);

}  // namespace bireme
