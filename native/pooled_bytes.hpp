// Bytes that were read from a file, for Python.
#pragma once

#include "arrow/buffer.hpp"

namespace bireme {

// `length` bytes at `start` of pooled memory. Speaks the buffer protocol, so `pyarrow.py_buffer` takes them
// without a copy.
struct PooledBytes {
  Buffer buffer;
  int64_t start;
  int64_t length;
};

}  // namespace bireme
