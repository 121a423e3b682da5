#include "kernels/crc32c.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const CrcLoops& crc_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const CrcLoops& crc_loops();
}
#endif

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bit-reversed

constexpr CrcSlices make_slices() {
  CrcSlices slices{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    slices.table[0][byte] = crc;
  }
  for (int slice = 1; slice < 8; ++slice) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = slices.table[slice - 1][byte];
      slices.table[slice][byte] = (before >> 8) ^ slices.table[0][before & 0xFF];
    }
  }
  return slices;
}

constexpr CrcSlices kSlices = make_slices();

// Shifting is linear, so the table follows from where each single bit goes.
constexpr CrcShift make_shift() {
  uint32_t moved[32]{};
  for (int bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (int64_t byte = 0; byte < kCrcRunBytes; ++byte) crc = (crc >> 8) ^ kSlices.table[0][crc & 0xFF];
    moved[bit] = crc;
  }
  CrcShift shift{};
  for (int place = 0; place < 4; ++place) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1) != 0) shift.table[place][byte] ^= moved[8 * place + bit];
      }
    }
  }
  return shift;
}

constexpr CrcShift kShift = make_shift();

}  // namespace

uint32_t crc32c(const uint8_t* bytes, int64_t length, uint32_t crc) {
  static const CrcLoops& chosen = BIREME_DISPATCH(crc_loops);
  return ~chosen.update(bytes, length, ~crc, kSlices, kShift);
}

}  // namespace bireme
