// Values that were read, next to those that tests encoded.
#pragma once

#include <cstring>
#include <string>

#include "arrow/output.hpp"
#include "tests/parquet_encoder.hpp"

namespace bireme::test {

inline bool is_valid(const OutputColumn& column, int64_t row) {
  return !column.validity || (column.validity.as<uint8_t>()[row >> 3] >> (row & 7) & 1) != 0;
}

// What the engine's layout of a stored value is.
inline std::string converted(const parquet::ChunkSpec& spec, const std::string& stored) {
  if (spec.physical == parquet::Physical::Int96) {
    uint64_t nanoseconds = 0;
    uint32_t day = 0;
    std::memcpy(&nanoseconds, stored.data(), 8);
    std::memcpy(&day, stored.data() + 8, 4);
    const int64_t value =
        (int64_t{day} - 2440588) * 86400 * 1000 * 1000 + static_cast<int64_t>(nanoseconds / 1000);
    return {reinterpret_cast<const char*>(&value), 8};
  }
  if (spec.type.kind == Kind::Decimal128) {
    auto value = static_cast<int128>(static_cast<int8_t>(stored[0]));
    for (size_t byte = 1; byte < stored.size(); ++byte)
      value = value * 256 + static_cast<uint8_t>(stored[byte]);
    return {reinterpret_cast<const char*>(&value), 16};
  }
  return stored;
}

inline std::string cell(const OutputColumn& column, int64_t row) {
  if (column.dictionary != nullptr) return cell(*column.dictionary, column.values.as<int32_t>()[row]);
  if (is_string(column.type.kind)) {
    const auto* offsets = column.offsets.as<int32_t>();
    return {column.values.as<char>() + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
  }
  if (column.type.kind == Kind::Bool) {
    return std::string(1, static_cast<char>(column.values.as<uint8_t>()[row >> 3] >> (row & 7) & 1));
  }
  const auto width = static_cast<size_t>(width_of(column.type.kind));
  return {column.values.as<char>() + static_cast<size_t>(row) * width, width};
}

}  // namespace bireme::test
