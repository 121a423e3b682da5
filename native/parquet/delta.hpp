// The DELTA encodings. They cannot be read by position: a page is decoded as a whole.
#pragma once

#include "arrow/buffer.hpp"
#include "parquet/bytes.hpp"

namespace bireme::parquet {

// DELTA_BINARY_PACKED: decodes the `count` integers that the cursor stands before, and moves it behind them.
// Throws Corrupt where there are more or less.
void read_deltas(Cursor& in, int64_t count, int32_t* out);
void read_deltas(Cursor& in, int64_t count, int64_t* out);

// Values of any length: value i is [offsets[i], offsets[i + 1]) of `bytes`.
struct Spans {
  Buffer offsets;  // of int32, count + 1
  Buffer memory;   // what `bytes` points into, if not what was read
  Bytes bytes;
};

// DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
Spans read_delta_lengths(Cursor& in, int64_t count);
// DELTA_BYTE_ARRAY: how many bytes each has in common with the one before, then what is different.
Spans read_delta_bytes(Cursor& in, int64_t count);

}  // namespace bireme::parquet
