#include "parquet/levels.hpp"

#include <algorithm>
#include <bit>

#include "arrow/output.hpp"
#include "parquet/bitmap.hpp"
#include "parquet/codes.hpp"

namespace bireme::parquet {

namespace {

// Whole words, so that ranks can be read by the word.
Buffer bitmap_of(int64_t rows) {
  return Buffer::zeroed((rows + 63) / 64 * 8);
}

void make_room(Buffer& buffer, int64_t bytes) {
  if (buffer.capacity() < bytes + 64) buffer = Buffer(bytes);
}

}  // namespace

Validity Validity::from_runs(Bytes runs, int64_t rows) {
  Validity found(rows);
  CodeReader levels(runs, 1);
  if (rows == 0) return found;
  const CodeReader::Run& first = levels.run_at(0);
  if (!first.is_packed && first.code == 1 && first.end >= rows) return found;
  found.bitmap_ = bitmap_of(rows);
  auto* bits = found.bitmap_.as<uint8_t>();
  for (int64_t row = 0; row < rows;) {
    const CodeReader::Run& run = levels.run_at(row);
    const int64_t count = std::min(rows, run.end) - row;
    if (run.is_packed) {
      copy_bits(run.packed.data(), row - run.begin, count, bits, row);
    } else {
      fill_bits(run.code == 1, count, bits, row);
    }
    row += count;
  }
  found.index_bitmap();
  return found;
}

Validity Validity::from_legacy_bits(Bytes bits, int64_t rows) {
  Validity found(rows);
  found.bitmap_ = bitmap_of(rows);
  auto* bitmap = found.bitmap_.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const int bit = (bits[static_cast<size_t>(row >> 3)] >> (7 - (row & 7))) & 1;
    bitmap[row >> 3] = static_cast<uint8_t>(bitmap[row >> 3] | (bit << (row & 7)));
  }
  found.index_bitmap();
  return found;
}

void Validity::index_bitmap() {
  const auto* words = bitmap_.as<uint64_t>();
  uint32_t before = 0;
  ranks_.resize(static_cast<size_t>((rows_ + 63) / 64));
  for (size_t word = 0; word < ranks_.size(); ++word) {
    ranks_[word] = before;
    before += static_cast<uint32_t>(std::popcount(words[word]));
  }
  present_ = before;
}

uint32_t Validity::rank(int64_t row) const {
  if (row >= rows_) return static_cast<uint32_t>(present_);
  const uint64_t below = bitmap_.as<uint64_t>()[row >> 6] & ((uint64_t{1} << (row & 63)) - 1);
  return ranks_[static_cast<size_t>(row >> 6)] + static_cast<uint32_t>(std::popcount(below));
}

Validity::Located Validity::locate(const Positions& rows, Buffer& positions, Buffer& bitmap) const {
  if (!has_nulls()) return {rows, nullptr, 0};
  make_room(bitmap, bitmap_bytes(rows.count));
  auto* bits = bitmap.as<uint8_t>();
  const auto* all = bitmap_.as<uint8_t>();
  if (rows.is_range()) {
    copy_bits(all, rows.begin, rows.count, bits, 0);
    const uint32_t first = rank(rows.begin);
    const uint32_t count = rank(int64_t{rows.begin} + rows.count) - first;
    return {{nullptr, first, count}, bits, rows.count - count};
  }
  make_room(positions, int64_t{rows.count} * 4);
  auto* list = positions.as<uint32_t>();
  uint32_t count = 0;
  fill_bits(false, rows.count, bits, 0);
  for (uint32_t index = 0; index < rows.count; ++index) {
    const uint32_t row = rows.list[index];
    const bool is_valid = bit_at(all, row);
    list[count] = rank(row);
    count += is_valid;
    bits[index >> 3] = static_cast<uint8_t>(bits[index >> 3] | (is_valid << (index & 7)));
  }
  return {{list, 0, count}, bits, rows.count - count};
}

}  // namespace bireme::parquet
