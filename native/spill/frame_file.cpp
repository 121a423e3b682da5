#include "spill/frame_file.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/crc32c.hpp"
#include "spill/lz4.hpp"

namespace bireme {

namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;
constexpr int kSamples = 3;
constexpr int64_t kSampleBytes = 8 * 1024;
// Shorter pieces are descriptions and bitmaps, of which whole blocks leave nothing to save.
constexpr int64_t kPieceBytesMin = 2 * kSampleBytes;

// Seconds that this thread has had a processor.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Head {
  uint32_t content;
  uint32_t body;
};
static_assert(sizeof(Head) == kFrameHeadBytes);

class FrameWriter {
 public:
  FrameWriter(int descriptor, int64_t offset, int64_t length_max)
      : run_(descriptor, offset, length_max), body_(std::min(kFrameBytes, length_max)) {}

  int add(Piece piece, bool compress) {
    for (int64_t done = 0; done < piece.length; done += kFrameBytes) {
      const Piece content{piece.bytes + done, std::min(kFrameBytes, piece.length - done)};
      if (const int error = put(content, compress ? compressed(content) : content); error != 0) return error;
    }
    return 0;
  }

  FramesWrite end(int error) {
    if (error == 0) error = run_.flush();
    return {error, run_.checksum(), stored_, run_.seconds(), seconds_, wall_};
  }

 private:
  Piece compressed(Piece content) {
    const double started = thread_seconds();
    const double wall = wall_seconds();
    const int64_t length =
        lz4_compress(content.bytes, content.length, body_.as<uint8_t>(), content.length - 1);
    seconds_ += thread_seconds() - started;
    wall_ += wall_seconds() - wall;
    return length == 0 ? content : Piece{body_.as<uint8_t>(), length};
  }

  int put(Piece content, Piece body) {
    const Head head{static_cast<uint32_t>(content.length), static_cast<uint32_t>(body.length)};
    stored_ += kFrameHeadBytes + body.length;
    const int error = run_.add({reinterpret_cast<const uint8_t*>(&head), kFrameHeadBytes});
    return error != 0 ? error : run_.add(body);
  }

  RunWriter run_;
  Buffer body_;
  int64_t stored_ = 0;
  double seconds_ = 0;
  double wall_ = 0;
};

// Puts the content of frames together.
class Content {
 public:
  explicit Content(int64_t length) : memory_(length + kLz4Margin), length_(length) {}

  // Takes whole frames from the front of `bytes`; gives how many bytes they are, or -1 where they are none.
  int64_t take(const uint8_t* bytes, int64_t length) {
    const double started = thread_seconds();
    int64_t done = 0;
    while (length - done >= kFrameHeadBytes) {
      Head head;
      std::memcpy(&head, bytes + done, sizeof(head));
      if (head.body > head.content || head.content > std::min(kFrameBytes, length_ - filled_)) return -1;
      if (length - done - kFrameHeadBytes < head.body) break;
      if (!put(head, bytes + done + kFrameHeadBytes)) return -1;
      done += kFrameHeadBytes + head.body;
    }
    seconds_ += thread_seconds() - started;
    return done;
  }

  bool is_whole() const { return filled_ == length_; }
  double seconds() const { return seconds_; }
  Buffer release() { return std::move(memory_); }

 private:
  bool put(Head head, const uint8_t* body) {
    uint8_t* const out = memory_.as<uint8_t>() + filled_;
    filled_ += head.content;
    if (head.body < head.content) return lz4_decompress(body, head.body, out, head.content);
    std::memcpy(out, body, head.content);
    return true;
  }

  Buffer memory_;
  int64_t length_;
  int64_t filled_ = 0;
  double seconds_ = 0;
};

// Reads a run a megabyte at a time. What is left of a frame is moved in front of where the next bytes will
// be.
class FrameReader {
 public:
  FrameReader(int descriptor, int64_t offset, int64_t stored, Content& content)
      : descriptor_(descriptor),
        offset_(offset),
        stored_(stored),
        content_(content),
        step_(std::min(kReadBytes, whole_blocks(stored))),
        memory_(kFrameHeadBytes + kFrameBytes + kFileBlockBytes + step_ + kLz4Margin),
        start_(memory_.as<uint8_t>() + block_start(memory_, kFrameHeadBytes + kFrameBytes)) {}

  void read(FramesRead& into) {
    while (done_ < stored_) {
      const double started = wall_seconds();
      const ssize_t count =
          pread(descriptor_, start_, static_cast<size_t>(std::min(step_, whole_blocks(stored_) - done_)),
                offset_ + done_);
      into.seconds += wall_seconds() - started;
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) into.error = errno;
      into.broken =
          count == 0 || (count > 0 && !take(std::min<int64_t>(count, stored_ - done_), into.checksum));
      if (count <= 0 || into.broken) return;
      done_ += count;
    }
    into.broken = left_ != 0 || !content_.is_whole();
  }

 private:
  bool take(int64_t fresh, uint32_t& checksum) {
    checksum = crc32c(start_, fresh, checksum);
    uint8_t* const from = start_ - left_;
    const int64_t used = content_.take(from, left_ + fresh);
    if (used < 0) return false;
    left_ += fresh - used;
    std::memmove(start_ - left_, from + used, static_cast<size_t>(left_));
    return true;
  }

  int descriptor_;
  int64_t offset_;
  int64_t stored_;
  Content& content_;
  int64_t step_;
  Buffer memory_;
  uint8_t* start_;
  int64_t left_ = 0;
  int64_t done_ = 0;
};

}  // namespace

FrameSample sample_frames(Piece piece) {
  if (piece.length < kPieceBytesMin) return {};
  uint8_t body[kSampleBytes];
  const double started = thread_seconds();
  int64_t left = 0;
  for (int number = 0; number < kSamples; ++number) {
    const int64_t at = (piece.length - kSampleBytes) * number / (kSamples - 1);
    const int64_t length = lz4_compress(piece.bytes + at, kSampleBytes, body, kSampleBytes - 1);
    left += length == 0 ? kSampleBytes : length;
  }
  const double looked_at = kSamples * kSampleBytes;
  return {static_cast<double>(left) / looked_at, (thread_seconds() - started) / looked_at};
}

FramesWrite write_frames(int descriptor, int64_t offset, std::span<const Piece> pieces,
                         std::span<const uint8_t> flags) {
  int64_t length_max = 0;
  for (const Piece& piece : pieces) {
    length_max += piece.length + (piece.length / kFrameBytes + 1) * kFrameHeadBytes;
  }
  FrameWriter writer(descriptor, offset, length_max);
  int error = 0;
  for (size_t index = 0; index < pieces.size() && error == 0; ++index) {
    error = writer.add(pieces[index], index < flags.size() && flags[index] != 0);
  }
  return writer.end(error);
}

FramesRead read_frames(int descriptor, int64_t offset, int64_t stored, int64_t length) {
  FramesRead read;
  Content content(length);
  FrameReader(descriptor, offset, stored, content).read(read);
  read.codec_seconds = content.seconds();
  read.memory = content.release();
  return read;
}

}  // namespace bireme
