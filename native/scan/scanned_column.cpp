#include "scan/scanned_column.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/take.hpp"
#include "parquet/loops.hpp"

namespace bireme::scan {

namespace {

using parquet::Selection;

class EncodedColumn final : public ScannedColumn {
 public:
  EncodedColumn(parquet::ChunkSpec spec, parquet::Decompressor* decompressor)
      : chunk_(std::move(spec), decompressor) {}

  const Type& type() const override { return chunk_.type(); }
  bool is_dictionary() override { return chunk_.is_dictionary(); }
  const Column& dictionary() override { return chunk_.dictionary(); }
  OutputColumn read(const Selection& rows) override { return chunk_.read(rows); }
  OutputColumn read_codes(const Selection& rows) override { return chunk_.read_codes(rows); }
  int64_t select_codes(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                       uint32_t* out) override {
    return chunk_.select_codes(rows, keep, keep_null, out);
  }
  const Column* whole() const override { return nullptr; }
  void forget_pages() override { chunk_.forget_pages(); }
  void forget_dictionary() override { chunk_.forget_dictionary(); }
  int64_t bytes_decompressed() const override { return chunk_.bytes_decompressed(); }
  int64_t pages_skipped() const override { return chunk_.pages_skipped(); }

 private:
  parquet::ChunkReader chunk_;
};

// The selected rows as positions that `take` takes, counted from row `first`, which is 0 where all are selected; `made`
// gets them where the selection does not list them so.
Column positions_of(const Selection& rows, int64_t first, Buffer& made) {
  Column positions{.type = simple_type(Kind::Int32), .rows = rows.count, .values = rows.rows};
  if (!rows.all() && first == 0) return positions;
  made = Buffer(rows.count * 4);
  auto* out = made.as<int32_t>();
  if (rows.all()) {
    std::iota(out, out + rows.count, 0);
  } else {
    for (int64_t index = 0; index < rows.count; ++index)
      out[index] = static_cast<int32_t>(rows.rows[index] - first);
  }
  positions.values = made.data();
  return positions;
}

class DecodedColumn final : public ScannedColumn {
 public:
  DecodedColumn(const Column& column, int64_t first) : column_(column), first_(first) {}

  const Type& type() const override { return column_.type; }
  bool is_dictionary() override { return column_.is_dictionary(); }
  const Column& dictionary() override { return *column_.dictionary; }
  OutputColumn read(const Selection& rows) override {
    if (!column_.is_dictionary()) return gather(column_, rows);
    const OutputColumn codes = read_codes(rows);
    return take(*column_.dictionary, view_of(codes));
  }
  OutputColumn read_codes(const Selection& rows) override {
    Column codes = column_;
    codes.type = simple_type(Kind::Int32);
    codes.dictionary = nullptr;
    return gather(codes, rows);
  }
  int64_t select_codes(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                       uint32_t* out) override;
  const Column* whole() const override { return &column_; }
  void forget_pages() override {}
  void forget_dictionary() override {}
  int64_t bytes_decompressed() const override { return 0; }
  int64_t pages_skipped() const override { return 0; }

 private:
  OutputColumn gather(const Column& column, const Selection& rows) const {
    Buffer made;
    return take(column, positions_of(rows, first_, made));
  }
  int64_t select_with_nulls(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                            uint32_t* out) const;

  const Column& column_;
  const int64_t first_;  // the row that it begins with
};

int64_t DecodedColumn::select_with_nulls(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                                         uint32_t* out) const {
  int64_t kept = 0;
  for (int64_t index = 0; index < rows.count; ++index) {
    const uint32_t selected = rows.all() ? static_cast<uint32_t>(index) : rows.rows[index];
    const int64_t row = selected - first_;
    out[kept] = selected;
    kept += column_.is_valid(row) ? keep[static_cast<size_t>(column_.codes()[row])] : keep_null;
  }
  return kept;
}

int64_t DecodedColumn::select_codes(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                                    uint32_t* out) {
  if (column_.may_have_nulls()) return select_with_nulls(rows, keep, keep_null, out);
  Buffer flags(static_cast<int64_t>(keep.size()));
  std::copy(keep.begin(), keep.end(), flags.as<uint8_t>());
  parquet::Keep kept{.flags = flags.as<uint8_t>(), .count = static_cast<int64_t>(keep.size())};
  for (size_t code = 0; code < std::min<size_t>(keep.size(), 256); ++code)
    kept.bits[code / 32] |= static_cast<uint32_t>(keep[code] != 0) << (code % 32);
  const auto* codes = reinterpret_cast<const uint32_t*>(column_.codes());
  if (rows.all()) return parquet::loops().select_range(codes, rows.count, 0, kept, out);
  Buffer chosen(rows.count * 4);
  auto* listed = chosen.as<uint32_t>();
  for (int64_t index = 0; index < rows.count; ++index) listed[index] = codes[rows.rows[index] - first_];
  return parquet::loops().select_list(listed, rows.count, rows.rows, kept, out);
}

}  // namespace

std::unique_ptr<ScannedColumn> scanned_chunk(parquet::ChunkSpec spec, parquet::Decompressor* decompressor) {
  return std::make_unique<EncodedColumn>(std::move(spec), decompressor);
}

std::unique_ptr<ScannedColumn> scanned_memory(const Column& column, int64_t first) {
  return std::make_unique<DecodedColumn>(column, first);
}

}  // namespace bireme::scan
