// What expressions compute with: a run of at most kVectorRows values that stays in cache.
//
// Values lie dense (compacted to the rows that count). BOOL is a byte that is always 0 or 1, also where NULL;
// a string is a Str into the input, a literal or the arena; everything else is as in Arrow. NULL is a byte
// per row: 1 where valid.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "arrow/type.hpp"
#include "kernels/vector_rows.hpp"

namespace bireme {

struct Str {
  const char* data;
  uint32_t size;
  uint32_t unused;

  std::string_view view() const { return {data, size}; }
};

inline Str str_of(std::string_view text) {
  return {text.data(), static_cast<uint32_t>(text.size()), 0};
}

// How values lie in a vector.
enum class Physical : uint8_t { B8, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128, Str };
inline constexpr int kPhysicalCount = 13;

constexpr Physical physical_of(Kind kind) {
  switch (kind) {
    case Kind::Int8:
      return Physical::I8;
    case Kind::Int16:
      return Physical::I16;
    case Kind::Int32:
    case Kind::Date32:
    case Kind::Time32:
      return Physical::I32;
    case Kind::UInt8:
      return Physical::U8;
    case Kind::UInt16:
      return Physical::U16;
    case Kind::UInt32:
      return Physical::U32;
    case Kind::UInt64:
      return Physical::U64;
    case Kind::Float32:
      return Physical::F32;
    case Kind::Float64:
      return Physical::F64;
    case Kind::Decimal128:
      return Physical::I128;
    case Kind::String:
    case Kind::Binary:
      return Physical::Str;
    case Kind::Bool:
    case Kind::Null:
      return Physical::B8;
    default:
      return Physical::I64;
  }
}

constexpr int64_t width_of(Physical physical) {
  switch (physical) {
    case Physical::B8:
    case Physical::I8:
    case Physical::U8:
      return 1;
    case Physical::I16:
    case Physical::U16:
      return 2;
    case Physical::I32:
    case Physical::U32:
    case Physical::F32:
      return 4;
    case Physical::I128:
    case Physical::Str:
      return 16;
    default:
      return 8;
  }
}

struct Vector {
  const void* data = nullptr;
  const uint8_t* valid = nullptr;  // null: all valid
  bool constant = false;           // one value and one validity byte stand for all rows

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  template <typename T>
  const T& at(int64_t row) const {
    return as<T>()[constant ? 0 : row];
  }
  bool is_valid(int64_t row) const { return valid == nullptr || valid[constant ? 0 : row] != 0; }
  bool is_null_constant() const { return constant && valid != nullptr && valid[0] == 0; }
};

}  // namespace bireme
