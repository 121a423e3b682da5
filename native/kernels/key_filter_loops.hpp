// The loops of key filters, once per instruction set (kernels/dispatch.hpp).
#pragma once

#include <cstdint>

namespace bireme {

// Numbers from `low` to `low + reach`, as they wrap around.
struct WordRange {
  uint64_t low = 1;
  uint64_t reach = 0;
};

// One bit a key in a few places of one word of `words`, so that a look-up reads one word. There are 2^(64 -
// shift) words.
struct BloomWords {
  uint64_t* words = nullptr;
  uint32_t shift = 63;
};

struct KeyFilterLoops {
  // Each sets keep[row] to whether the value may be a key.
  void (*test_range)(const uint64_t* values, int64_t rows, WordRange range, uint8_t* keep);
  // Bit i of `bits` is the value range.low + i.
  void (*test_bitmap)(const uint64_t* values, int64_t rows, WordRange range, const uint64_t* bits,
                      uint8_t* keep);
  void (*test_list)(const uint64_t* values, int64_t rows, const uint64_t* list, int64_t count, uint8_t* keep);
  void (*test_bloom)(const uint64_t* values, int64_t rows, WordRange range, BloomWords bloom, uint8_t* keep);

  void (*add_bloom)(const uint64_t* values, int64_t rows, BloomWords bloom);
  // The smallest and largest of the values as signed numbers, joined to what there is.
  void (*widen)(const uint64_t* values, int64_t rows, int64_t* low, int64_t* high);
  // Writes first + row for each row that is kept, and returns how many. `out` has room for `rows`.
  int64_t (*positions)(const uint8_t* keep, int64_t rows, uint32_t first, uint32_t* out);
};

const KeyFilterLoops& key_filter_loops();

}  // namespace bireme
