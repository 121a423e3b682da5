// Ranges of an open file, read into pooled memory.
//
// Rule: plain reads, never a mapping: a file that somebody cuts off while it is mapped ends the process with a signal. With
// buffers that are reused a read costs no more than the page faults of a mapping would.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrow/buffer.hpp"

namespace bireme {

struct FileRange {
  int64_t offset;
  int64_t length;
};

struct FileRead {
  std::vector<Buffer> buffers;  // one per range, of exactly its length
  int error = 0;                // of errno; 0 where all went well
  bool ended_early = false;     // the file is shorter than a range
};

FileRead read_ranges(int descriptor, std::span<const FileRange> ranges);

}  // namespace bireme
