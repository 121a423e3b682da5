#include "parquet/bitmap.hpp"

#include <algorithm>
#include <bit>

#include "parquet/bytes.hpp"

namespace bireme::parquet {

namespace {

// The `count` (up to 8) bits from `bit` on, in the lowest bits.
uint8_t bits_from(const uint8_t* bits, int64_t bit, int64_t count) {
  const int shift = static_cast<int>(bit & 7);
  unsigned found = bits[bit >> 3] >> shift;
  if (shift + count > 8) found |= static_cast<unsigned>(bits[(bit >> 3) + 1]) << (8 - shift);
  return static_cast<uint8_t>(found & ((1u << count) - 1));
}

// Puts up to 8 bits at `bit`, which must not cross into the next byte unless bit % 8 is 0.
void put_bits(uint8_t value, uint8_t* bits, int64_t bit) {
  const int shift = static_cast<int>(bit & 7);
  uint8_t& byte = bits[bit >> 3];
  byte = static_cast<uint8_t>((byte & ((1u << shift) - 1)) | static_cast<unsigned>(value << shift));
}

}  // namespace

void copy_bits(const uint8_t* from, int64_t from_bit, int64_t count, uint8_t* to, int64_t to_bit) {
  const int64_t head = std::min<int64_t>(count, (8 - (to_bit & 7)) & 7);
  if (head > 0) put_bits(bits_from(from, from_bit, head), to, to_bit);
  int64_t done = head;
  if (((from_bit + done) & 7) == 0 && count - done >= 8) {
    const int64_t bytes = (count - done) / 8;
    std::memcpy(to + ((to_bit + done) >> 3), from + ((from_bit + done) >> 3), static_cast<size_t>(bytes));
    done += 8 * bytes;
  }
  for (; done < count; done += 8) {
    const int64_t length = std::min<int64_t>(8, count - done);
    put_bits(bits_from(from, from_bit + done, length), to, to_bit + done);
  }
}

void fill_bits(bool value, int64_t count, uint8_t* to, int64_t to_bit) {
  const unsigned byte = value ? 0xFF : 0;
  const int64_t head = std::min<int64_t>(count, (8 - (to_bit & 7)) & 7);
  if (head > 0) put_bits(static_cast<uint8_t>(byte & ((1u << head) - 1)), to, to_bit);
  const int64_t bytes = (count - head) / 8;
  std::memset(to + ((to_bit + head) >> 3), static_cast<int>(byte), static_cast<size_t>(bytes));
  const int64_t tail = count - head - 8 * bytes;
  if (tail > 0) put_bits(static_cast<uint8_t>(byte & ((1u << tail) - 1)), to, to_bit + head + 8 * bytes);
}

int64_t count_bits(const uint8_t* bits, int64_t begin, int64_t end) {
  int64_t count = 0;
  while (begin < end && (begin & 7) != 0) count += bit_at(bits, begin++);
  for (; end - begin >= 64; begin += 64) count += std::popcount(load<uint64_t>(bits + (begin >> 3)));
  while (begin < end) count += bit_at(bits, begin++);
  return count;
}

void pack_bytes(const uint8_t* bytes, int64_t count, uint8_t* bits) {
  int64_t done = 0;
  for (; count - done >= 8; done += 8) {
    // Each byte's lowest bit, moved to the upper byte by one multiplication.
    bits[done >> 3] = static_cast<uint8_t>((load<uint64_t>(bytes + done) * 0x0102040810204080) >> 56);
  }
  if (done < count) bits[done >> 3] = 0;
  for (; done < count; ++done)
    bits[done >> 3] = static_cast<uint8_t>(bits[done >> 3] | (bytes[done] << (done & 7)));
}

}  // namespace bireme::parquet
