// A read-only view of one column: what all kernels take. It owns nothing; the Batch it came from must outlive it.
//
// Rule: a view never promises bytes past its rows. Values of NULL rows are garbage: they may be read but must not
// raise errors or change results.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrow/type.hpp"

namespace bireme {

struct Column {
  Type type;  // of the values: for a dictionary column, the dictionary's
  int64_t rows = 0;
  int64_t null_count = 0;  // exact, or -1 where it was not given
  // Bit `validity_offset + row` is 1 where the row is valid; null pointer: all rows are.
  const uint8_t* validity = nullptr;
  int64_t validity_offset = 0;
  // Fixed-width values from row 0 on. Bool: a bitmap whose bit `bool_offset + row` counts. Strings: the bytes, of which row r
  // has [offsets[r], offsets[r + 1]). Dictionary columns: int32 codes; only codes of valid rows mean anything.
  const void* values = nullptr;
  int64_t bool_offset = 0;
  const int32_t* offsets = nullptr;
  const Column* dictionary = nullptr;

  bool is_dictionary() const { return dictionary != nullptr; }
  bool may_have_nulls() const { return validity != nullptr; }
  bool is_valid(int64_t row) const {
    if (validity == nullptr) return true;
    const int64_t bit = validity_offset + row;
    return ((validity[bit >> 3] >> (bit & 7)) & 1) != 0;
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(values);
  }
  const int32_t* codes() const { return as<int32_t>(); }
  bool bool_at(int64_t row) const {
    const int64_t bit = bool_offset + row;
    return ((as<uint8_t>()[bit >> 3] >> (bit & 7)) & 1) != 0;
  }
  std::string_view string_at(int64_t row) const {
    const int32_t begin = offsets[row];
    return {as<char>() + begin, static_cast<size_t>(offsets[row + 1] - begin)};
  }
};

}  // namespace bireme
