// What kernels and casts of dates and timestamps share: units, divisions that round down, and weekdays.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/calendar.hpp"

namespace bireme::moments {

inline constexpr int64_t kMicrosecondsADay = 86'400'000'000;
inline constexpr int64_t kNanosecondsADay = 86'400'000'000'000;

constexpr int64_t nanoseconds_a_tick(char unit) {
  switch (unit) {
    case 's':
      return 1'000'000'000;
    case 'm':
      return 1'000'000;
    case 'u':
      return 1'000;
    default:
      return 1;
  }
}

constexpr int64_t ticks_a_second(char unit) {
  return nanoseconds_a_tick('s') / nanoseconds_a_tick(unit);
}

constexpr int64_t ticks_a_day(char unit) {
  return kNanosecondsADay / nanoseconds_a_tick(unit);
}

constexpr int64_t floor_divide(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0);
}

// What is left of floor_divide; never negative.
constexpr int64_t floor_modulo(int64_t value, int64_t divisor) {
  const int64_t rest = value % divisor;
  return rest < 0 ? rest + divisor : rest;
}

constexpr int64_t toward_zero(int64_t value, int64_t divisor) {
  return value / divisor;
}

// 0 for Monday.
constexpr int64_t weekday(int64_t days) {
  return (days % 7 + 10) % 7;
}

// Units as the binder names them: the months in one, or its microseconds; 0 where it is not of that kind.
constexpr int64_t months_in(std::string_view unit) {
  if (unit == "millennium") return 12000;
  if (unit == "century") return 1200;
  if (unit == "decade") return 120;
  if (unit == "year") return 12;
  if (unit == "quarter") return 3;
  return unit == "month" ? 1 : 0;
}

constexpr int64_t microseconds_in(std::string_view unit) {
  if (unit == "day") return kMicrosecondsADay;
  if (unit == "hour") return 3'600'000'000;
  if (unit == "minute") return 60'000'000;
  if (unit == "second") return 1'000'000;
  if (unit == "millisecond") return 1'000;
  return unit == "microsecond" ? 1 : 0;
}

}  // namespace bireme::moments
