#include "parquet/delta.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "parquet/bit_packing.hpp"

namespace bireme::parquet {

namespace {

constexpr uint64_t kBlockValuesMax = uint64_t{1} << 24;
constexpr int64_t kUnpackValues = 256;
constexpr int kNarrowWidthMax = 32;

// A value of up to 64 bits, all of which lies before `end`.
uint64_t wide_at(const uint8_t* packed, const uint8_t* end, int width, int64_t index) {
  const int64_t bit = index * width;
  const uint8_t* at = packed + (bit >> 3);
  uint128 word = 0;
  std::memcpy(&word, at, static_cast<size_t>(std::min<int64_t>(end - at, sizeof(word))));
  const auto value = static_cast<uint64_t>(word >> (bit & 7));
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

// The sums go around at the ends of their type, as the encoder's differences do.
template <typename Integer>
class DeltaReader {
  using Word = std::make_unsigned_t<Integer>;

 public:
  DeltaReader(Cursor& in, int64_t count, Integer* out) : in_(in), out_(out), end_(out + count) {
    const uint64_t block_values = in.varint();
    miniblocks_ = in.varint();
    const uint64_t total = in.varint();
    last_ = static_cast<Word>(in.zigzag());
    if (block_values == 0 || block_values > kBlockValuesMax || miniblocks_ == 0 ||
        block_values % miniblocks_ != 0 || block_values / miniblocks_ % 8 != 0) {
      corrupt("a block of differences has an impossible size");
    }
    values_ = static_cast<int64_t>(block_values / miniblocks_);
    if (total != static_cast<uint64_t>(count)) {
      corrupt("there are " + std::to_string(total) + " differences for " + std::to_string(count) + " values");
    }
  }

  void run() {
    if (out_ == end_) return;
    *out_++ = static_cast<Integer>(last_);
    while (out_ < end_) block();
  }

 private:
  void block() {
    const auto least = static_cast<Word>(in_.zigzag());
    const Bytes widths = in_.take(miniblocks_);
    for (size_t index = 0; index < widths.size() && out_ < end_; ++index) miniblock(widths[index], least);
  }

  void miniblock(int width, Word least) {
    if (width > static_cast<int>(8 * sizeof(Word)))
      corrupt("differences have " + std::to_string(width) + " bits");
    const int64_t count = std::min(values_, end_ - out_);
    const int64_t bytes = values_ * width / 8;
    // The last block may be cut where its values end.
    const Bytes packed =
        in_.take(static_cast<uint64_t>(std::min(bytes, std::max(in_.left(), (count * width + 7) / 8))));
    if (width == 0) {
      for (int64_t index = 0; index < count; ++index) append(least);
    } else if (width <= kNarrowWidthMax) {
      narrow(packed, width, count, least);
    } else {
      const uint8_t* end = packed.data() + packed.size();
      for (int64_t index = 0; index < count; ++index) {
        append(least + static_cast<Word>(wide_at(packed.data(), end, width, index)));
      }
    }
  }

  void narrow(Bytes packed, int width, int64_t count, Word least) {
    const Bytes rest = in_.rest();
    uint32_t deltas[kUnpackValues];
    for (int64_t done = 0; done < count; done += kUnpackValues) {
      const int64_t length = std::min(kUnpackValues, count - done);
      unpack_bits(packed.data(), rest.data() + rest.size(), width, done, length, deltas);
      for (int64_t index = 0; index < length; ++index) append(least + deltas[index]);
    }
  }

  void append(Word delta) {
    last_ += delta;
    *out_++ = static_cast<Integer>(last_);
  }

  Cursor& in_;
  Integer* out_;
  Integer* end_;
  uint64_t miniblocks_;
  int64_t values_;
  Word last_;
};

// Lengths to offsets, which must not pass `bytes_max`.
void sum_lengths(int32_t* offsets, int64_t count, int64_t bytes_max) {
  int64_t total = 0;
  for (int64_t index = 0; index < count; ++index) {
    const int32_t length = offsets[index];
    if (length < 0) corrupt("a value has a negative length");
    offsets[index] = static_cast<int32_t>(total);
    total += length;
    if (total > bytes_max) corrupt("a value is longer than its page");
  }
  offsets[count] = static_cast<int32_t>(total);
}

}  // namespace

void read_deltas(Cursor& in, int64_t count, int32_t* out) {
  DeltaReader<int32_t>(in, count, out).run();
}
void read_deltas(Cursor& in, int64_t count, int64_t* out) {
  DeltaReader<int64_t>(in, count, out).run();
}

Spans read_delta_lengths(Cursor& in, int64_t count) {
  Spans spans;
  spans.offsets = Buffer((count + 1) * 4);
  auto* offsets = spans.offsets.as<int32_t>();
  read_deltas(in, count, offsets);
  sum_lengths(offsets, count, std::min<int64_t>(in.left(), std::numeric_limits<int32_t>::max()));
  spans.bytes = in.take(static_cast<uint64_t>(offsets[count]));
  return spans;
}

Spans read_delta_bytes(Cursor& in, int64_t count) {
  Buffer shared((count + 1) * 4);
  auto* prefixes = shared.as<int32_t>();
  read_deltas(in, count, prefixes);
  const Spans suffixes = read_delta_lengths(in, count);
  const auto* ends = suffixes.offsets.as<int32_t>() + 1;
  Spans spans;
  spans.offsets = Buffer((count + 1) * 4);
  auto* offsets = spans.offsets.as<int32_t>();
  int64_t before = 0;
  for (int64_t index = 0; index < count; ++index) {
    if (prefixes[index] < 0 || prefixes[index] > before)
      corrupt("a value shares more bytes than the last one has");
    before = int64_t{prefixes[index]} + ends[index] - ends[index - 1];
    offsets[index] = static_cast<int32_t>(std::min<int64_t>(before, std::numeric_limits<int32_t>::max()));
  }
  sum_lengths(offsets, count, std::numeric_limits<int32_t>::max());
  spans.memory = Buffer(offsets[count]);
  auto* bytes = spans.memory.as<uint8_t>();
  for (int64_t index = 0; index < count; ++index) {
    uint8_t* word = bytes + offsets[index];
    if (prefixes[index] > 0)
      std::memcpy(word, bytes + offsets[index - 1], static_cast<size_t>(prefixes[index]));
    std::memcpy(word + prefixes[index], suffixes.bytes.data() + ends[index - 1],
                static_cast<size_t>(ends[index] - ends[index - 1]));
  }
  spans.bytes = {bytes, static_cast<size_t>(offsets[count])};
  return spans;
}

}  // namespace bireme::parquet
