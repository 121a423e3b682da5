// Checksums against published values and bit by bit, and runs of bytes through a file.
#include "spill/block_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/crc32c.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

using Random = std::mt19937_64;

std::vector<uint8_t> drawn_bytes(Random& random, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

uint32_t bitwise(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

// The examples of RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
void check_published() {
  std::vector<uint8_t> bytes(32, 0);
  CHECK(crc32c(bytes.data(), 32) == 0x8A9136AA);
  std::memset(bytes.data(), 0xFF, 32);
  CHECK(crc32c(bytes.data(), 32) == 0x62A8AB43);
  for (size_t at = 0; at < 32; ++at) bytes[at] = static_cast<uint8_t>(at);
  CHECK(crc32c(bytes.data(), 32) == 0x46DD794E);
  for (size_t at = 0; at < 32; ++at) bytes[at] = static_cast<uint8_t>(31 - at);
  CHECK(crc32c(bytes.data(), 32) == 0x113FDB5C);
  CHECK(crc32c(reinterpret_cast<const uint8_t*>("123456789"), 9) == 0xE3069283);
  CHECK(crc32c(nullptr, 0) == 0);
}

void check_any_length_and_cut() {
  Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    const auto length = static_cast<int64_t>(random() % (turn < 150 ? 64 : 8 * kCrcRunBytes));
    const std::vector<uint8_t> bytes = drawn_bytes(random, length);
    const uint32_t whole = crc32c(bytes.data(), length);
    CHECK(whole == bitwise(bytes));
    const auto cut = static_cast<int64_t>(random() % static_cast<uint64_t>(length + 1));
    CHECK(crc32c(bytes.data() + cut, length - cut, crc32c(bytes.data(), cut)) == whole);
  }
}

struct File {
  std::string path;
  int descriptor;
  explicit File(int flags) {
    char name[] = "block_file_XXXXXX";
    descriptor = mkstemp(name);
    path = name;
    if (flags != 0) {
      close(descriptor);
      descriptor = open(name, O_RDWR | flags);
    }
  }
  ~File() {
    if (descriptor >= 0) close(descriptor);
    unlink(path.c_str());
  }
};

void check_runs(int flags) {
  File file(flags);
  if (file.descriptor < 0) return;  // no direct IO here
  set_aside(file.descriptor, 4096);
  set_aside(-1, 4096);
  Random random(2);
  int64_t offset = 0;
  for (const int64_t total : {1, 4095, 4096, 4097, 300'000, 1 << 20, (5 << 20) + 17}) {
    const std::vector<uint8_t> bytes = drawn_bytes(random, total);
    std::vector<Piece> pieces;
    for (int64_t at = 0; at < total;) {
      const int64_t part = std::min<int64_t>(total - at, static_cast<int64_t>(random() % 700'000));
      pieces.push_back({bytes.data() + at, part});
      at += part;
    }
    const RunWrite written = write_run(file.descriptor, offset, pieces);
    CHECK(written.error == 0);
    CHECK(written.checksum == crc32c(bytes.data(), total));
    const RunRead read = read_run(file.descriptor, offset, total);
    CHECK(read.error == 0 && !read.ended_early && read.checksum == written.checksum);
    CHECK(std::memcmp(read.memory.as<uint8_t>() + read.start, bytes.data(), bytes.size()) == 0);
    offset += (total + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
    CHECK(lseek(file.descriptor, 0, SEEK_END) == offset);
  }
  CHECK(read_run(file.descriptor, offset - kFileBlockBytes, 2 * kFileBlockBytes).ended_early);
}

void check_faults() {
  const uint8_t byte = 1;
  const Piece piece{&byte, 1};
  CHECK(write_run(-1, 0, {&piece, 1}).error != 0);
  CHECK(read_run(-1, 0, 1).error != 0);
  CHECK(write_run(-1, 0, {}).error == 0);
}

}  // namespace

int main() {
  check_published();
  check_any_length_and_cut();
  check_runs(0);
  check_runs(O_DIRECT);
  check_faults();
  return test::finish();
}
