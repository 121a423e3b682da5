#include "parquet/crc32.hpp"

#include <array>

namespace bireme::parquet {

namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // bit-reversed
constexpr int kSlices = 8;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b adds to the checksum when k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(Bytes bytes, uint32_t crc) {
  crc = ~crc;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const uint64_t word = load<uint64_t>(at) ^ crc;
    crc = 0;
    for (int byte = 0; byte < 8; ++byte)
      crc ^= kTables[static_cast<size_t>(7 - byte)][(word >> (8 * byte)) & 0xFF];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

}  // namespace bireme::parquet
