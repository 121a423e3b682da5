// The checksum of pages: CRC-32 as in gzip.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

uint32_t crc32(Bytes bytes, uint32_t crc = 0);

}  // namespace bireme::parquet
