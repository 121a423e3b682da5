// LZ4 blocks, as the format of that name describes them: the fast way to compress, and back.
//
// Rule: what is decompressed may be damaged: nothing outside the output and its margin is written, nothing
// before it read. It is here, not behind a call of a library from Python, because spilled batches are
// compressed frame by frame on IO threads, which would otherwise queue for the interpreter once a frame.
#pragma once

#include <cstdint>

namespace bireme {

// What may be read behind the input and written behind the output of lz4_decompress.
inline constexpr int64_t kLz4Margin = 64;

// The bytes that `length` ones became in `out`; 0 where they need more than `capacity`. `length` is below
// 2^31.
int64_t lz4_compress(const uint8_t* in, int64_t length, uint8_t* out, int64_t capacity);

// Whether the input is a block of exactly `out_length` bytes, which are then in `out`.
bool lz4_decompress(const uint8_t* in, int64_t in_length, uint8_t* out, int64_t out_length);

}  // namespace bireme
