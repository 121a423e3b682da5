#include "arrow/type.hpp"

#include <cstdlib>
#include <cstring>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

// "d:precision,scale[,bits]"
Type parse_decimal(const char* format) {
  Type type;
  type.format = format;
  char* end = nullptr;
  const long precision = std::strtol(format + 2, &end, 10);
  const long scale = *end == ',' ? std::strtol(end + 1, &end, 10) : 0;
  const long bits = *end == ',' ? std::strtol(end + 1, &end, 10) : 128;
  const bool ours = scale >= 0 && scale <= precision && precision <= 38;
  type.kind = !ours         ? Kind::Other
              : bits == 64  ? Kind::Decimal64
              : bits == 128 ? Kind::Decimal128
                            : Kind::Other;
  if (type.kind != Kind::Other) {
    type.precision = static_cast<uint8_t>(precision);
    type.scale = static_cast<uint8_t>(scale);
  }
  return type;
}

// "td?", "tt?", "ts?:zone", "tD?", "ti?"
Type parse_time(const char* format) {
  Type type;
  type.format = format;
  type.unit = format[2];
  switch (format[1]) {
    case 'd':
      type.kind = format[2] == 'D' ? Kind::Date32 : Kind::Other;
      type.unit = 0;
      break;
    case 't':
      type.kind = format[2] == 's' || format[2] == 'm' ? Kind::Time32 : Kind::Time64;
      break;
    case 's':
      type.kind = Kind::Timestamp;
      break;
    case 'D':
      type.kind = Kind::Duration;
      break;
    case 'i':
      type.kind = format[2] == 'n' ? Kind::Interval : Kind::Other;
      type.unit = 0;
      break;
    default:
      type.kind = Kind::Other;
  }
  return type;
}

Kind kind_of_letter(char letter) {
  switch (letter) {
    case 'n':
      return Kind::Null;
    case 'b':
      return Kind::Bool;
    case 'c':
      return Kind::Int8;
    case 'C':
      return Kind::UInt8;
    case 's':
      return Kind::Int16;
    case 'S':
      return Kind::UInt16;
    case 'i':
      return Kind::Int32;
    case 'I':
      return Kind::UInt32;
    case 'l':
      return Kind::Int64;
    case 'L':
      return Kind::UInt64;
    case 'f':
      return Kind::Float32;
    case 'g':
      return Kind::Float64;
    case 'u':
      return Kind::String;
    case 'z':
      return Kind::Binary;
    default:
      return Kind::Other;
  }
}

}  // namespace

Type parse_type(const char* format) {
  if (std::strncmp(format, "d:", 2) == 0) return parse_decimal(format);
  if (format[0] == 't' && format[1] != 0 && format[2] != 0) return parse_time(format);
  Type type;
  type.format = format;
  type.kind = std::strlen(format) == 1 ? kind_of_letter(format[0]) : Kind::Other;
  return type;
}

Type simple_type(Kind kind) {
  const char* format = nullptr;
  switch (kind) {
    case Kind::Null:
      format = "n";
      break;
    case Kind::Bool:
      format = "b";
      break;
    case Kind::Int8:
      format = "c";
      break;
    case Kind::Int16:
      format = "s";
      break;
    case Kind::Int32:
      format = "i";
      break;
    case Kind::Int64:
      format = "l";
      break;
    case Kind::UInt8:
      format = "C";
      break;
    case Kind::UInt16:
      format = "S";
      break;
    case Kind::UInt32:
      format = "I";
      break;
    case Kind::UInt64:
      format = "L";
      break;
    case Kind::Float32:
      format = "f";
      break;
    case Kind::Float64:
      format = "g";
      break;
    case Kind::Date32:
      format = "tdD";
      break;
    case Kind::String:
      format = "u";
      break;
    case Kind::Binary:
      format = "z";
      break;
    default:
      throw EngineBug("simple_type: the kind has parameters");
  }
  return parse_type(format);
}

Type decimal64_type(int precision, int scale) {
  return parse_type(("d:" + std::to_string(precision) + "," + std::to_string(scale) + ",64").c_str());
}

Type decimal128_type(int precision, int scale) {
  return parse_type(("d:" + std::to_string(precision) + "," + std::to_string(scale)).c_str());
}

}  // namespace bireme
