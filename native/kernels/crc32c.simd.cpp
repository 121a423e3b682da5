// CRC-32C by the processor's instruction, which takes eight bytes a step and three steps to give its result:
// three runs at once keep it busy. Without it, by tables, eight bytes a step.
#include "kernels/crc32c.hpp"

#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace bireme::BIREME_ISA {

namespace {

uint64_t word_at(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#ifdef __SSE4_2__

uint32_t shifted(uint32_t crc, const CrcShift& shift) {
  return shift.table[0][crc & 0xFF] ^ shift.table[1][crc >> 8 & 0xFF] ^ shift.table[2][crc >> 16 & 0xFF] ^
         shift.table[3][crc >> 24];
}

uint32_t update(const uint8_t* bytes, int64_t length, uint32_t inverted, const CrcSlices&,
                const CrcShift& shift) {
  uint64_t crc = inverted;
  for (; length >= 3 * kCrcRunBytes; length -= 3 * kCrcRunBytes, bytes += 3 * kCrcRunBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (int64_t at = 0; at < kCrcRunBytes; at += 8) {
      crc = _mm_crc32_u64(crc, word_at(bytes + at));
      second = _mm_crc32_u64(second, word_at(bytes + kCrcRunBytes + at));
      third = _mm_crc32_u64(third, word_at(bytes + 2 * kCrcRunBytes + at));
    }
    crc = shifted(static_cast<uint32_t>(crc), shift) ^ second;
    crc = shifted(static_cast<uint32_t>(crc), shift) ^ third;
  }
  for (; length >= 8; length -= 8, bytes += 8) crc = _mm_crc32_u64(crc, word_at(bytes));
  auto rest = static_cast<uint32_t>(crc);
  for (; length > 0; --length, ++bytes) rest = _mm_crc32_u8(rest, *bytes);
  return rest;
}

#else

uint32_t update(const uint8_t* bytes, int64_t length, uint32_t inverted, const CrcSlices& slices,
                const CrcShift&) {
  uint32_t crc = inverted;
  for (; length >= 8; length -= 8, bytes += 8) {
    const uint64_t word = word_at(bytes) ^ crc;
    crc = 0;
    for (int byte = 0; byte < 8; ++byte) crc ^= slices.table[7 - byte][word >> (8 * byte) & 0xFF];
  }
  for (; length > 0; --length, ++bytes) crc = (crc >> 8) ^ slices.table[0][(crc ^ *bytes) & 0xFF];
  return crc;
}

#endif

}  // namespace

const CrcLoops& crc_loops();
const CrcLoops& crc_loops() {
  static constexpr CrcLoops loops{update};
  return loops;
}

}  // namespace bireme::BIREME_ISA
