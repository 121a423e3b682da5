#include "spill/lz4.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "parquet/wild_copy.hpp"

namespace bireme {

namespace {

using parquet::load;

// Of the format: the shortest match, how near to the end one may start and end, and how far it reaches back.
constexpr int64_t kMatchMin = 4;
constexpr int64_t kLastStart = 12;
constexpr int64_t kLastLiterals = 5;
constexpr int64_t kOffsetMax = 65'535;
// What a half of a token holds; more follows in bytes of which the last is below 255.
constexpr int64_t kTokenMax = 15;
constexpr int kHashBits = 13;
// After so many misses in a row places are tried two apart, then three: what does not compress costs little.
constexpr int kMissesShift = 6;

uint32_t slot_of(uint32_t word) {
  return word * 2'654'435'761U >> (32 - kHashBits);
}

int64_t extra_bytes(int64_t length) {
  return length < kTokenMax ? 0 : (length - kTokenMax) / 255 + 1;
}

class Sequences {
 public:
  Sequences(uint8_t* out, int64_t capacity) : begin_(out), out_(out), end_(out + capacity) {}

  // Literals and the match that follows them; `match` is 0 behind the last. False where they do not fit.
  bool put(const uint8_t* literals, int64_t count, int64_t offset, int64_t match) {
    const int64_t beyond = match == 0 ? 0 : match - kMatchMin;
    const int64_t need = 1 + extra_bytes(count) + count + (match == 0 ? 0 : 2 + extra_bytes(beyond));
    if (need > end_ - out_) return false;
    *out_++ = static_cast<uint8_t>(std::min(count, kTokenMax) << 4 | std::min(beyond, kTokenMax));
    put_extra(count);
    if (count > 0) std::memcpy(out_, literals, static_cast<size_t>(count));
    out_ += count;
    if (match == 0) return true;
    *out_++ = static_cast<uint8_t>(offset & 0xFF);
    *out_++ = static_cast<uint8_t>(offset >> 8);
    put_extra(beyond);
    return true;
  }

  int64_t length() const { return out_ - begin_; }

 private:
  void put_extra(int64_t length) {
    if (length < kTokenMax) return;
    for (length -= kTokenMax; length >= 255; length -= 255) *out_++ = 255;
    *out_++ = static_cast<uint8_t>(length);
  }

  uint8_t* begin_;
  uint8_t* out_;
  uint8_t* end_;
};

// How many bytes from `at` on are those from `from` on, up to `end`.
int64_t common_bytes(const uint8_t* at, const uint8_t* from, const uint8_t* end) {
  const uint8_t* const start = at;
  for (; end - at >= 8; at += 8, from += 8) {
    const uint64_t differs = load<uint64_t>(at) ^ load<uint64_t>(from);
    if (differs != 0) return at - start + std::countr_zero(differs) / 8;
  }
  while (at < end && *at == *from) ++at, ++from;
  return at - start;
}

// Puts all that ends in a match; gives what is left, or null where it does not fit.
const uint8_t* put_matches(Sequences& sequences, const uint8_t* in, int64_t length) {
  std::array<uint32_t, size_t{1} << kHashBits> places{};
  const uint8_t* const last_start = in + length - kLastStart;
  const uint8_t* const match_end = in + length - kLastLiterals;
  const uint8_t* anchor = in;
  int misses = 0;
  for (const uint8_t* at = in + 1; at <= last_start;) {
    const auto word = load<uint32_t>(at);
    uint32_t& place = places[slot_of(word)];
    const uint8_t* from = in + place;
    place = static_cast<uint32_t>(at - in);
    if (at - from > kOffsetMax || load<uint32_t>(from) != word) {
      at += 1 + (misses++ >> kMissesShift);
      continue;
    }
    misses = 0;
    while (at > anchor && from > in && at[-1] == from[-1]) --at, --from;
    const int64_t match = kMatchMin + common_bytes(at + kMatchMin, from + kMatchMin, match_end);
    if (!sequences.put(anchor, at - anchor, at - from, match)) return nullptr;
    at += match;
    anchor = at;
    if (at <= last_start) places[slot_of(load<uint32_t>(at - 2))] = static_cast<uint32_t>(at - 2 - in);
  }
  return anchor;
}

struct Input {
  const uint8_t* at;
  const uint8_t* end;

  // Adds what follows a full half of a token; false where the input ends before it does.
  bool add_extra(int64_t& length) {
    if (length < kTokenMax) return true;
    while (at < end) {
      const uint8_t more = *at++;
      length += more;
      if (more < 255) return true;
    }
    return false;
  }
};

}  // namespace

int64_t lz4_compress(const uint8_t* in, int64_t length, uint8_t* out, int64_t capacity) {
  Sequences sequences(out, capacity);
  const uint8_t* anchor = in;
  if (length > kLastStart) {
    anchor = put_matches(sequences, in, length);
    if (anchor == nullptr) return 0;
  }
  if (!sequences.put(anchor, in + length - anchor, 0, 0)) return 0;
  return sequences.length();
}

bool lz4_decompress(const uint8_t* in, int64_t in_length, uint8_t* out, int64_t out_length) {
  Input input{in, in + in_length};
  const uint8_t* const begin = out;
  const uint8_t* const end = out + out_length;
  while (input.at < input.end) {
    const uint8_t token = *input.at++;
    int64_t count = token >> 4;
    if (!input.add_extra(count) || count > input.end - input.at || count > end - out) return false;
    parquet::wild_copy(out, input.at, count);
    out += count;
    input.at += count;
    if (input.at == input.end) return out == end;
    if (input.end - input.at < 2) return false;
    const int64_t offset = load<uint16_t>(input.at);
    input.at += 2;
    int64_t match = token & kTokenMax;
    if (!input.add_extra(match)) return false;
    match += kMatchMin;
    if (offset == 0 || offset > out - begin || match > end - out) return false;
    parquet::copy_back(out, offset, match);
    out += match;
  }
  return false;
}

}  // namespace bireme
