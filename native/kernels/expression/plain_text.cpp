#include "kernels/expression/plain_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "kernels/calendar.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kDecimalDigits = 38;

// A text that is being read from the front.
struct Cursor {
  std::string_view text;
  size_t at = 0;

  bool done() const { return at >= text.size(); }
  char peek() const { return done() ? '\0' : text[at]; }
  bool take(char byte) {
    if (peek() != byte || done()) return false;
    ++at;
    return true;
  }
  bool take_sign(bool& negative) {
    negative = peek() == '-';
    return take('-') || take('+');
  }
  // Between one and `most` digits as a number; -1 where there is none.
  int64_t number(int most) {
    int64_t value = 0;
    int count = 0;
    for (; count < most && is_digit(peek()); ++count, ++at) value = value * 10 + (text[at] - '0');
    return count == 0 ? -1 : value;
  }
  size_t skip_digits() {
    const size_t from = at;
    while (is_digit(peek())) ++at;
    return at - from;
  }
};

Reading wrong_unless_odd(const Cursor& cursor, bool has_exponents) {
  // Words of doubles end where no digit does.
  if (!has_exponents && !is_ascii(cursor.text)) return Reading::Odd;
  return is_odd_at(cursor.text, cursor.at, has_exponents) ? Reading::Odd : Reading::Wrong;
}

// Appends a digit; false where that makes more digits than a decimal has.
bool append_digit(int128& value, char digit) {
  static const int128 most = power_of_ten(kDecimalDigits - 1);
  if (value >= most) return false;
  value = value * 10 + (digit - '0');
  return true;
}

}  // namespace

Reading read_scaled(std::string_view text, int scale, int128 low, int128 high, int128& value) {
  Cursor cursor{stripped(text)};
  bool negative = false;
  cursor.take_sign(negative);
  int128 count = 0;
  bool fits = true;
  size_t digits = 0;
  for (; is_digit(cursor.peek()); ++cursor.at, ++digits) fits = fits && append_digit(count, cursor.peek());
  int places = 0;
  bool up = false;
  if (cursor.take('.')) {
    for (; is_digit(cursor.peek()); ++cursor.at, ++digits, ++places) {
      if (places < scale) fits = fits && append_digit(count, cursor.peek());
      if (places == scale) up = cursor.peek() >= '5';
    }
  }
  if (!cursor.done()) return wrong_unless_odd(cursor, true);
  if (digits == 0) return Reading::Wrong;
  for (; places < scale && fits; ++places) fits = append_digit(count, '0');
  count += up ? 1 : 0;
  value = negative ? -count : count;
  return fits && value >= low && value <= high ? Reading::Good : Reading::Wrong;
}

namespace {

bool same_word(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return (a | 0x20) == b; });
}

bool read_word(std::string_view text, bool negative, double& value) {
  if (same_word(text, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (!same_word(text, "inf") && !same_word(text, "infinity")) return false;
  value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return true;
}

}  // namespace

Reading read_double(std::string_view text, double& value) {
  Cursor cursor{stripped<is_space>(text)};
  bool negative = false;
  cursor.take_sign(negative);
  const size_t from = cursor.at;
  size_t digits = cursor.skip_digits();
  if (cursor.take('.')) digits += cursor.skip_digits();
  if (digits == 0 && read_word(cursor.text.substr(from), negative, value)) return Reading::Good;
  if (digits != 0 && (cursor.peek() == 'e' || cursor.peek() == 'E')) {
    ++cursor.at;
    bool ignored = false;
    cursor.take_sign(ignored);
    if (cursor.skip_digits() == 0) return wrong_unless_odd(cursor, false);
  }
  if (!cursor.done()) return wrong_unless_odd(cursor, false);
  if (digits == 0) return Reading::Wrong;
  const char* end = cursor.text.data() + cursor.text.size();
  const auto read = std::from_chars(cursor.text.data() + from, end, value);
  // Too large and too small: the reference says what that is.
  if (read.ec != std::errc{} || read.ptr != end) return Reading::Odd;
  if (negative) value = -value;
  return Reading::Good;
}

// ------------------------------------------------------------------------------------------------ time

namespace {

bool is_date_separator(char byte) {
  return byte == '-' || byte == '/' || byte == ' ' || byte == '\\';
}

// Whether a date stands at the front, however many days its month has; the cursor is behind it then.
bool take_date(Cursor& cursor, int64_t& year, int64_t& month, int64_t& day) {
  year = cursor.number(6);
  const char separator = cursor.peek();
  if (year < 0 || !is_date_separator(separator)) return false;
  ++cursor.at;
  month = cursor.number(2);
  if (month < 0 || !cursor.take(separator)) return false;
  day = cursor.number(2);
  return day >= 0;
}

bool is_civil(int64_t year, int64_t month, int64_t day) {
  return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
         day <= days_in_month(year, month);
}

bool take_clock(Cursor& cursor, int64_t& nanoseconds) {
  const int64_t hour = cursor.number(2);
  if (hour < 0 || !cursor.take(':')) return false;
  const int64_t minute = cursor.number(2);
  if (minute < 0) return false;
  int64_t second = 0;
  int64_t fraction = 0;
  const size_t before = cursor.at;
  if (cursor.take(':')) {
    second = cursor.number(2);
    if (second < 0) {
      cursor.at = before;
      second = 0;
    } else if (cursor.take('.')) {
      int64_t unit = kSecond / 10;
      for (; is_digit(cursor.peek()); ++cursor.at, unit /= 10) fraction += (cursor.peek() - '0') * unit;
    }
  }
  nanoseconds = ((hour * 60 + minute) * 60 + second) * kSecond + fraction;
  return hour <= 23 && minute <= 59 && second <= 59;
}

// Z, UTC, or hours and minutes with a sign; the colon between them may be missing.
bool read_zone(std::string_view text, int64_t& ahead) {
  if (same_word(text, "z") || same_word(text, "utc")) return true;
  Cursor cursor{text};
  bool negative = false;
  if (!cursor.take_sign(negative)) return false;
  const size_t from = cursor.at;
  const size_t run = cursor.skip_digits();
  int64_t hours = 0;
  int64_t minutes = 0;
  if (cursor.done()) {
    if (run < 1 || run > 4) return false;
    cursor.at = from;
    hours = cursor.number(run < 3 ? static_cast<int>(run) : static_cast<int>(run) - 2);
    if (run > 2) minutes = cursor.number(2);
  } else {
    if (run < 1 || run > 2) return false;
    cursor.at = from;
    hours = cursor.number(2);
    if (!cursor.take(':') || cursor.text.size() - cursor.at != 2) return false;
    minutes = cursor.number(2);
    if (!cursor.done() || minutes < 0) return false;
  }
  ahead = (hours * 60 + minutes) * 60;
  if (negative) ahead = -ahead;
  return true;
}

Reading wrong_unless_foreign(std::string_view text) {
  return is_ascii(text) ? Reading::Wrong : Reading::Odd;
}

}  // namespace

Reading read_moment(std::string_view text, Moment& moment) {
  Cursor cursor{stripped(text)};
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!take_date(cursor, year, month, day) || !is_civil(year, month, day)) return wrong_unless_foreign(text);
  moment.days = days_of(year, month, day);
  moment.nanoseconds = 0;
  moment.ahead = 0;
  if (cursor.done()) return Reading::Good;
  if (!cursor.take(' ') && !cursor.take('T')) return wrong_unless_foreign(text);
  while (is_blank(cursor.peek()) && !cursor.done()) ++cursor.at;
  if (!take_clock(cursor, moment.nanoseconds)) return wrong_unless_foreign(text);
  const std::string_view rest = stripped(cursor.text.substr(cursor.at));
  if (!rest.empty() && !read_zone(rest, moment.ahead)) return wrong_unless_foreign(text);
  return Reading::Good;
}

Reading read_time_of_day(std::string_view text, int64_t& nanoseconds) {
  Cursor cursor{stripped(text)};
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (take_date(cursor, year, month, day)) {
    Moment moment;
    const Reading reading = read_moment(text, moment);
    nanoseconds = moment.nanoseconds;
    return reading;
  }
  cursor.at = 0;
  if (!take_clock(cursor, nanoseconds) || !cursor.done()) return wrong_unless_foreign(text);
  return Reading::Good;
}

}  // namespace bireme
