// Values and calls as text.
#include <charconv>
#include <cstdio>

#include "arrow/errors.hpp"
#include "kernels/calendar.hpp"
#include "kernels/decimal.hpp"
#include "kernels/expression/node.hpp"

namespace bireme {

namespace {

std::string format_date(int32_t days) {
  const Civil civil = civil_of(days);
  char text[32];
  const int shown = civil.year > 0 ? civil.year : 1 - civil.year;
  std::snprintf(text, sizeof text, "%04d-%02d-%02d%s", shown, civil.month, civil.day,
                civil.year > 0 ? "" : " (BC)");
  return text;
}

std::string type_name(const Type& type) {
  switch (type.kind) {
    case Kind::Null:
      return "null";
    case Kind::Bool:
      return "boolean";
    case Kind::Int8:
      return "tinyint";
    case Kind::Int16:
      return "smallint";
    case Kind::Int32:
      return "integer";
    case Kind::Int64:
      return "bigint";
    case Kind::UInt8:
      return "utinyint";
    case Kind::UInt16:
      return "usmallint";
    case Kind::UInt32:
      return "uinteger";
    case Kind::UInt64:
      return "ubigint";
    case Kind::Float32:
      return "float";
    case Kind::Float64:
      return "double";
    case Kind::Decimal64:
    case Kind::Decimal128:
      return "decimal(" + std::to_string(type.precision) + "," + std::to_string(type.scale) + ")";
    case Kind::Date32:
      return "date";
    case Kind::Time32:
    case Kind::Time64:
      return "time";
    case Kind::Timestamp:
      return "timestamp";
    case Kind::Duration:
      return "duration";
    case Kind::String:
      return "varchar";
    case Kind::Binary:
      return "blob";
    case Kind::Interval:
      return "interval";
    case Kind::Other:
      break;
  }
  return type.format;
}

std::string format_double(double value) {
  char text[40];
  // Unlike printf, whatever the locale.
  char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 17).ptr;
  return {text, end};
}

}  // namespace

std::string format_value(const Type& type, const Vector& vector, int64_t row) {
  if (!vector.is_valid(row)) return "NULL";
  switch (vector.data == nullptr ? Kind::Null : type.kind) {
    case Kind::Bool:
      return vector.at<uint8_t>(row) != 0 ? "true" : "false";
    case Kind::Int8:
      return std::to_string(vector.at<int8_t>(row));
    case Kind::Int16:
      return std::to_string(vector.at<int16_t>(row));
    case Kind::Int32:
      return std::to_string(vector.at<int32_t>(row));
    case Kind::UInt8:
      return std::to_string(vector.at<uint8_t>(row));
    case Kind::UInt16:
      return std::to_string(vector.at<uint16_t>(row));
    case Kind::UInt32:
      return std::to_string(vector.at<uint32_t>(row));
    case Kind::UInt64:
      return std::to_string(vector.at<uint64_t>(row));
    case Kind::Float32:
      return format_double(static_cast<double>(vector.at<float>(row)));
    case Kind::Float64:
      return format_double(vector.at<double>(row));
    case Kind::Decimal64:
      return format_decimal(vector.at<int64_t>(row), type.scale);
    case Kind::Decimal128:
      return format_decimal(vector.at<int128>(row), type.scale);
    case Kind::Date32:
      return format_date(vector.at<int32_t>(row));
    case Kind::String:
      return "'" + std::string(vector.at<Str>(row).view()) + "'";
    case Kind::Null:
    case Kind::Binary:
    case Kind::Interval:
    case Kind::Other:
      return "?";
    default:
      return width_of(type.kind) == 4 ? std::to_string(vector.at<int32_t>(row))
                                      : std::to_string(vector.at<int64_t>(row));
  }
}

std::string describe_call(const Call& call, int64_t row) {
  std::string text = call.node.function + "(";
  for (size_t index = 0; index < call.args.size(); ++index) {
    const Type& type = call.node.arg_types[index];
    text += (index > 0 ? ", " : "") + type_name(type) + " " + format_value(type, *call.args[index], row);
  }
  return text + ") has no value in " + type_name(call.node.type);
}

void no_kernel(const Node& node) {
  std::string text = node.function + "(";
  for (size_t index = 0; index < node.arg_types.size(); ++index) {
    text += (index > 0 ? ", " : "") + type_name(node.arg_types[index]);
  }
  throw Unsupported(text + ") as " + type_name(node.type) + " has no native kernel");
}

}  // namespace bireme
