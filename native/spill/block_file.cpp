#include "spill/block_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "kernels/crc32c.hpp"

namespace bireme {

namespace {

// One call's worth: as much as a device takes in one request. Of smaller ones fewer wait at once, as a thread
// copies in between, and a thread that has to wait for a processor does so after each.
constexpr int64_t kWriteBytes = int64_t{4} << 20;
constexpr int64_t kReadBytes = int64_t{4} << 20;
// What is copied before it is checksummed, while it is in the first cache.
constexpr int64_t kCopyBytes = 16 * 1024;

// All of the bytes, whatever a single call takes. An errno, or 0.
int write_all(int descriptor, const uint8_t* bytes, int64_t length, int64_t offset) {
  while (length > 0) {
    const ssize_t count = pwrite(descriptor, bytes, static_cast<size_t>(length), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    bytes += count;
    length -= count;
    offset += count;
  }
  return 0;
}

// Copies to `out` and gives the checksum of what was there before and of this.
uint32_t copy_checksummed(uint8_t* out, const uint8_t* bytes, int64_t length, uint32_t checksum) {
  for (int64_t done = 0; done < length; done += kCopyBytes) {
    const int64_t part = std::min(kCopyBytes, length - done);
    std::memcpy(out + done, bytes + done, static_cast<size_t>(part));
    checksum = crc32c(out + done, part, checksum);
  }
  return checksum;
}

}  // namespace

int64_t whole_blocks(int64_t bytes) {
  return (bytes + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
}

double wall_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

int64_t block_start(const Buffer& memory, int64_t at) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data()) + static_cast<uintptr_t>(at);
  return at + static_cast<int64_t>((kFileBlockBytes - address % kFileBlockBytes) % kFileBlockBytes);
}

RunWriter::RunWriter(int descriptor, int64_t offset, int64_t length_max)
    : descriptor_(descriptor),
      offset_(offset),
      capacity_(std::min(kWriteBytes, whole_blocks(length_max))),
      memory_(capacity_ + kFileBlockBytes),
      out_(memory_.as<uint8_t>() + block_start(memory_, 0)) {}

int RunWriter::add(Piece piece) {
  while (piece.length > 0) {
    const int64_t part = std::min(piece.length, capacity_ - filled_);
    checksum_ = copy_checksummed(out_ + filled_, piece.bytes, part, checksum_);
    filled_ += part;
    piece.bytes += part;
    piece.length -= part;
    if (filled_ == capacity_) {
      if (const int error = flush(); error != 0) return error;
    }
  }
  return 0;
}

int RunWriter::flush() {
  const int64_t whole = whole_blocks(filled_);
  std::memset(out_ + filled_, 0, static_cast<size_t>(whole - filled_));
  const double started = wall_seconds();
  const int error = write_all(descriptor_, out_, whole, offset_);
  seconds_ += wall_seconds() - started;
  offset_ += whole;
  filled_ = 0;
  return error;
}

void set_aside([[maybe_unused]] int descriptor, [[maybe_unused]] int64_t length) {
#ifdef __linux__
  // Not posix_fallocate, which writes zeros where the file system does not know how.
  [[maybe_unused]] const int refused = fallocate(descriptor, 0, 0, length);
#endif
}

RunWrite write_run(int descriptor, int64_t offset, std::span<const Piece> pieces) {
  int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.length;
  if (total == 0) return {};
  RunWriter writer(descriptor, offset, total);
  for (const Piece& piece : pieces) {
    if (const int error = writer.add(piece); error != 0) return {error};
  }
  const int error = writer.flush();
  return {error, writer.checksum(), writer.seconds()};
}

RunRead read_run(int descriptor, int64_t offset, int64_t length) {
  RunRead read;
  const int64_t whole = whole_blocks(length);
  read.memory = Buffer(whole + kFileBlockBytes);
  read.start = block_start(read.memory, 0);
  uint8_t* const out = read.memory.as<uint8_t>() + read.start;
  int64_t done = 0;
  while (done < length) {
    const double started = wall_seconds();
    const ssize_t count =
        pread(descriptor, out + done, static_cast<size_t>(std::min(kReadBytes, whole - done)), offset + done);
    read.seconds += wall_seconds() - started;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      read.error = count < 0 ? errno : 0;
      read.ended_early = count == 0;
      return read;
    }
    const int64_t part = std::min<int64_t>(count, length - done);
    read.checksum = crc32c(out + done, part, read.checksum);
    done += count;
  }
  return read;
}

}  // namespace bireme
