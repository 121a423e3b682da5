#include "parquet/snappy.hpp"

#include "parquet/wild_copy.hpp"

namespace bireme::parquet {

namespace {

constexpr int64_t kShortLiteralMax = 60;
// Input that an element of the fast loop may look at: its tag, its offset or a short literal, and what wild
// copies read.
constexpr int64_t kFastInputBytes = 1 + 64 + kWildReadBytes;

struct Decompression {
  const uint8_t* in;
  const uint8_t* in_end;
  uint8_t* out;
  uint8_t* out_begin;
  uint8_t* out_end;

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
    if (type == 1) {
      copy(((tag >> 5) << 8) | offset, 4 + ((tag >> 2) & 7));
    } else {
      copy(offset, (tag >> 2) + 1);
    }
  }

  void fast_loop() {
    while (in_end - in >= kFastInputBytes) {
      const uint8_t tag = *in;
      const int type = tag & 3;
      if (type == 0) {
        const int64_t length = (tag >> 2) + 1;
        if (length > kShortLiteralMax || length > out_end - out) [[unlikely]] {
          element();
          continue;
        }
        wild_copy(out, in + 1, length);
        in += 1 + length;
        out += length;
      } else if (type == 1) {
        copy(((tag >> 5) << 8) | in[1], 4 + ((tag >> 2) & 7));
        in += 2;
      } else if (type == 2) {
        copy(load<uint16_t>(in + 1), (tag >> 2) + 1);
        in += 3;
      } else {
        element();
      }
    }
  }
};

}  // namespace

void snappy_decompress(Bytes in, uint8_t* out, int64_t bytes) {
  Cursor cursor(in);
  if (cursor.varint() != static_cast<uint64_t>(bytes))
    corrupt("Snappy data does not have the size of its page");
  const Bytes rest = cursor.rest();
  Decompression run{rest.data(), rest.data() + rest.size(), out, out, out + bytes};
  run.fast_loop();
  while (run.in < run.in_end) run.element();
  if (run.out != run.out_end) corrupt("Snappy data is shorter than the page");
}

}  // namespace bireme::parquet
