// Bitmaps whose parts do not start at whole bytes. Bit i is (bytes[i / 8] >> (i % 8)) & 1.
#pragma once

#include <cstdint>

namespace bireme::parquet {

inline bool bit_at(const uint8_t* bits, int64_t index) {
  return ((bits[index >> 3] >> (index & 7)) & 1) != 0;
}

// Copies `count` bits. Those of `to` before `to_bit` stay, those after the last in the same byte become 0.
void copy_bits(const uint8_t* from, int64_t from_bit, int64_t count, uint8_t* to, int64_t to_bit);

// Sets `count` bits, in the same way.
void fill_bits(bool value, int64_t count, uint8_t* to, int64_t to_bit);

int64_t count_bits(const uint8_t* bits, int64_t begin, int64_t end);

// One bit for each byte, which is 0 or 1.
void pack_bytes(const uint8_t* bytes, int64_t count, uint8_t* bits);

}  // namespace bireme::parquet
