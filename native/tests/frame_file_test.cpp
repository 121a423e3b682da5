// LZ4 blocks there and back, damaged ones, and runs of frames through a file.
#include "spill/frame_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/crc32c.hpp"
#include "spill/lz4.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

using Random = std::mt19937_64;
using Bytes = std::vector<uint8_t>;

// Bytes of one of five kinds, from all equal to nothing alike.
Bytes drawn_bytes(Random& random, int64_t count) {
  Bytes bytes(static_cast<size_t>(count));
  const uint64_t kind = random() % 5;
  const uint64_t period = 1 + random() % 40;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const uint64_t drawn = random();
    if (kind == 0) bytes[at] = 7;
    if (kind == 1) bytes[at] = static_cast<uint8_t>(drawn);
    if (kind == 2) bytes[at] = static_cast<uint8_t>(at / 8 * 31 >> at % 8 * 8);
    if (kind == 3) bytes[at] = static_cast<uint8_t>(drawn % 4 == 0 ? drawn >> 8 : 'a');
    if (kind == 4)
      bytes[at] = at < period || drawn % 90 == 0 ? static_cast<uint8_t>(drawn >> 8) : bytes[at - period];
  }
  return bytes;
}

Bytes compressed(const Bytes& bytes) {
  Bytes out(bytes.size() + bytes.size() / 255 + 16);
  out.resize(static_cast<size_t>(lz4_compress(bytes.data(), static_cast<int64_t>(bytes.size()), out.data(),
                                              static_cast<int64_t>(out.size()))));
  return out;
}

bool expands(Bytes packed, int64_t length, Bytes& out) {
  const auto packed_length = static_cast<int64_t>(packed.size());
  packed.resize(packed.size() + kLz4Margin);
  out.assign(static_cast<size_t>(length + kLz4Margin), 0);
  const bool whole = lz4_decompress(packed.data(), packed_length, out.data(), length);
  out.resize(static_cast<size_t>(length));
  return whole;
}

void check_blocks() {
  Random random(1);
  for (int turn = 0; turn < 2'000; ++turn) {
    const auto length = static_cast<int64_t>(random() % (turn % 10 == 0 ? 200'000 : 300));
    const Bytes bytes = drawn_bytes(random, length);
    const Bytes packed = compressed(bytes);
    CHECK(!packed.empty());
    Bytes out;
    CHECK(expands(packed, length, out));
    CHECK(out == bytes);
    CHECK(!expands(packed, length + 1, out));
    if (length > 0) CHECK(!expands(packed, length - 1, out));
    // Whatever room there is, no more is written.
    const auto room = static_cast<int64_t>(random() % packed.size());
    Bytes tight(static_cast<size_t>(room));
    CHECK(lz4_compress(bytes.data(), length, tight.data(), room) == 0);
  }
}

// What matters is that the sanitizers find nothing; an answer is right or refused.
void check_damage() {
  Random random(2);
  for (int turn = 0; turn < 5'000; ++turn) {
    const auto length = static_cast<int64_t>(random() % 2'000);
    Bytes packed = compressed(drawn_bytes(random, length));
    for (uint64_t left = 1 + random() % 4; left > 0; --left) {
      packed[random() % packed.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 3 == 0) packed.resize(random() % packed.size());
    Bytes out;
    (void)expands(packed, length, out);
  }
}

struct File {
  char path[32] = "frame_file_XXXXXX";
  int descriptor = mkstemp(path);
  ~File() {
    close(descriptor);
    unlink(path);
  }
};

struct Drawn {
  std::vector<Bytes> content;
  std::vector<Piece> pieces;
  std::vector<uint8_t> flags;
  Bytes joined;
};

Drawn drawn_pieces(Random& random) {
  Drawn drawn;
  for (uint64_t left = random() % 6; left > 0; --left) {
    drawn.content.push_back(drawn_bytes(random, static_cast<int64_t>(random() % 700'000)));
    drawn.flags.push_back(random() % 3 != 0);
  }
  for (const Bytes& one : drawn.content) {
    drawn.pieces.push_back({one.data(), static_cast<int64_t>(one.size())});
    drawn.joined.insert(drawn.joined.end(), one.begin(), one.end());
  }
  return drawn;
}

void check_runs() {
  File file;
  Random random(3);
  for (int turn = 0; turn < 40; ++turn) {
    const Drawn drawn = drawn_pieces(random);
    const auto length = static_cast<int64_t>(drawn.joined.size());
    const FramesWrite written = write_frames(file.descriptor, 4096, drawn.pieces, drawn.flags);
    CHECK(written.error == 0);
    const FramesRead read = read_frames(file.descriptor, 4096, written.stored, length);
    CHECK(read.error == 0 && !read.broken && read.checksum == written.checksum);
    CHECK(length == 0 ||
          std::memcmp(read.memory.as<uint8_t>(), drawn.joined.data(), drawn.joined.size()) == 0);
    CHECK(read_frames(file.descriptor, 4096, written.stored, length + 1).broken);
    if (length == 0) continue;
    CHECK(read_frames(file.descriptor, 4096, written.stored, length - 1).broken);
    CHECK(read_frames(file.descriptor, int64_t{1} << 30, written.stored, length).broken);
    // Any byte that changed is either found by the frames or by the checksum.
    const auto at = static_cast<off_t>(4096 + random() % static_cast<uint64_t>(written.stored));
    uint8_t byte = 0;
    CHECK(pread(file.descriptor, &byte, 1, at) == 1);
    byte ^= static_cast<uint8_t>(1 + random() % 255);
    CHECK(pwrite(file.descriptor, &byte, 1, at) == 1);
    const FramesRead damaged = read_frames(file.descriptor, 4096, written.stored, length);
    CHECK(damaged.broken || damaged.checksum != written.checksum);
  }
}

void check_faults() {
  const Bytes bytes(100'000, 1);
  const Piece piece{bytes.data(), static_cast<int64_t>(bytes.size())};
  const uint8_t flag = 1;
  CHECK(write_frames(-1, 0, {&piece, 1}, {&flag, 1}).error != 0);
  CHECK(read_frames(-1, 0, 100, 100).error != 0);
}

void check_samples() {
  Random random(4);
  Bytes noise(1 << 20);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  const Bytes equal(1 << 20, 3);
  CHECK(sample_frames({noise.data(), 1 << 20}).share == 1);
  CHECK(sample_frames({equal.data(), 1 << 20}).share < 0.02);
  CHECK(sample_frames({equal.data(), 100}).share == 1);
}

}  // namespace

int main() {
  check_blocks();
  check_damage();
  check_runs();
  check_faults();
  check_samples();
  return test::finish();
}
