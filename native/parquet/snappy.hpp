// Snappy's block format, decompressed.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// How many bytes past the end of what it makes the decompressor may write.
inline constexpr int64_t kSnappySlackBytes = 64;

// Decompresses `in` into the `bytes` bytes at `out`, which has kSnappySlackBytes of room behind it. Throws
// Corrupt unless exactly that many bytes come out.
void snappy_decompress(Bytes in, uint8_t* out, int64_t bytes);

}  // namespace bireme::parquet
