// Types of columns as kernels see them, and their Arrow format strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bireme {

using int128 = __int128;
using uint128 = unsigned __int128;

// The layouts that kernels tell apart. The numbers are also used by the Python side (backends/native/program.py).
enum class Kind : uint8_t {
  Null = 0,
  Bool = 1,
  Int8 = 2,
  Int16 = 3,
  Int32 = 4,
  Int64 = 5,
  UInt8 = 6,
  UInt16 = 7,
  UInt32 = 8,
  UInt64 = 9,
  Float32 = 10,
  Float64 = 11,
  Decimal64 = 12,
  Decimal128 = 13,
  Date32 = 14,
  Time32 = 15,
  Time64 = 16,
  Timestamp = 17,
  Duration = 18,
  String = 19,  // utf8 with 32-bit offsets; `Binary` has the same layout
  Binary = 20,
  Interval = 21,  // int32 months, int32 days, int64 nanoseconds
  Other = 22,     // carried by position only: views, large offsets, nested
};

// A type. `format` is Arrow's and complete; the rest is what kernels need of it.
struct Type {
  Kind kind = Kind::Null;
  uint8_t precision = 0;
  uint8_t scale = 0;
  char unit = 0;  // 's', 'm' (milli), 'u', 'n' of Time32, Time64, Timestamp and Duration
  std::string format = "n";

  bool operator==(const Type&) const = default;
};

// Reads an Arrow format string; what kernels do not handle becomes Kind::Other.
Type parse_type(const char* format);

// The type of a fixed kind, whose format needs no parameters (not decimals and times).
Type simple_type(Kind kind);
Type decimal64_type(int precision, int scale);
Type decimal128_type(int precision, int scale);

// Bytes of one value: 0 for Bool (bits), strings, Null and Other.
constexpr int width_of(Kind kind) {
  switch (kind) {
    case Kind::Int8:
    case Kind::UInt8:
      return 1;
    case Kind::Int16:
    case Kind::UInt16:
      return 2;
    case Kind::Int32:
    case Kind::UInt32:
    case Kind::Float32:
    case Kind::Date32:
    case Kind::Time32:
      return 4;
    case Kind::Int64:
    case Kind::UInt64:
    case Kind::Float64:
    case Kind::Decimal64:
    case Kind::Time64:
    case Kind::Timestamp:
    case Kind::Duration:
      return 8;
    case Kind::Decimal128:
    case Kind::Interval:
      return 16;
    default:
      return 0;
  }
}

constexpr bool is_string(Kind kind) { return kind == Kind::String || kind == Kind::Binary; }

}  // namespace bireme
