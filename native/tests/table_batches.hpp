// Batches for the tests of tables, made and read back value by value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"

namespace bireme::test {

using Longs = std::vector<std::optional<int64_t>>;
using Strings = std::vector<std::optional<std::string>>;

template <typename Values>
void set_nulls(OutputColumn& column, const Values& values) {
  column.rows = static_cast<int64_t>(values.size());
  column.validity = Buffer::zeroed(bitmap_bytes(column.rows));
  for (size_t row = 0; row < values.size(); ++row) {
    if (values[row]) {
      column.validity.as<uint8_t>()[row >> 3] |= static_cast<uint8_t>(1u << (row & 7));
    } else {
      ++column.null_count;
    }
  }
  if (column.null_count == 0) column.validity.reset();
}

inline OutputColumn longs(const Longs& values, Type type = simple_type(Kind::Int64)) {
  OutputColumn column;
  column.type = std::move(type);
  set_nulls(column, values);
  column.values = Buffer(column.rows * 8);
  for (size_t row = 0; row < values.size(); ++row)
    column.values.as<int64_t>()[row] = values[row].value_or(-77);
  return column;
}

inline OutputColumn ints(const Longs& values) {
  OutputColumn column = longs(values, simple_type(Kind::Int32));
  Buffer narrow(column.rows * 4);
  for (int64_t row = 0; row < column.rows; ++row) {
    narrow.as<int32_t>()[row] = static_cast<int32_t>(column.values.as<int64_t>()[row]);
  }
  column.values = std::move(narrow);
  return column;
}

inline OutputColumn strings(const Strings& values) {
  OutputColumn column;
  column.type = simple_type(Kind::String);
  set_nulls(column, values);
  std::string bytes;
  column.offsets = Buffer((column.rows + 1) * 4);
  for (size_t row = 0; row < values.size(); ++row) {
    column.offsets.as<int32_t>()[row] = static_cast<int32_t>(bytes.size());
    bytes += values[row].value_or("");
  }
  column.offsets.as<int32_t>()[values.size()] = static_cast<int32_t>(bytes.size());
  column.values = Buffer(static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(column.values.data(), bytes.data(), bytes.size());
  return column;
}

inline Batch batch_of(std::vector<OutputColumn> columns, int64_t rows) {
  ArrowArray array;
  ArrowSchema schema;
  export_batch(std::move(columns), rows, &array, &schema);
  return Batch::take_over(&array, &schema);
}

template <typename... Columns>
Batch batch(Columns... columns) {
  std::vector<OutputColumn> all;
  (all.push_back(std::move(columns)), ...);
  const int64_t rows = all.empty() ? 0 : all[0].rows;
  return batch_of(std::move(all), rows);
}

inline std::optional<int64_t> long_at(const Column& column, int64_t row) {
  if (!column.is_valid(row)) return std::nullopt;
  if (column.type.kind == Kind::Decimal128) return column.as<int64_t>()[2 * row];
  return column.as<int64_t>()[row];
}

// Of codes what they stand for: texts that repeat may leave as either.
inline std::optional<std::string> string_at(const Column& column, int64_t row) {
  if (!column.is_valid(row)) return std::nullopt;
  if (column.is_dictionary()) return string_at(*column.dictionary, column.codes()[row]);
  return std::string(column.string_at(row));
}

}  // namespace bireme::test
