#include "kernels/group_merge.hpp"

#include <algorithm>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/hash.hpp"
#include "kernels/take.hpp"

namespace bireme {

namespace {

// Groups whose keys, slots and sums fill about half of a second-level cache of 1 MiB.
constexpr int64_t kPartRows = 16 * 1024;
// With more parts than this the pieces that a batch is cut into are hardly longer than what it takes to cut
// them.
constexpr int64_t kPartsMax = 1024;

// The part of a row: from the lower half of its hash, as the partition is from the upper one.
uint32_t part_of(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(((hash & 0xFFFFFFFF) * parts) >> 32);
}

// Rows [begin, begin + rows) of a column.
Column slice_of(Column column, int64_t begin, int64_t rows) {
  column.rows = rows;
  column.null_count = -1;
  if (column.validity != nullptr) column.validity_offset += begin;
  if (column.is_dictionary()) {
    column.values = column.codes() + begin;
  } else if (column.type.kind == Kind::Bool) {
    column.bool_offset += begin;
  } else if (column.offsets != nullptr) {
    column.offsets += begin;
  } else if (column.values != nullptr) {
    column.values = column.as<char>() + begin * width_of(column.type.kind);
  }
  return column;
}

}  // namespace

GroupMerge::GroupMerge(std::vector<Type> key_types, std::vector<Aggregate> aggregates)
    : keys_(key_types.size()), table_(std::move(key_types), std::move(aggregates)) {}

void GroupMerge::add_states(Batch states) {
  rows_ += states.rows();
  inputs_.emplace_back(std::move(states), true);
}

void GroupMerge::add_rows(Batch rows) {
  rows_ += rows.rows();
  inputs_.emplace_back(std::move(rows), false);
}

void GroupMerge::choose_parts() {
  parts_ = keys_ == 0 ? 1 : static_cast<uint32_t>(std::clamp<int64_t>(rows_ / kPartRows, 1, kPartsMax));
  if (parts_ == 1) return;
  for (Input& input : inputs_) order_by_part(input);
}

void GroupMerge::order_by_part(Input& input) const {
  const int64_t rows = input.batch.rows();
  if (rows > INT32_MAX) throw Unsupported("a batch has more than 2147483647 rows");
  if (input.batch.count() < static_cast<int>(keys_))
    throw EngineBug("a batch to be merged lacks key columns");
  std::vector<const Column*> columns;
  for (size_t key = 0; key < keys_; ++key) columns.push_back(&input.batch[static_cast<int>(key)]);
  Buffer hashes(rows * 8);
  auto* hash = hashes.as<uint64_t>();
  hash_rows(columns, rows, hash);
  input.offsets.assign(parts_ + 1, 0);
  for (int64_t row = 0; row < rows; ++row) ++input.offsets[part_of(hash[row], parts_) + 1];
  for (uint32_t part = 0; part < parts_; ++part) input.offsets[part + 1] += input.offsets[part];
  std::vector<int64_t> next(input.offsets.begin(), input.offsets.end() - 1);
  Buffer order(rows * 4);
  auto* positions = order.as<int32_t>();
  for (int64_t row = 0; row < rows; ++row) {
    positions[next[part_of(hash[row], parts_)]++] = static_cast<int32_t>(row);
  }
  Column places;
  places.type = simple_type(Kind::Int32);
  places.values = positions;
  places.rows = rows;
  for (const Column& column : input.batch.columns()) {
    input.owned.push_back(take(column, places));
    Column view = view_of(input.owned.back());
    view.type = column.type;
    view.dictionary = column.dictionary;
    input.columns.push_back(view);
  }
}

void GroupMerge::take_part(const Input& input) {
  if (parts_ == 1) {
    input.is_states ? table_.merge(input.batch) : table_.update(input.batch, 0);
    return;
  }
  const int64_t begin = input.offsets[part_];
  const int64_t rows = input.offsets[part_ + 1] - begin;
  if (rows == 0) return;
  std::vector<OutputColumn> texts;
  std::vector<Column> columns;
  for (const Column& column : input.columns) {
    columns.push_back(slice_of(column, begin, rows));
    if (!column.is_dictionary() || column.dictionary->rows <= rows) continue;
    // A table looks at every entry of a dictionary that it is given; so of a long one only what is meant.
    Column codes = columns.back();
    codes.type = simple_type(Kind::Int32);
    codes.dictionary = nullptr;
    texts.push_back(take(*column.dictionary, codes));
    columns.back() = view_of(texts.back());
  }
  const Batch batch = Batch::of_columns(std::move(columns), rows);
  input.is_states ? table_.merge(batch) : table_.update(batch, 0);
}

std::optional<GroupTable::Rows> GroupMerge::next() {
  if (parts_ == 0) choose_parts();
  if (part_ == parts_) return std::nullopt;
  if (parts_ > 1) {
    table_.reserve(rows_ / parts_);
    table_.reserve_slots(rows_ / parts_);
  }
  for (const Input& input : inputs_) take_part(input);
  if (++part_ == parts_) inputs_.clear();
  return table_.finish();
}

}  // namespace bireme
