// Runs of frames in files: parts of the pieces of a batch, each compressed or as it was.
//
// A frame is two words of 32 bits, the lengths of its content and of its body, and the body: an LZ4 block
// where that is shorter than the content, else the content. Rule: neither way needs more memory beside the
// batch than the buffer of a call and two frames.
#pragma once

#include <cstdint>
#include <span>

#include "arrow/buffer.hpp"
#include "spill/block_file.hpp"

namespace bireme {

// LZ4 reaches back 64 KiB: frames of four times that lose little, and stay in a processor's own cache.
inline constexpr int64_t kFrameBytes = int64_t{256} << 10;
inline constexpr int64_t kFrameHeadBytes = 8;

struct FrameSample {
  double share = 1;    // of the bytes that are left
  double seconds = 0;  // of a processor, per byte
};

// What compression makes of some kilobytes of a piece: from its start, its middle and its end.
FrameSample sample_frames(Piece piece);

struct FramesWrite {
  int error = 0;  // an errno, or 0
  uint32_t checksum = 0;
  int64_t stored = 0;        // bytes of the run
  double seconds = 0;        // in which the file was waited for
  double codec_seconds = 0;  // of a processor that compressed
  double codec_wall = 0;     // seconds until it had
};

// As write_run; pieces whose flag is set are compressed. Needs at most a head a frame more room than their
// bytes.
FramesWrite write_frames(int descriptor, int64_t offset, std::span<const Piece> pieces,
                         std::span<const uint8_t> flags);

struct FramesRead {
  Buffer memory;
  int error = 0;        // an errno, or 0
  bool broken = false;  // the file ends early, or these are no frames of so many bytes
  uint32_t checksum = 0;
  double seconds = 0;        // in which the file was waited for
  double codec_seconds = 0;  // of a processor that expanded
};

// Reads a run of `stored` bytes whose frames hold `length` bytes.
FramesRead read_frames(int descriptor, int64_t offset, int64_t stored, int64_t length);

}  // namespace bireme
