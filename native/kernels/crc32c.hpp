// CRC-32C (Castagnoli), the checksum of spilled batches: the one that processors have an instruction for.
#pragma once

#include <cstdint>

namespace bireme {

// The checksum of `length` bytes that follow others whose checksum is `crc`.
uint32_t crc32c(const uint8_t* bytes, int64_t length, uint32_t crc = 0);

// Three runs of so many bytes are checksummed side by side, then joined.
inline constexpr int64_t kCrcRunBytes = 2048;

// What a checksum becomes when kCrcRunBytes zero bytes follow: the sum, over its four bytes, of table[byte's
// place][byte].
struct CrcShift {
  uint32_t table[4][256];
};

// table[k][b]: what byte b adds to the checksum when k more bytes follow it.
struct CrcSlices {
  uint32_t table[8][256];
};

struct CrcLoops {
  // As crc32c, of an inverted checksum, and giving one.
  uint32_t (*update)(const uint8_t* bytes, int64_t length, uint32_t inverted, const CrcSlices& slices,
                     const CrcShift& shift);
};

}  // namespace bireme
