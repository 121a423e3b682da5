#include "kernels/join_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

std::vector<const Column*> all_columns(const Batch& batch) {
  std::vector<const Column*> columns;
  for (const Column& column : batch.columns()) columns.push_back(&column);
  return columns;
}

OutputColumn row_numbers(int64_t rows) {
  OutputColumn column;
  column.type = simple_type(Kind::Int64);
  column.rows = rows;
  column.values = Buffer(rows * 8);
  return column;
}

void trim(OutputColumn& column, int64_t rows) {
  column.rows = rows;
  column.values.shrink(rows * 8);
}

}  // namespace

JoinTable::JoinTable(Batch source, int null_equal_count)
    : build_keys_(std::move(source)), can_filter_(null_equal_count == 0), rows_(build_keys_.rows()) {
  const Batch& keys = build_keys_;
  if (rows_ >= int64_t{kNoEntry}) throw Unsupported("a join table of 2^32 rows or more; partition the join");
  std::vector<Type> types;
  std::vector<bool> nullable;
  for (const Column& column : keys.columns()) {
    types.push_back(column.type);
    nullable.push_back(static_cast<int>(nullable.size()) < null_equal_count);
  }
  keys_ = std::make_unique<KeyIndex>(types, nullable);
  KeyRows reader(*keys_, all_columns(keys));
  KeyRows::expect(*keys_, rows_);
  Cells<uint32_t> entries;
  entries.resize(rows_);
  for (int64_t begin = 0; begin < rows_; begin += kVectorRows) {
    reader.find_or_add(*keys_, begin, std::min(kVectorRows, rows_ - begin), entries.data() + begin);
  }
  group_rows(entries.data());
}

std::shared_ptr<const KeyFilter> JoinTable::key_filter() const {
  std::call_once(filter_once_, [this] {
    if (can_filter_) filter_ = make_key_filter(build_keys_);
    if (filter_ != nullptr) filter_bytes_ = filter_->nbytes();
  });
  return filter_;
}

// Sorts the rows by the number of their key, keeping their order.
void JoinTable::group_rows(const uint32_t* entries) {
  const int64_t distinct = keys_->size();
  int64_t present = 0;
  // Keys are numbered in the order of rows, but for NULL, whose number comes after those of its vector.
  bool in_order = true;
  for (int64_t row = 0; row < rows_; ++row) {
    present += entries[row] != kNoEntry;
    in_order &= entries[row] == static_cast<uint32_t>(row);
  }
  has_null_key_ = present < rows_;
  is_unique_ = distinct == present;
  is_identity_ = is_unique_ && in_order;
  if (is_identity_) return;
  rows_of_.resize(present);
  if (is_unique_) {
    for (int64_t row = 0; row < rows_; ++row) {
      if (entries[row] != kNoEntry) rows_of_[entries[row]] = static_cast<uint32_t>(row);
    }
    return;
  }
  // Counted one place up and moved one place down while rows are put in, so that in the end starts_[key] is its start.
  starts_.resize(distinct + 2, 0);
  uint32_t* starts = starts_.data();
  for (int64_t row = 0; row < rows_; ++row) {
    if (entries[row] != kNoEntry) ++starts[entries[row] + 2];
  }
  for (int64_t key = 2; key < distinct + 2; ++key) starts[key] += starts[key - 1];
  for (int64_t row = 0; row < rows_; ++row) {
    if (entries[row] != kNoEntry) rows_of_[starts[entries[row] + 1]++] = static_cast<uint32_t>(row);
  }
}

void JoinTable::find(const Batch& keys, uint32_t* entries) const {
  KeyRows reader(*keys_, all_columns(keys));
  for (int64_t begin = 0; begin < keys.rows(); begin += kVectorRows) {
    reader.find(*keys_, begin, std::min(kVectorRows, keys.rows() - begin), entries + begin);
  }
}

std::vector<OutputColumn> JoinTable::match(const Batch& keys) const {
  Cells<uint32_t> entries;
  entries.resize(keys.rows());
  std::vector<OutputColumn> out;
  if (rows_ == 0) {
    out.push_back(row_numbers(0));
    out.push_back(row_numbers(0));
    return out;
  }
  find(keys, entries.data());
  if (is_unique_) {
    emit_single(entries.data(), keys.rows(), out);
  } else {
    emit_many(entries.data(), keys.rows(), out);
  }
  return out;
}

void JoinTable::emit_single(const uint32_t* entries, int64_t rows, std::vector<OutputColumn>& out) const {
  out.push_back(row_numbers(rows));
  out.push_back(row_numbers(rows));
  int64_t* probe = out[0].values.as<int64_t>();
  int64_t* build = out[1].values.as<int64_t>();
  int64_t pairs = 0;
  for (int64_t row = 0; row < rows; ++row) {
    // Written always, counted only where there is a match: no branch to guess.
    probe[pairs] = row;
    build[pairs] = entries[row];
    pairs += entries[row] != kNoEntry;
  }
  if (!is_identity_) {
    for (int64_t pair = 0; pair < pairs; ++pair) build[pair] = rows_of_[build[pair]];
  }
  trim(out[0], pairs);
  trim(out[1], pairs);
}

void JoinTable::emit_many(const uint32_t* entries, int64_t rows, std::vector<OutputColumn>& out) const {
  int64_t pairs = 0;
  const uint32_t* starts = starts_.data();
  for (int64_t row = 0; row < rows; ++row) {
    if (entries[row] != kNoEntry) pairs += starts[entries[row] + 1] - starts[entries[row]];
  }
  out.push_back(row_numbers(pairs));
  out.push_back(row_numbers(pairs));
  int64_t* probe = out[0].values.as<int64_t>();
  int64_t* build = out[1].values.as<int64_t>();
  int64_t pair = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (entries[row] == kNoEntry) continue;
    const uint32_t end = starts[entries[row] + 1];
    for (uint32_t at = starts[entries[row]]; at < end; ++at, ++pair) {
      probe[pair] = row;
      build[pair] = rows_of_[at];
    }
  }
}

OutputColumn JoinTable::contains(const Batch& keys) const {
  OutputColumn out;
  out.type = simple_type(Kind::Bool);
  out.rows = keys.rows();
  out.values = Buffer::zeroed(bitmap_bytes(keys.rows()));
  if (rows_ == 0) return out;
  KeyRows reader(*keys_, all_columns(keys));
  auto* bits = out.values.as<uint8_t>();
  uint32_t entries[kVectorRows];
  static_assert(kVectorRows % 8 == 0);
  for (int64_t begin = 0; begin < keys.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, keys.rows() - begin);
    reader.find(*keys_, begin, rows, entries);
    for (int64_t row = 0; row < rows; ++row) {
      bits[(begin + row) >> 3] |= static_cast<uint8_t>((entries[row] != kNoEntry) << (row & 7));
    }
  }
  return out;
}

}  // namespace bireme
