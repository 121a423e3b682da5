// What texts that stand for numbers and points in time look like, read from front to back.
//
// The grammar is that of plan/functions/texts.py. A text can be wrong, which is certain, or odd: spelled in a
// way that only the reference reads (exponents of whole numbers, underscores, hexadecimal, other alphabets).
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/decimal.hpp"

namespace bireme {

enum class Reading : uint8_t { Good, Wrong, Odd };

inline bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

inline bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// The blanks that Python strips, as far as they are ASCII; around doubles it only takes those of `is_space`.
inline bool is_blank(char byte) {
  return is_space(byte) || (byte >= '\x1c' && byte <= '\x1f');
}

template <bool (*blank)(char) = is_blank>
std::string_view stripped(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Whether what stands at `at`, where no number goes on, is a spelling that is read elsewhere.
inline bool is_odd_at(std::string_view text, size_t at, bool has_exponents) {
  const std::string_view rest = stripped(text.substr(at));
  if (rest.empty()) return false;
  if (static_cast<unsigned char>(rest.front()) >= 0x80) return true;
  const char byte = text[at];
  const bool behind_digit = at > 0 && (is_digit(text[at - 1]) || text[at - 1] == '.');
  if (byte == '_') return behind_digit;
  if (has_exponents && (byte == 'e' || byte == 'E')) return behind_digit;
  return has_exponents && (byte == 'x' || byte == 'X') && at == 1 && text[0] == '0';
}

// A decimal number times 10^scale, rounded half away from zero. Wrong where that is not in `low` … `high`.
Reading read_scaled(std::string_view text, int scale, int128 low, int128 high, int128& value);

// A double; nan, inf and infinity as well.
Reading read_double(std::string_view text, double& value);

struct Moment {
  int64_t days = 0;         // since 1970
  int64_t nanoseconds = 0;  // since midnight
  int64_t ahead = 0;        // seconds that the zone written is ahead of UTC
};

// A date, alone or with a time of day and a zone.
Reading read_moment(std::string_view text, Moment& moment);

// A time of day, or that of a whole timestamp, in nanoseconds.
Reading read_time_of_day(std::string_view text, int64_t& nanoseconds);

}  // namespace bireme
