// Snappy's block format, decompressed.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Decompresses `in` into the `bytes` bytes at `out`, which has kWildCopyBytes of room behind it. Throws
// Corrupt unless exactly that many bytes come out.
void snappy_decompress(Bytes in, uint8_t* out, int64_t bytes);

}  // namespace bireme::parquet
