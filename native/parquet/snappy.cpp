#include "parquet/snappy.hpp"

#include <array>

#include "parquet/wild_copy.hpp"

namespace bireme::parquet {

namespace {

constexpr int64_t kShortLiteralMax = 60;
constexpr int64_t kNumberBytes = 8;
// Runs of numbers are no longer looked for after so many that were shorter than this.
constexpr int kRunTriesMax = 32;
constexpr int64_t kRunBytesMin = 4 * kNumberBytes;
constexpr int64_t kCopyBytes = 16;  // what is copied at once, needed or not
// What one round of the fast loop may read and write.
constexpr int64_t kFastInputBytes = 1 + kCopyBytes + 1 + 4;
constexpr int64_t kFastOutputBytes = kCopyBytes + 64;

// What the tag of a copy says: its length, and the upper bits of an offset that has 11 bits.
constexpr uint32_t kLengthBits = 0x7F;
constexpr uint32_t kOffsetBits = 0x700;
constexpr std::array<uint16_t, 256> make_copies() {
  std::array<uint16_t, 256> entries{};
  for (uint32_t tag = 0; tag < 256; ++tag) {
    const bool is_near = (tag & 3) == 1;
    entries[tag] =
        static_cast<uint16_t>(is_near ? (tag << 3 & kOffsetBits) | (4 + (tag >> 2 & 7)) : (tag >> 2) + 1);
  }
  return entries;
}
constexpr std::array<uint16_t, 256> kCopies = make_copies();

struct Decompression {
  const uint8_t* in;
  const uint8_t* in_end;
  uint8_t* out;
  uint8_t* out_begin;
  uint8_t* out_end;
  int run_tries = kRunTriesMax;

  void literal(int64_t length) {
    if (length > in_end - in) corrupt("a Snappy literal is longer than the input");
    if (length > out_end - out) corrupt("Snappy data is longer than the page");
    std::memcpy(out, in, static_cast<size_t>(length));
    in += length;
    out += length;
  }

  void long_literal(uint8_t tag) {
    const int size_bytes = (tag >> 2) - 59;
    if (size_bytes > in_end - in) corrupt("a Snappy literal is longer than the input");
    uint64_t length = 0;
    std::memcpy(&length, in, static_cast<size_t>(size_bytes));
    in += size_bytes;
    literal(static_cast<int64_t>(length) + 1);
  }

  void copy(int64_t offset, int64_t length) {
    if (offset == 0 || offset > out - out_begin) corrupt("a Snappy copy starts before the page");
    if (length > out_end - out) corrupt("Snappy data is longer than the page");
    copy_back(out, offset, length);
    out += length;
  }

  // One element, with every byte checked.
  void element() {
    const uint8_t tag = *in++;
    const int type = tag & 3;
    if (type == 0) {
      const int64_t length = (tag >> 2) + 1;
      return length <= kShortLiteralMax ? literal(length) : long_literal(tag);
    }
    const int offset_bytes = type == 3 ? 4 : type;
    if (offset_bytes > in_end - in) corrupt("the Snappy data ends within a copy");
    uint32_t offset = 0;
    std::memcpy(&offset, in, static_cast<size_t>(offset_bytes));
    in += offset_bytes;
    if (type == 1) offset |= (tag >> 5) << 8;
    const int64_t length = type == 1 ? 4 + (tag >> 2 & 7) : (tag >> 2) + 1;
    copy(offset, length);
    if (offset == kNumberBytes && length < kNumberBytes && type == 1) run_of_numbers(length);
  }

  void run() {
    while (in < in_end) {
      fast_loop();
      if (in < in_end) element();
    }
    if (out != out_end) corrupt("Snappy data is shorter than the page");
  }

  bool has_room(const uint8_t* from, const uint8_t* to) const {
    return in_end - from >= kFastInputBytes && out_end - to >= kFastOutputBytes;
  }

  // Numbers of eight bytes that differ from the one before in their lowest few, as ascending keys do: each is
  // a literal and a copy of the rest from eight bytes back. After such a copy of `length` bytes, takes the
  // numbers that are stored alike. Keeps the last in a register: a load of what several stores have just
  // written waits.
  void run_of_numbers(int64_t length) {
    const int64_t literal = kNumberBytes - length;
    const auto bits = static_cast<uint32_t>(8 * literal);
    const uint64_t fresh = (uint64_t{1} << bits) - 1;
    const auto literal_tag = static_cast<uint64_t>(literal - 1) << 2;
    const auto copy_tag = static_cast<uint64_t>(length - 4) << 2 | 1;
    const uint64_t alike = uint64_t{0xFFFF} << bits << 8 | 0xFF;
    const uint64_t wanted = (uint64_t{kNumberBytes} << 8 | copy_tag) << bits << 8 | literal_tag;
    const uint8_t* const begin = out;
    auto number = load<uint64_t>(out - kNumberBytes);
    while (has_room(in, out)) {
      const auto pair = load<uint64_t>(in);
      if ((pair & alike) != wanted) break;
      number = (number & ~fresh) | (pair >> 8 & fresh);
      store(out, number);
      out += kNumberBytes;
      in += literal + 3;
    }
    run_tries -= out - begin < kRunBytesMin;
  }

  // A short literal, if there is one, and a copy at a time, while input and output have room for the longest
  // of both. Stops before an element that is neither, and before one that may begin a run of numbers.
  void fast_loop() {
    const uint8_t* from = in;
    uint8_t* to = out;
    uint32_t tag = from < in_end ? *from : 0;
    while (has_room(from, to)) {
      if ((tag & 3) == 0) {
        const int64_t length = (tag >> 2) + 1;
        if (length > kCopyBytes) [[unlikely]]
          break;
        copy_16(to, from + 1);
        to += length;
        from += 1 + length;
        tag = *from;
        if ((tag & 3) == 0) continue;
      }
      const uint32_t type = tag & 3;
      if (type == 3) [[unlikely]]
        break;
      // The next tag is at one of two places; both are read before it is known which.
      const uint32_t tag_if_near = from[2];
      const uint32_t tag_if_far = from[3];
      // Nothing could predict which of the two kinds of short copies it is, so that is not branched on.
      const uint32_t entry = kCopies[tag];
      const uint32_t operand = load<uint16_t>(from + 1) & (0xFFFFu >> ((type & 1) * 8));
      const int64_t offset = (entry & kOffsetBits) | operand;
      const int64_t length = entry & kLengthBits;
      if (static_cast<uint64_t>(offset - 1) >= static_cast<uint64_t>(to - out_begin)) [[unlikely]]
        break;
      if (length <= kCopyBytes && offset >= kCopyBytes) [[likely]] {
        copy_16(to, to - offset);
      } else if (offset == kNumberBytes && length < kNumberBytes && run_tries > 0) {
        break;
      } else {
        copy_back(to, offset, length);
      }
      to += length;
      from += 1 + type;
      tag = __builtin_expect_with_probability(type == 1, 1, 0.5) ? tag_if_near : tag_if_far;
    }
    in = from;
    out = to;
  }
};

}  // namespace

Bytes snappy_stored(Bytes in, int64_t bytes) {
  constexpr int64_t kSizesBytesMax = 11;  // of the length of it all, a tag, and the length of a literal
  const auto overhead = static_cast<int64_t>(in.size()) - bytes;
  if (overhead < 2 || overhead > kSizesBytesMax) return {};
  Cursor cursor(in);
  if (cursor.varint() != static_cast<uint64_t>(bytes)) return {};
  const uint8_t tag = cursor.byte();
  const int size_bytes = (tag >> 2) - 59;
  if ((tag & 3) != 0) return {};
  uint64_t length = tag >> 2;
  if (size_bytes > 0) {
    length = 0;
    const Bytes size = cursor.take(static_cast<uint64_t>(size_bytes));
    std::memcpy(&length, size.data(), size.size());
  }
  return length + 1 == static_cast<uint64_t>(bytes) && cursor.left() == bytes ? cursor.rest() : Bytes{};
}

void snappy_decompress(Bytes in, uint8_t* out, int64_t bytes) {
  Cursor cursor(in);
  if (cursor.varint() != static_cast<uint64_t>(bytes))
    corrupt("Snappy data does not have the size of its page");
  const Bytes rest = cursor.rest();
  Decompression run{rest.data(), rest.data() + rest.size(), out, out, out + bytes};
  run.run();
}

}  // namespace bireme::parquet
