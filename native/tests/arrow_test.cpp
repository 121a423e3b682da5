// The C data interface in both directions: what is exported comes back, slices and offsets count, nothing
// leaks or is released twice.
#include <cstring>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/errors.hpp"
#include "arrow/output.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

OutputColumn integers(const std::vector<int32_t>& values, const std::vector<int>& nulls) {
  OutputColumn column{.type = simple_type(Kind::Int32), .rows = static_cast<int64_t>(values.size())};
  column.values = Buffer(column.rows * 4);
  std::memcpy(column.values.data(), values.data(), values.size() * 4);
  if (nulls.empty()) return column;
  column.validity = Buffer(bitmap_bytes(column.rows));
  std::memset(column.validity.data(), 0xff, static_cast<size_t>(bitmap_bytes(column.rows)));
  for (int row : nulls) column.validity.as<uint8_t>()[row / 8] &= static_cast<uint8_t>(~(1 << (row % 8)));
  column.null_count = static_cast<int64_t>(nulls.size());
  return column;
}

OutputColumn texts(const std::vector<const char*>& values) {
  OutputColumn column{.type = simple_type(Kind::String), .rows = static_cast<int64_t>(values.size())};
  column.offsets = Buffer((column.rows + 1) * 4);
  column.values = Buffer(0);
  int32_t end = 0;
  column.offsets.as<int32_t>()[0] = 0;
  for (size_t row = 0; row < values.size(); ++row) {
    const auto size = static_cast<int32_t>(std::strlen(values[row]));
    column.values.grow(end + size);
    std::memcpy(column.values.as<char>() + end, values[row], static_cast<size_t>(size));
    end += size;
    column.offsets.as<int32_t>()[row + 1] = end;
  }
  return column;
}

void check_round_trip() {
  std::vector<OutputColumn> columns;
  columns.push_back(integers({1, 2, 3, 4}, {1}));
  columns.push_back(texts({"", "a", "bcd", "é"}));
  ArrowArray array;
  ArrowSchema schema;
  export_batch(std::move(columns), 4, &array, &schema);
  const Batch batch = Batch::take_over(&array, &schema);
  CHECK(array.release == nullptr && schema.release == nullptr);
  CHECK(batch.rows() == 4 && batch.count() == 2);
  CHECK(batch[0].as<int32_t>()[2] == 3 && !batch[0].is_valid(1) && batch[0].is_valid(3));
  CHECK(batch[1].string_at(2) == "bcd" && batch[1].string_at(0).empty());
}

// A batch that is a slice: the offset of the struct adds to those of its columns.
void check_offsets() {
  std::vector<OutputColumn> columns;
  columns.push_back(integers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {10}));
  columns.push_back(texts({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}));
  ArrowArray array;
  ArrowSchema schema;
  export_batch(std::move(columns), 12, &array, &schema);
  array.offset = 4;
  array.length = 3;
  for (int64_t child = 0; child < 2; ++child) {
    array.children[child]->offset = 5;
    array.children[child]->length = 7;
  }
  const Batch batch = Batch::take_over(&array, &schema);
  CHECK(batch.rows() == 3);
  CHECK(batch[0].as<int32_t>()[0] == 9 && !batch[0].is_valid(1) && batch[0].is_valid(2));
  CHECK(batch[1].string_at(2) == "11");
}

// A consumer may move a child out; the parent must then leave it alone.
void check_moved_child() {
  std::vector<OutputColumn> columns;
  columns.push_back(integers({7}, {}));
  columns.push_back(integers({8}, {}));
  ArrowArray array;
  ArrowSchema schema;
  export_batch(std::move(columns), 1, &array, &schema);
  ArrowArray child = *array.children[1];
  array.children[1]->release = nullptr;
  array.release(&array);
  CHECK(static_cast<const int32_t*>(child.buffers[1])[0] == 8);
  child.release(&child);
  schema.release(&schema);
}

void check_faults() {
  ArrowArray array;
  ArrowSchema schema;
  std::vector<OutputColumn> columns;
  columns.push_back(integers({1, 2}, {}));
  export_batch(std::move(columns), 3, &array, &schema);
  CHECK_THROWS(Batch::take_over(&array, &schema), EngineBug);
  CHECK(array.release == nullptr && schema.release == nullptr);
}

void check_types() {
  CHECK(parse_type("d:12,2,64").kind == Kind::Decimal64 && parse_type("d:12,2,64").scale == 2);
  CHECK(parse_type("d:38,10").kind == Kind::Decimal128 && parse_type("d:38,10").precision == 38);
  CHECK(parse_type("d:60,10,256").kind == Kind::Other && parse_type("d:5,-2").kind == Kind::Other);
  CHECK(parse_type("tsu:Europe/Zurich").kind == Kind::Timestamp &&
        parse_type("tsu:Europe/Zurich").unit == 'u');
  CHECK(parse_type("ttm").kind == Kind::Time32 && parse_type("ttu").kind == Kind::Time64);
  CHECK(parse_type("tdD").kind == Kind::Date32 && parse_type("tdm").kind == Kind::Other);
  CHECK(parse_type("+l").kind == Kind::Other && parse_type("vu").kind == Kind::Other);
}

void check_pool() {
  trim_pool();
  const int64_t before = pool_statistics().bytes_in_use;
  const void* place = nullptr;
  {
    const Buffer first(1 << 20);
    place = first.data();
    CHECK(pool_statistics().bytes_in_use >= before + (1 << 20));
  }
  CHECK(pool_statistics().bytes_pooled >= (1 << 20));
  const Buffer second(1 << 20);
  CHECK(second.data() == place);
  const int64_t alone = pool_statistics().bytes_pooled_max;
  {
    // A quota of nothing takes the place of the limit that holds without quotas.
    const PoolQuota quota;
    {
      const Buffer third(1 << 20);
    }
    CHECK(pool_statistics().bytes_pooled == 0);
    PoolQuota other;
    const int64_t in_use = pool_statistics().bytes_in_use;
    other.set(in_use + (4 << 20), 8 << 20);
    {
      const Buffer fourth(1 << 20);
    }
    CHECK(pool_statistics().bytes_pooled >= (1 << 20) && pool_statistics().bytes_pooled <= (4 << 20));
    // What is kept gives way to what is taken, of whatever size.
    const Buffer fifth(3 << 20);
    CHECK(pool_statistics().bytes_pooled + pool_statistics().bytes_in_use <= in_use + (4 << 20));
    other.set(in_use + (40 << 20), 1 << 20);
    {
      const Buffer sixth((1 << 20) + 1);  // more than may be kept
    }
    CHECK(pool_statistics().bytes_pooled <= (1 << 20));
    // What was kept longest goes, so that small blocks of earlier work do not cost a large one its pages.
    other.set(in_use + (64 << 20), 4 << 20);
    {
      std::vector<Buffer> small;
      for (int index = 0; index < 1024; ++index) small.emplace_back(4 << 10);
    }
    {
      const Buffer large(1 << 20);
    }
    const int64_t pooled = pool_statistics().bytes_pooled;
    const Buffer again(1 << 20);
    CHECK(pooled <= (4 << 20) && pool_statistics().bytes_pooled <= pooled - (1 << 20));
  }
  CHECK(pool_statistics().bytes_pooled_max == alone);
  {
    start_meter();
    const Buffer kept(1 << 20);
    {
      const Buffer passing(2 << 20);
    }
    CHECK(metered_peak() >= (3 << 20) && metered_peak() < (4 << 20));
  }
  Buffer grown(10);
  std::memset(grown.data(), 7, 10);
  grown.grow(100'000);
  CHECK(grown.size() == 100'000 && grown.as<uint8_t>()[9] == 7);
}

}  // namespace

int main() {
  check_round_trip();
  check_offsets();
  check_moved_child();
  check_faults();
  check_types();
  check_pool();
  return test::finish();
}
