// Bytes of texts in JSON, as its parts tell them apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace bireme::json {

inline bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}
inline bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

inline int hex_digit(char byte) {
  if (is_digit(byte)) return byte - '0';
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The four digits of \uXXXX; -1 where they are not four digits.
inline int32_t read_unit(const char* at, const char* end) {
  if (end - at < 4) return -1;
  int32_t unit = 0;
  for (int index = 0; index < 4; ++index) {
    const int digit = hex_digit(at[index]);
    if (digit < 0) return -1;
    unit = unit << 4 | digit;
  }
  return unit;
}

constexpr bool is_high(int32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low(int32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

inline bool is_whole_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace bireme::json
