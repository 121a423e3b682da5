#include "arrow/file_read.hpp"

#include <unistd.h>

#include <cerrno>

namespace bireme {

namespace {

// Fills `buffer` from `offset` on; false, with what went wrong in `read`, where that cannot be.
bool fill(int descriptor, int64_t offset, Buffer& buffer, FileRead& read) {
  int64_t done = 0;
  while (done < buffer.size()) {
    const ssize_t count =
        pread(descriptor, buffer.as<char>() + done, static_cast<size_t>(buffer.size() - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      read.error = count < 0 ? errno : 0;
      read.ended_early = count == 0;
      return false;
    }
    done += count;
  }
  return true;
}

}  // namespace

FileRead read_ranges(int descriptor, std::span<const FileRange> ranges) {
  FileRead read;
  read.buffers.reserve(ranges.size());
  for (const FileRange& range : ranges) {
    Buffer& buffer = read.buffers.emplace_back(range.length);
    if (!fill(descriptor, range.offset, buffer, read)) break;
  }
  return read;
}

}  // namespace bireme
