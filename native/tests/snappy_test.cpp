// Snappy streams of numbers, which the decoder takes in runs: ascending ones, such that hardly repeat, cut
// off and damaged ones.
#include "parquet/snappy.hpp"

#include <cstring>
#include <random>
#include <vector>

#include "parquet/wild_copy.hpp"
#include "tests/check.hpp"

using namespace bireme;
using parquet::Bytes;
using parquet::Corrupt;

namespace {

using Random = std::mt19937_64;

struct Stream {
  std::vector<uint8_t> packed;
  std::vector<uint8_t> plain;
};

void put_literal(Stream& stream, const uint8_t* bytes, size_t length) {
  stream.packed.push_back(static_cast<uint8_t>((length - 1) << 2));
  stream.packed.insert(stream.packed.end(), bytes, bytes + length);
  stream.plain.insert(stream.plain.end(), bytes, bytes + length);
}

void put_copy(Stream& stream, size_t offset, size_t length, bool is_far) {
  if (is_far) {
    stream.packed.push_back(static_cast<uint8_t>(2 | (length - 1) << 2));
    stream.packed.push_back(static_cast<uint8_t>(offset & 0xFF));
    stream.packed.push_back(static_cast<uint8_t>(offset >> 8));
  } else {
    stream.packed.push_back(static_cast<uint8_t>(1 | (length - 4) << 2 | offset >> 8 << 5));
    stream.packed.push_back(static_cast<uint8_t>(offset & 0xFF));
  }
  for (size_t index = 0; index < length; ++index) {
    const uint8_t repeated = stream.plain[stream.plain.size() - offset];
    stream.plain.push_back(repeated);
  }
}

// Numbers of eight bytes, each a literal of up to four and the rest of one that is `back` numbers before, in
// runs of about `run` with equal shapes.
Stream numbers(Random& random, int count, int run, size_t back_max) {
  Stream stream;
  std::vector<uint8_t> bytes(8 * back_max);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t done = 0; done < bytes.size(); done += 8) put_literal(stream, bytes.data() + done, 8);
  size_t literal = 1;
  for (int index = 0; index < count; ++index) {
    if (random() % static_cast<uint64_t>(run) == 0) literal = 1 + random() % 4;
    const size_t back = 8 * (1 + random() % back_max);
    put_literal(stream, bytes.data() + random() % 4, literal);
    put_copy(stream, back, 8 - literal, back >= 2048 || random() % 16 == 0);
    if (random() % 64 == 0) put_copy(stream, 1 + random() % 8, 4 + random() % 8, false);
  }
  std::vector<uint8_t> size;
  size_t left = stream.plain.size();
  for (; left >= 0x80; left >>= 7) size.push_back(static_cast<uint8_t>(left | 0x80));
  size.push_back(static_cast<uint8_t>(left));
  stream.packed.insert(stream.packed.begin(), size.begin(), size.end());
  return stream;
}

std::vector<uint8_t> decompressed(const std::vector<uint8_t>& packed, size_t bytes) {
  // The input at its exact size, so that a read past its end is seen.
  const std::vector<uint8_t> exact(packed);
  std::vector<uint8_t> out(bytes + parquet::kWildCopyBytes);
  parquet::snappy_decompress(Bytes(exact.data(), exact.size()), out.data(), static_cast<int64_t>(bytes));
  out.resize(bytes);
  return out;
}

void test_numbers(Random& random) {
  for (const int run : {1, 2, 5, 40, 1000}) {
    for (const size_t back_max : {1, 2, 7, 400}) {
      for (const int count : {0, 1, 3, 50, 3000}) {
        const Stream stream = numbers(random, count, run, back_max);
        CHECK(decompressed(stream.packed, stream.plain.size()) == stream.plain);
      }
    }
  }
}

void test_cut_off(Random& random) {
  const Stream stream = numbers(random, 100, 50, 1);
  for (size_t length = 0; length < stream.packed.size(); ++length) {
    const std::vector<uint8_t> cut(stream.packed.begin(),
                                   stream.packed.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_THROWS(decompressed(cut, stream.plain.size()), Corrupt);
  }
}

void test_damaged(Random& random) {
  for (int round = 0; round < 3000; ++round) {
    Stream stream = numbers(random, 40, 30, 1 + random() % 2);
    stream.packed[random() % stream.packed.size()] ^= static_cast<uint8_t>(1U << random() % 8);
    try {
      CHECK(decompressed(stream.packed, stream.plain.size()).size() == stream.plain.size());
    } catch (const Corrupt&) {
    }
  }
}

}  // namespace

int main() {
  Random random(1);
  test_numbers(random);
  test_cut_off(random);
  test_damaged(random);
  return bireme::test::finish();
}
