// Casts of numbers, truths, points in time and blobs to text, as plan/functions/texts.py writes them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/calendar.hpp"
#include "kernels/expression/cast_text.hpp"
#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

// Of "-12345-12-31 23:59:59.123456789+00", and of the longest double and the longest decimal.
constexpr int64_t kBytesMax = 48;
constexpr int64_t kSecond = 1'000'000'000;

char* put(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

char* put_padded(char* at, int64_t value, int digits) {
  for (int place = digits - 1; place >= 0; --place, value /= 10) at[place] = static_cast<char>('0' + value % 10);
  return at + digits;
}

// out[row] = the text that write(value, at) puts at `at`, of at most kBytesMax bytes; write gives its end.
template <typename In, typename Write>
void write_rows(Call& call, Write write) {
  Str* out = call.out_as<Str>();
  char* at = call.arena.take_array<char>(call.rows * kBytesMax);
  for (int64_t row = 0; row < call.rows; ++row) {
    out[row] = Str{"", 0, 0};
    if (call.valid != nullptr && !call.valid[row]) continue;
    char* end = write(call.args[0]->at<In>(row), at);
    out[row] = Str{at, static_cast<uint32_t>(end - at), 0};
    at = end;
  }
}

// --------------------------------------------------------------------------------------------- numbers

template <typename In>
void write_integers(Call& call) {
  write_rows<In>(call, [](In value, char* at) { return std::to_chars(at, at + kBytesMax, value).ptr; });
}

void write_truths(Call& call) {
  write_rows<uint8_t>(call, [](uint8_t value, char* at) { return put(at, value != 0 ? "true" : "false"); });
}

template <typename In>
void write_decimals(Call& call) {
  const int scale = call.node.arg_types[0].scale;
  write_rows<In>(call, [scale](In value, char* at) {
    const bool negative = value < 0;
    auto rest = negative ? -static_cast<uint128>(value) : static_cast<uint128>(value);
    std::array<char, kBytesMax> reversed;
    int count = 0;
    for (int digit = 0; rest != 0 || digit <= scale; ++digit) {
      if (digit == scale && scale > 0) reversed[count++] = '.';
      if (rest <= UINT64_MAX) {
        const auto small = static_cast<uint64_t>(rest);
        reversed[count++] = static_cast<char>('0' + small % 10);
        rest = small / 10;
      } else {
        reversed[count++] = static_cast<char>('0' + static_cast<int>(rest % 10));
        rest /= 10;
      }
    }
    if (negative) *at++ = '-';
    while (count > 0) *at++ = reversed[--count];
    return at;
  });
}

// The shortest digits that read back as the value, and where the point stands: 0.d1d2… times 10^point.
struct Digits {
  std::array<char, 24> text;
  int count = 0;
  int point = 0;
};

// From "d.ddde±xx", as to_chars and printf write it.
Digits digits_of(const char* from, const char* end) {
  Digits digits;
  const char* at = from;
  for (; at != end && *at != 'e'; ++at) {
    if (*at != '.') digits.text[digits.count++] = *at;
  }
  int exponent = 0;
  const char* number = at + 1;
  if (number < end && *number == '+') ++number;
  std::from_chars(number, end, exponent);
  digits.point = exponent + 1;
  while (digits.count > 1 && digits.text[digits.count - 1] == '0') --digits.count;
  return digits;
}

template <typename In>
Digits shortest(In magnitude) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), magnitude, std::chars_format::scientific);
  return digits_of(text.data(), end.ptr);
}

// Below a power of two lie twice as many floats as above: among the shortest digits may be some that are not those
// nearest to it, which the reference tries only.
Digits nearest_digits(float magnitude) {
  std::array<char, 40> text;
  for (int places = 0; places < 9; ++places) {
    const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<double>(magnitude),
                                   std::chars_format::scientific, places);
    float back = 0;
    std::from_chars(text.data(), end.ptr, back);
    if (back == magnitude) return digits_of(text.data(), end.ptr);
  }
  return shortest(magnitude);
}

Digits digits_for(double magnitude) {
  return shortest(magnitude);
}

Digits digits_for(float magnitude) {
  int exponent = 0;
  return std::frexp(magnitude, &exponent) == 0.5F ? nearest_digits(magnitude) : shortest(magnitude);
}

// As Python's repr: with an exponent below 0.0001 and from 10^16.
char* put_digits(char* at, const Digits& digits) {
  const char* text = digits.text.data();
  const auto count = static_cast<size_t>(digits.count);
  if (digits.point > 16 || digits.point < -3) {
    *at++ = text[0];
    if (count > 1) {
      *at++ = '.';
      at = put(at, {text + 1, count - 1});
    }
    *at++ = 'e';
    const int exponent = digits.point - 1;
    *at++ = exponent < 0 ? '-' : '+';
    const int shown = exponent < 0 ? -exponent : exponent;
    return put_padded(at, shown, shown < 100 ? 2 : 3);
  }
  if (digits.point <= 0) {
    at = put(at, "0.");
    for (int place = digits.point; place < 0; ++place) *at++ = '0';
    return put(at, {text, count});
  }
  const auto whole = static_cast<size_t>(digits.point);
  at = put(at, {text, count < whole ? count : whole});
  for (size_t place = count; place < whole; ++place) *at++ = '0';
  if (count <= whole) return put(at, ".0");
  *at++ = '.';
  return put(at, {text + whole, count - whole});
}

template <typename In>
void write_floats(Call& call) {
  write_rows<In>(call, [](In value, char* at) {
    if (std::isnan(value)) return put(at, "nan");
    if (std::signbit(value)) *at++ = '-';
    const In magnitude = std::abs(value);
    if (std::isinf(magnitude)) return put(at, "inf");
    if (magnitude == 0) return put(at, "0.0");
    return put_digits(at, digits_for(magnitude));
  });
}

// ------------------------------------------------------------------------------------------------ time

char* put_clock(char* at, int64_t nanoseconds) {
  const int64_t seconds = nanoseconds / kSecond;
  at = put_padded(at, seconds / 3'600, 2);
  *at++ = ':';
  at = put_padded(at, seconds / 60 % 60, 2);
  *at++ = ':';
  at = put_padded(at, seconds % 60, 2);
  const int64_t fraction = nanoseconds % kSecond;
  if (fraction == 0) return at;
  *at++ = '.';
  at = put_padded(at, fraction, 9);
  while (at[-1] == '0') --at;
  return at;
}

// Years that ISO dates have; others are left to the reference, which says what is wrong with them.
char* put_date(char* at, int64_t days) {
  constexpr int64_t kFirst = days_of(1, 1, 1);
  constexpr int64_t kLast = days_of(9999, 12, 31);
  if (days < kFirst || days > kLast) throw NeedsReference("cast of a far date to varchar");
  const Civil civil = civil_of(static_cast<int32_t>(days));
  at = put_padded(at, civil.year, 4);
  *at++ = '-';
  at = put_padded(at, civil.month, 2);
  *at++ = '-';
  return put_padded(at, civil.day, 2);
}

void write_dates(Call& call) {
  write_rows<int32_t>(call, [](int32_t days, char* at) { return put_date(at, days); });
}

void write_timestamps(Call& call) {
  const Type& type = call.node.arg_types[0];
  const int64_t tick = moments::nanoseconds_a_tick(type.unit);
  const int64_t a_day = moments::ticks_a_day(type.unit);
  write_rows<int64_t>(call, [=](int64_t value, char* at) {
    at = put_date(at, moments::floor_divide(value, a_day));
    *at++ = ' ';
    at = put_clock(at, moments::floor_modulo(value, a_day) * tick);
    return has_zone(type) ? put(at, "+00") : at;
  });
}

template <typename In>
void write_times(Call& call) {
  const int64_t tick = moments::nanoseconds_a_tick(call.node.arg_types[0].unit);
  write_rows<In>(call, [tick](In value, char* at) { return put_clock(at, static_cast<int64_t>(value) * tick); });
}

// ------------------------------------------------------------------------------------------------ blobs

// Printable ASCII as it is, all else (quotes and the backslash, too) as \xAB.
bool is_shown(char byte) {
  return byte >= ' ' && byte <= '~' && byte != '\\' && byte != '\'' && byte != '"';
}

Str shown(std::string_view bytes, Arena& arena) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  if (std::all_of(bytes.begin(), bytes.end(), is_shown)) return str_of(bytes);
  char* text = arena.take_array<char>(static_cast<int64_t>(bytes.size()) * 4);
  char* at = text;
  for (const char byte : bytes) {
    if (is_shown(byte)) {
      *at++ = byte;
      continue;
    }
    at = put(at, "\\x");
    *at++ = kDigits[static_cast<unsigned char>(byte) >> 4];
    *at++ = kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return {text, static_cast<uint32_t>(at - text), 0};
}

void write_blobs(Call& call) {
  Str* out = call.out_as<Str>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool live = call.valid == nullptr || call.valid[row] != 0;
    out[row] = live ? shown(call.args[0]->at<Str>(row).view(), call.arena) : Str{"", 0, 0};
  }
}

}  // namespace

bool resolve_to_text(Node& node) {
  const Type& from = node.arg_types[0];
  if (is_decimal(from.kind)) {
    node.kernel = from.kind == Kind::Decimal64 ? write_decimals<int64_t> : write_decimals<int128>;
  } else if (is_integer(from.kind)) {
    visit_number(physical_of(from.kind), [&node]<typename In>(In) {
      if constexpr (std::is_integral_v<In>) node.kernel = write_integers<In>;
    });
  } else if (is_float(from.kind)) {
    node.kernel = from.kind == Kind::Float64 ? write_floats<double> : write_floats<float>;
  } else if (from.kind == Kind::Bool) {
    node.kernel = write_truths;
  } else if (from.kind == Kind::Date32) {
    node.kernel = write_dates;
  } else if (from.kind == Kind::Timestamp) {
    node.kernel = write_timestamps;
  } else if (from.kind == Kind::Time32 || from.kind == Kind::Time64) {
    node.kernel = from.kind == Kind::Time32 ? write_times<int32_t> : write_times<int64_t>;
  } else if (from.kind == Kind::Binary) {
    node.kernel = write_blobs;
  } else {
    return false;
  }
  node.costly = true;
  return true;
}

}  // namespace bireme
