// LZ4's block format, decompressed.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Decompresses a block into the `bytes` bytes at `out`, which has kWildCopyBytes of room behind it. Throws
// Corrupt unless exactly that many bytes come out.
void lz4_decompress(Bytes in, uint8_t* out, int64_t bytes);

// The same for Parquet's deprecated codec LZ4: blocks with their sizes before them, as Hadoop writes them, or
// one bare block.
void lz4_hadoop_decompress(Bytes in, uint8_t* out, int64_t bytes);

}  // namespace bireme::parquet
