// Snappy's block format, decompressed.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Decompresses `in` into the `bytes` bytes at `out`, which has kWildCopyBytes of room behind it. Throws
// Corrupt unless exactly that many bytes come out.
void snappy_decompress(Bytes in, uint8_t* out, int64_t bytes);

// Where all of the `bytes` bytes lie in `in` as they are, as with packed codes that do not compress; empty
// where they do not.
Bytes snappy_stored(Bytes in, int64_t bytes);

}  // namespace bireme::parquet
