// Values packed into bits, the lowest bits first.
#pragma once

#include <cstdint>

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Values [first, first + count) of `width` (1 to 32) bits each, of those that start at `packed`; all of them
// must lie before `readable_end`. Returns the largest.
uint32_t unpack_bits(const uint8_t* packed, const uint8_t* readable_end, int width, int64_t first,
                     int64_t count, uint32_t* out);

// One value of up to 57 bits. It must lie before `readable_end`.
inline uint64_t packed_at(const uint8_t* packed, const uint8_t* readable_end, int width, int64_t index) {
  const int64_t bit = index * width;
  const uint8_t* at = packed + (bit >> 3);
  uint64_t word = 0;
  if (readable_end - at >= 8) [[likely]] {
    word = load<uint64_t>(at);
  } else {
    std::memcpy(&word, at, static_cast<size_t>(readable_end - at));
  }
  return (word >> (bit & 7)) & ((uint64_t{1} << width) - 1);
}

}  // namespace bireme::parquet
