// The English names of days and months.
#pragma once

#include <cstdint>
#include <string_view>

namespace bireme {

inline constexpr std::string_view kDayNames[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                 "Friday", "Saturday", "Sunday"};
inline constexpr std::string_view kMonthNames[] = {"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
inline constexpr size_t kShortName = 3;

// Of a day of the week, 0 for Monday.
constexpr std::string_view short_day(int64_t weekday) {
  return kDayNames[weekday].substr(0, kShortName);
}

// Of a month, 1 … 12.
constexpr std::string_view short_month(int64_t month) {
  return kMonthNames[month - 1].substr(0, kShortName);
}

}  // namespace bireme
