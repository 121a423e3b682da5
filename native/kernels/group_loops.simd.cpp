// Sums, bounds and places of vectors of words.
#include "kernels/group_loops.hpp"

namespace bireme::BIREME_ISA {

namespace {

int64_t sum_words(const int64_t* __restrict values, int64_t rows, uint64_t* bits) {
  uint64_t sum = 0;
  uint64_t any = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += static_cast<uint64_t>(values[row]);
    any |= static_cast<uint64_t>(values[row] ^ (values[row] < 0 ? int64_t{-1} : int64_t{0}));
  }
  *bits = any;
  return static_cast<int64_t>(sum);
}

void extend_range(const int64_t* __restrict values, int64_t rows, int64_t* low, int64_t* high) {
  int64_t least = *low;
  int64_t greatest = *high;
  for (int64_t row = 0; row < rows; ++row) {
    least = values[row] < least ? values[row] : least;
    greatest = values[row] > greatest ? values[row] : greatest;
  }
  *low = least;
  *high = greatest;
}

uint64_t magnitude_bits(const int64_t* __restrict values, int64_t rows) {
  uint64_t any = 0;
  for (int64_t row = 0; row < rows; ++row) {
    any |= static_cast<uint64_t>(values[row] ^ (values[row] < 0 ? int64_t{-1} : int64_t{0}));
  }
  return any;
}

// Unsigned comparison as signed, of which vectors have an instruction: both sides with their upper bit
// flipped.
uint64_t outside(uint64_t offset, int64_t codes_flipped) {
  return static_cast<int64_t>(offset ^ (uint64_t{1} << 63)) >= codes_flipped ? 1 : 0;
}

uint64_t add_places(const uint64_t* __restrict values, int64_t rows, uint64_t base, uint64_t codes,
                    uint64_t shift, uint64_t stride, bool first, uint64_t* __restrict places) {
  const auto codes_flipped = static_cast<int64_t>(codes ^ (uint64_t{1} << 63));
  uint64_t any = 0;
  if (first && stride == 1) {
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t offset = values[row] - base;
      any |= outside(offset, codes_flipped);
      places[row] = offset + shift;
    }
  } else if (first) {
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t offset = values[row] - base;
      any |= outside(offset, codes_flipped);
      places[row] = (offset + shift) * stride;
    }
  } else {
    // Fewer than 2^32 cells in all, so the lower halves multiply to what counts.
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t offset = values[row] - base;
      any |= outside(offset, codes_flipped);
      places[row] += ((offset + shift) & 0xFFFFFFFF) * (stride & 0xFFFFFFFF);
    }
  }
  return any;
}

}  // namespace

const GroupLoops& group_loops() {
  static constexpr GroupLoops loops = {sum_words, extend_range, magnitude_bits, add_places};
  return loops;
}

}  // namespace bireme::BIREME_ISA
