#include "parquet/spread.hpp"

#include "parquet/bitmap.hpp"
#include "parquet/bytes.hpp"

namespace bireme::parquet {

namespace {

template <typename Cell>
void spread(const void* dense, const uint8_t* bitmap, int64_t rows, void* cells) {
  const auto* from = static_cast<const Cell*>(dense);
  auto* to = static_cast<Cell*>(cells);
  int64_t row = 0;
  for (; rows - row >= 8; row += 8) {
    const unsigned bits = bitmap[row >> 3];
    if (bits == 0xFF) {
      std::memcpy(to + row, from, 8 * sizeof(Cell));
      from += 8;
      continue;
    }
    for (int bit = 0; bit < 8; ++bit) {
      to[row + bit] = *from;
      from += (bits >> bit) & 1;
    }
  }
  for (; row < rows; ++row) {
    to[row] = *from;
    from += bit_at(bitmap, row);
  }
}

}  // namespace

void spread_cells(const void* dense, const uint8_t* bitmap, int64_t rows, int cell_bytes, void* cells) {
  switch (cell_bytes) {
    case 1:
      return spread<uint8_t>(dense, bitmap, rows, cells);
    case 2:
      return spread<uint16_t>(dense, bitmap, rows, cells);
    case 4:
      return spread<uint32_t>(dense, bitmap, rows, cells);
    case 8:
      return spread<uint64_t>(dense, bitmap, rows, cells);
    default:
      return spread<uint128>(dense, bitmap, rows, cells);
  }
}

void spread_ends(const int32_t* dense, const uint8_t* bitmap, int64_t rows, int32_t start, int32_t* ends) {
  int32_t end = start;
  for (int64_t row = 0; row < rows; ++row) {
    if (bit_at(bitmap, row)) end = *dense++;
    ends[row] = end;
  }
}

void ValidityWriter::append(const Validity::Located& located, int64_t rows) {
  if (located.nulls > 0 && !bitmap_) {
    bitmap_ = Buffer(bitmap_bytes(rows_));
    fill_bits(true, done_, bitmap_.as<uint8_t>(), 0);
  }
  if (located.nulls > 0) {
    copy_bits(located.bitmap, 0, rows, bitmap_.as<uint8_t>(), done_);
  } else if (bitmap_) {
    fill_bits(true, rows, bitmap_.as<uint8_t>(), done_);
  }
  done_ += rows;
  nulls_ += located.nulls;
}

void ValidityWriter::finish(OutputColumn& column) {
  column.null_count = nulls_;
  column.validity = std::move(bitmap_);
}

}  // namespace bireme::parquet
