// Runs of bytes in files, written and read in whole blocks from aligned memory, as direct IO wants them.
//
// Rule: a run starts at a block and fills its last one with zeros. It is checksummed while it is copied, so
// that its bytes come into the cache once. Whether a file is open for direct IO makes no difference here.
#pragma once

#include <cstdint>
#include <span>

#include "arrow/buffer.hpp"

namespace bireme {

// Of devices and file systems in use none wants more.
inline constexpr int64_t kFileBlockBytes = 4096;

struct Piece {
  const uint8_t* bytes;
  int64_t length;
};

struct RunWrite {
  int error = 0;  // an errno, or 0
  uint32_t checksum = 0;
  double seconds = 0;  // in which the file was waited for
};

// Seconds since some time in the past.
double wall_seconds();

// Has the file system set aside the first `length` bytes, where it can: writes then run side by side, as none
// makes the file longer. A wish; whether it is granted does not matter.
void set_aside(int descriptor, int64_t length);

int64_t whole_blocks(int64_t bytes);

// Where in `memory`, from `at` on, a block may start.
int64_t block_start(const Buffer& memory, int64_t at);

// Gathers what comes to one run in aligned memory, and writes that when it is full: at most `length_max`
// bytes.
class RunWriter {
 public:
  RunWriter(int descriptor, int64_t offset, int64_t length_max);

  // An errno, or 0.
  int add(Piece piece);
  // Writes what is left, behind which nothing may come.
  int flush();

  uint32_t checksum() const { return checksum_; }
  double seconds() const { return seconds_; }

 private:
  int descriptor_;
  int64_t offset_;
  int64_t capacity_;
  Buffer memory_;
  uint8_t* out_;
  int64_t filled_ = 0;
  uint32_t checksum_ = 0;
  double seconds_ = 0;
};

// Writes the pieces one after the other from `offset` on, which is a multiple of kFileBlockBytes.
RunWrite write_run(int descriptor, int64_t offset, std::span<const Piece> pieces);

struct RunRead {
  Buffer memory;
  int64_t start = 0;  // where in `memory` the run starts
  int error = 0;
  bool ended_early = false;  // the file ends before the run does
  uint32_t checksum = 0;
  double seconds = 0;  // in which the file was waited for
};

RunRead read_run(int descriptor, int64_t offset, int64_t length);

}  // namespace bireme
