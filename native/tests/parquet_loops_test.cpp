// The loops of decoding, of every instruction set, against one plain statement of what they do.
#include "parquet/loops.hpp"

#include <random>
#include <vector>

#include "kernels/dispatch.hpp"
#include "parquet/bit_packing.hpp"
#include "parquet/crc32.hpp"
#include "parquet/utf8.hpp"
#include "tests/check.hpp"

using namespace bireme;
using parquet::Keep;
using parquet::Loops;

namespace {

using Random = std::mt19937_64;

std::vector<const Loops*> every_set() {
  std::vector<const Loops*> found = {&baseline::parquet_loops()};
#ifdef BIREME_HAS_AVX2
  if (isa() == Isa::Avx2) found.push_back(&avx2::parquet_loops());
#endif
  return found;
}

uint32_t code_at(const std::vector<uint8_t>& bytes, int width, size_t index) {
  uint32_t code = 0;
  for (int bit = 0; bit < width; ++bit) {
    const size_t at = index * static_cast<size_t>(width) + static_cast<size_t>(bit);
    code |= static_cast<uint32_t>(bytes[at / 8] >> (at % 8) & 1) << bit;
  }
  return code;
}

void test_unpack(const Loops& loops, Random& random, int width) {
  constexpr size_t kCodes = 104;
  std::vector<uint8_t> bytes(kCodes / 8 * static_cast<size_t>(width) + 16);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  std::vector<uint32_t> codes(kCodes);
  const uint32_t largest = loops.unpack(bytes.data(), width, kCodes / 8, codes.data());
  uint32_t expected = 0;
  for (size_t index = 0; index < kCodes; ++index) {
    CHECK(codes[index] == code_at(bytes, width, index));
    expected = std::max(expected, codes[index]);
  }
  CHECK(largest == expected);
}

// From any place to any other, up to the last byte.
void test_parts(Random& random, int width) {
  std::vector<uint8_t> bytes(static_cast<size_t>(width) * 8);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const uint8_t* end = bytes.data() + bytes.size();
  for (int64_t first = 0; first < 64; first += 1 + static_cast<int64_t>(random() % 5)) {
    const int64_t count = static_cast<int64_t>(random() % static_cast<uint64_t>(65 - first));
    std::vector<uint32_t> codes(static_cast<size_t>(count));
    parquet::unpack_bits(bytes.data(), end, width, first, count, codes.data());
    for (int64_t index = 0; index < count; ++index) {
      CHECK(codes[static_cast<size_t>(index)] == code_at(bytes, width, static_cast<size_t>(first + index)));
    }
  }
}

void test_select(const Loops& loops, Random& random, size_t words) {
  std::vector<uint8_t> flags(words);
  const auto percent = random() % 101;
  for (uint8_t& flag : flags) flag = random() % 100 < percent;
  Keep keep{flags.data(), static_cast<int64_t>(words)};
  for (size_t code = 0; code < std::min<size_t>(words, 256); ++code) {
    keep.bits[code / 32] |= uint32_t{flags[code]} << (code % 32);
  }
  std::vector<uint32_t> codes(random() % 90);
  std::vector<uint32_t> rows;
  std::vector<uint32_t> from_list;
  std::vector<uint32_t> from_range;
  for (uint32_t& code : codes) {
    code = static_cast<uint32_t>(random() % words);
    rows.push_back((rows.empty() ? 0 : rows.back()) + 1 + static_cast<uint32_t>(random() % 9));
    if (flags[code] != 0) from_list.push_back(rows.back());
    if (flags[code] != 0) from_range.push_back(1000 + static_cast<uint32_t>(rows.size()) - 1);
  }
  std::vector<uint32_t> out(codes.size());
  const auto count = static_cast<int64_t>(codes.size());
  out.resize(static_cast<size_t>(loops.select_range(codes.data(), count, 1000, keep, out.data())));
  CHECK(out == from_range);
  rows.resize(static_cast<size_t>(loops.select_list(codes.data(), count, rows.data(), keep, rows.data())));
  CHECK(rows == from_list);
}

void test_text() {
  const auto are_text = [](const std::vector<std::string>& words) {
    std::string bytes;
    std::vector<int32_t> ends;
    for (const std::string& word : words) {
      bytes += word;
      ends.push_back(static_cast<int32_t>(bytes.size()));
    }
    return parquet::are_utf8(reinterpret_cast<const uint8_t*>(bytes.data()), 0, ends.data(),
                             static_cast<int64_t>(ends.size()));
  };
  CHECK(are_text({}));
  CHECK(are_text({"", "plain", std::string(100, 'x')}));
  CHECK(are_text({"\xC3\xA9", "", "\xE2\x82\xAC", "\xF0\x9F\x9B\xB6 oars", "\xED\x9F\xBF"}));
  CHECK(!are_text({"\xC3", "\xA9"}));          // a character in two words
  CHECK(!are_text({"\xC0\x80"}));              // longer than it needs to be
  CHECK(!are_text({"\xE0\x80\x80"}));          // the same
  CHECK(!are_text({"\xED\xA0\x80"}));          // a surrogate
  CHECK(!are_text({"\xF4\x90\x80\x80"}));      // above U+10FFFF
  CHECK(!are_text({"fine until here \xFF"}));  // never a byte of text
  CHECK(!are_text({"cut \xE2\x82"}));
}

}  // namespace

int main() {
  Random random(5);
  for (const Loops* loops : every_set()) {
    for (int width = 1; width <= 32; ++width) test_unpack(*loops, random, width);
    for (const size_t words : {1, 2, 31, 33, 255, 256, 257, 3000}) {
      for (int round = 0; round < 20; ++round) test_select(*loops, random, words);
    }
  }
  for (int width = 1; width <= 32; ++width) test_parts(random, width);
  const std::string digits = "123456789";
  CHECK(parquet::crc32({reinterpret_cast<const uint8_t*>(digits.data()), digits.size()}) == 0xCBF43926);
  test_text();
  return test::finish();
}
