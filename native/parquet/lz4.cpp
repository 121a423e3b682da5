#include "parquet/lz4.hpp"

#include "parquet/wild_copy.hpp"

namespace bireme::parquet {

namespace {

constexpr int64_t kMatchMin = 4;
constexpr int64_t kLongLength = 15;

class Decompression {
 public:
  Decompression(Bytes in, uint8_t* out, int64_t bytes)
      : in_(in.data()), in_end_(in.data() + in.size()), out_(out), begin_(out), end_(out + bytes) {}

  void run() {
    while (in_ < in_end_) {
      const uint8_t token = *in_++;
      literals(length_of(token >> 4));
      if (in_ == in_end_) break;  // the last sequence is literals only
      match(token & 15);
    }
    if (out_ != end_) corrupt("LZ4 data is shorter than the page");
  }

 private:
  // Four bits of a length, and more bytes of it where they are all ones.
  int64_t length_of(int64_t nibble) {
    if (nibble < kLongLength) return nibble;
    int64_t length = nibble;
    uint8_t more = 255;
    while (more == 255) {
      if (in_ == in_end_) corrupt("the LZ4 data ends within a length");
      more = *in_++;
      length += more;
    }
    return length;
  }

  void literals(int64_t length) {
    if (length > in_end_ - in_) corrupt("LZ4 literals are longer than the input");
    if (length > end_ - out_) corrupt("LZ4 data is longer than the page");
    if (in_end_ - in_ >= length + kWildReadBytes) [[likely]] {
      wild_copy(out_, in_, length);
    } else {
      std::memcpy(out_, in_, static_cast<size_t>(length));
    }
    in_ += length;
    out_ += length;
  }

  void match(int64_t nibble) {
    if (in_end_ - in_ < 2) corrupt("the LZ4 data ends within a match");
    const int64_t offset = load<uint16_t>(in_);
    in_ += 2;
    const int64_t length = length_of(nibble) + kMatchMin;
    if (offset == 0 || offset > out_ - begin_) corrupt("an LZ4 match starts before the page");
    if (length > end_ - out_) corrupt("LZ4 data is longer than the page");
    copy_back(out_, offset, length);
    out_ += length;
  }

  const uint8_t* in_;
  const uint8_t* in_end_;
  uint8_t* out_;
  uint8_t* begin_;
  uint8_t* end_;
};

uint32_t big_endian(const uint8_t* at) {
  return __builtin_bswap32(load<uint32_t>(at));
}

// Whether the sizes in front of Hadoop's blocks add up to what there is.
bool is_hadoop(Bytes in, int64_t bytes) {
  Cursor cursor(in);
  int64_t total = 0;
  while (cursor.left() >= 8) {
    const Bytes sizes = cursor.take(8);
    const uint32_t stored = big_endian(sizes.data() + 4);
    total += big_endian(sizes.data());
    if (stored > cursor.left() || total > bytes) return false;
    cursor.take(stored);
  }
  return cursor.left() == 0 && total == bytes;
}

}  // namespace

void lz4_decompress(Bytes in, uint8_t* out, int64_t bytes) {
  Decompression(in, out, bytes).run();
}

void lz4_hadoop_decompress(Bytes in, uint8_t* out, int64_t bytes) {
  if (!is_hadoop(in, bytes)) return lz4_decompress(in, out, bytes);
  Cursor cursor(in);
  while (cursor.left() > 0) {
    const Bytes sizes = cursor.take(8);
    const int64_t plain = big_endian(sizes.data());
    lz4_decompress(cursor.take(big_endian(sizes.data() + 4)), out, plain);
    out += plain;
  }
}

}  // namespace bireme::parquet
