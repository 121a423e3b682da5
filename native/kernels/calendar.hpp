// The proleptic Gregorian calendar on days since 1970-01-01, with a year 0 before year 1.
//
// The arithmetic counts years from March, so that the leap day is a year's last (after Hinnant,
// "chrono-compatible low-level date algorithms").
#pragma once

#include <cstdint>

namespace bireme {

struct Civil {
  int32_t year;
  int32_t month;  // 1 … 12
  int32_t day;    // 1 … 31
};

constexpr Civil civil_of(int32_t days) {
  const int64_t shifted = static_cast<int64_t>(days) + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const auto day_of_era = static_cast<uint32_t>(shifted - era * 146097);
  const uint32_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint32_t shifted_month = (5 * day_of_year + 2) / 153;
  const auto day = static_cast<int32_t>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  const auto month = static_cast<int32_t>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  const auto year = static_cast<int32_t>(static_cast<int64_t>(year_of_era) + era * 400) + (month <= 2);
  return {year, month, day};
}

constexpr int64_t days_of(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

constexpr bool is_leap(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

constexpr int64_t days_in_month(int64_t year, int64_t month) {
  constexpr int8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : lengths[month - 1];
}

// Adds months; a day past the end of the month becomes its last.
constexpr int64_t add_months(int32_t days, int64_t months) {
  const Civil civil = civil_of(days);
  const int64_t total = static_cast<int64_t>(civil.year) * 12 + civil.month - 1 + months;
  const int64_t year = total >= 0 ? total / 12 : (total - 11) / 12;
  const int64_t month = total - year * 12 + 1;
  const int64_t last = days_in_month(year, month);
  return days_of(year, month, civil.day < last ? civil.day : last);
}

}  // namespace bireme
