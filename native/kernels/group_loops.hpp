// The loops of tables that gain from wider vectors, once per instruction set (kernels/dispatch.hpp).
#pragma once

#include <cstdint>

namespace bireme {

struct GroupLoops {
  // The sum (modulo 2^64) of the values; `bits` gets what any of their magnitudes has.
  int64_t (*sum_words)(const int64_t* values, int64_t rows, uint64_t* bits);
  // Widens [low, high] so that all values lie in it.
  void (*extend_range)(const int64_t* values, int64_t rows, int64_t* low, int64_t* high);
  // Bits that any of the magnitudes has, so a bound of all of them.
  uint64_t (*magnitude_bits)(const int64_t* values, int64_t rows);
  // Adds to each place (or, if `first`, sets it to) the code of the value times `stride`: what it is above
  // `base`, plus `shift`. Returns not 0 if any value is outside of [base, base + codes); what its place is
  // then means nothing.
  uint64_t (*add_places)(const uint64_t* values, int64_t rows, uint64_t base, uint64_t codes, uint64_t shift,
                         uint64_t stride, bool first, uint64_t* places);
};

const GroupLoops& group_loops();

}  // namespace bireme
