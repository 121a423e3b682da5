// Making dates and timestamps, counting units between two of them, buckets, and names of days and months.
//
// Rows that fail are left to the reference backend, which says what is wrong with them; where it is only a
// kernel's arithmetic that does not reach so far, the node does not count as one that can raise.
#include <cmath>

#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/time_names.hpp"

namespace bireme {

namespace {

using namespace moments;

constexpr int64_t kMicrosecondsASecond = 1'000'000;
// The counts beside them are infinities in DuckDB's layout of dates.
constexpr int64_t kDateMax = INT32_MAX - 1;

// ----------------------------------------------------------------------------------------------- making

constexpr int64_t kYearsMax = 300'000;

// Whether there is no such date.
bool make_days(int64_t year, int64_t month, int64_t day, int64_t& days) {
  days = 0;
  if (month < 1 || month > 12 || year <= -kYearsMax || year >= kYearsMax) return true;
  if (day < 1 || day > days_in_month(year, month)) return true;
  days = days_of(year, month, day);
  return false;
}

void make_dates(Call& call) {
  map_rows<NeedsReference, int32_t>(call, [&call](int64_t row, int32_t& out) {
    int64_t days;
    const bool wrong = make_days(call.args[0]->at<int64_t>(row), call.args[1]->at<int64_t>(row),
                                 call.args[2]->at<int64_t>(row), days);
    out = static_cast<int32_t>(days);
    return wrong;
  });
}

// Microseconds of so many seconds; -1 for those that no time has.
int64_t microseconds_of(double seconds) {
  constexpr double kSecondsMax = 1e9;
  if (!(std::abs(seconds) < kSecondsMax)) return -1;
  return static_cast<int64_t>(std::nearbyint(seconds * static_cast<double>(kMicrosecondsASecond)));
}

void make_timestamps(Call& call) {
  map_rows<NeedsReference, int64_t>(call, [&call](int64_t row, int64_t& out) {
    const int64_t hour = call.args[3]->at<int64_t>(row);
    const int64_t minute = call.args[4]->at<int64_t>(row);
    const int64_t rest = microseconds_of(call.args[5]->at<double>(row));
    int64_t days;
    bool wrong = make_days(call.args[0]->at<int64_t>(row), call.args[1]->at<int64_t>(row),
                           call.args[2]->at<int64_t>(row), days);
    wrong |=
        hour < 0 || hour > 24 || minute < 0 || minute > 59 || rest < 0 || rest > 60 * kMicrosecondsASecond;
    out = 0;
    if (wrong) return true;
    const int64_t time = (hour * 60 + minute) * 60 * kMicrosecondsASecond + rest;
    return time > kMicrosecondsADay || __builtin_mul_overflow(days, kMicrosecondsADay, &out) ||
           __builtin_add_overflow(out, time, &out);
  });
}

void make_times(Call& call) {
  map_rows<NeedsReference, int64_t>(call, [&call](int64_t row, int64_t& out) {
    const int64_t hour = call.args[0]->at<int64_t>(row);
    const int64_t minute = call.args[1]->at<int64_t>(row);
    const double seconds = call.args[2]->at<double>(row);
    out = 0;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || !(seconds >= 0 && seconds < 60)) return true;
    out = (hour * 60 + minute) * 60 * kMicrosecondsASecond + microseconds_of(seconds);
    return false;
  });
}

// `whole` arguments of INT64, and a FLOAT64 behind them where there is one more.
bool takes(const Node& node, size_t whole, size_t count) {
  if (node.args.size() != count) return false;
  for (size_t index = 0; index < count; ++index) {
    if (node.arg_types[index].kind != (index < whole ? Kind::Int64 : Kind::Float64)) return false;
  }
  return true;
}

template <Kind kind, size_t whole, size_t count, Kernel kernel>
void resolve_make(Node& node, std::span<const Node* const>) {
  if (!takes(node, whole, count) || node.type.kind != kind) no_kernel(node);
  if (kind != Kind::Date32 && node.type.unit != 'u') no_kernel(node);
  node.kernel = kernel;
  node.can_raise = true;
}

// ------------------------------------------------------------------------------------------ of one date

void last_days(Call& call) {
  map_checked<NeedsReference, int32_t, int32_t>(call, [](int32_t days, int32_t& out) {
    const Civil civil = civil_of(days);
    const int64_t last = days - civil.day + days_in_month(civil.year, civil.month);
    out = static_cast<int32_t>(last);
    return last < -kDateMax || last > kDateMax;
  });
}

void resolve_last_day(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (node.arg_types[0].kind != Kind::Date32 || node.type.kind != Kind::Date32) no_kernel(node);
  node.kernel = last_days;
}

Str day_name(int32_t days) {
  return str_of(kDayNames[weekday(days)]);
}
Str month_name(int32_t days) {
  return str_of(kMonthNames[civil_of(days).month - 1]);
}

template <Str (*name)(int32_t)>
void names(Call& call) {
  map_unary<int32_t, Str>(call, [](int32_t days) { return name(days); });
}

template <Str (*name)(int32_t)>
void resolve_name(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (node.arg_types[0].kind != Kind::Date32 || node.type.kind != Kind::String) no_kernel(node);
  node.kernel = names<name>;
}

// ------------------------------------------------------------------------------------------ differences

// A date or timestamp as its day and the microseconds after midnight.
struct Split {
  int32_t days;
  int64_t rest;
};

Split split(int32_t days) {
  return {days, 0};
}
Split split(int64_t moment) {
  return {static_cast<int32_t>(floor_divide(moment, kMicrosecondsADay)), floor_modulo(moment, kMicrosecondsADay)};
}

// Whether it leaves the range.
bool microseconds_since(int32_t days, int64_t& out) {
  return __builtin_mul_overflow(int64_t{days}, kMicrosecondsADay, &out);
}
bool microseconds_since(int64_t moment, int64_t& out) {
  out = moment;
  return false;
}

// Months that fit between two points, of which the first is the earlier one; the last day of a month ends it,
// whatever its number.
int64_t whole_months_after(const Split& first, const Split& second) {
  const Civil from = civil_of(first.days);
  const Civil to = civil_of(second.days);
  const int64_t months = (static_cast<int64_t>(to.year) - from.year) * 12 + to.month - from.month;
  const int64_t day =
      from.day <= 28 ? from.day : std::min<int64_t>(from.day, days_in_month(to.year, to.month));
  const bool is_full = day < to.day || (day == to.day && first.rest <= second.rest);
  return is_full ? months : months - 1;
}

template <typename T>
int64_t whole_months(T first, T second) {
  return first <= second ? whole_months_after(split(first), split(second))
                         : -whole_months_after(split(second), split(first));
}

template <typename T>
void months_between(Call& call) {
  const int64_t span = call.node.numbers[0];
  map_rows<NeedsReference, int64_t>(call, [&call, span](int64_t row, int64_t& out) {
    out = toward_zero(whole_months(call.args[0]->at<T>(row), call.args[1]->at<T>(row)), span);
    return false;
  });
}

template <typename T>
void ticks_between(Call& call) {
  const int64_t span = call.node.numbers[1];
  map_rows<NeedsReference, int64_t>(call, [&call, span](int64_t row, int64_t& out) {
    int64_t first;
    int64_t second;
    out = 0;
    if (microseconds_since(call.args[0]->at<T>(row), first)) return true;
    if (microseconds_since(call.args[1]->at<T>(row), second)) return true;
    const bool wrong = __builtin_sub_overflow(second, first, &out);
    out = toward_zero(out, span);
    return wrong;
  });
}

// The number of the span of so many months in which a day lies, counted from the year 0, toward it.
int64_t month_span(int32_t days, int64_t span) {
  const Civil civil = civil_of(days);
  return toward_zero(static_cast<int64_t>(civil.year) * 12 + civil.month - 1, span);
}

template <typename T>
void month_starts_between(Call& call) {
  const int64_t span = call.node.numbers[0];
  map_rows<NeedsReference, int64_t>(call, [&call, span](int64_t row, int64_t& out) {
    out = month_span(split(call.args[1]->at<T>(row)).days, span) -
          month_span(split(call.args[0]->at<T>(row)).days, span);
    return false;
  });
}

template <typename T>
void starts_between(Call& call) {
  const int64_t span = call.node.numbers[1];
  map_rows<NeedsReference, int64_t>(call, [&call, span](int64_t row, int64_t& out) {
    int64_t first;
    int64_t second;
    out = 0;
    if (microseconds_since(call.args[0]->at<T>(row), first)) return true;
    if (microseconds_since(call.args[1]->at<T>(row), second)) return true;
    return static_cast<bool>(
        __builtin_sub_overflow(floor_divide(second, span), floor_divide(first, span), &out));
  });
}

// Whole weeks between the days, as DuckDB counts them, not Mondays.
template <typename T>
void weeks_between(Call& call) {
  map_rows<NeedsReference, int64_t>(call, [&call](int64_t row, int64_t& out) {
    const int64_t days =
        static_cast<int64_t>(split(call.args[1]->at<T>(row)).days) - split(call.args[0]->at<T>(row)).days;
    out = toward_zero(days, 7);
    return false;
  });
}

template <typename T>
Kernel difference_kernel(const Node& node, bool whole) {
  if (node.numbers[0] != 0) return whole ? months_between<T> : month_starts_between<T>;
  if (whole) return ticks_between<T>;
  return node.text == "week" ? weeks_between<T> : starts_between<T>;
}

// text: the unit. numbers[0] is the unit in months, else numbers[1] in microseconds.
template <bool whole>
void resolve_difference(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  const Type& type = node.arg_types[0];
  node.numbers[0] = months_in(whole && node.text == "isoyear" ? "year" : node.text);
  node.numbers[1] = node.text == "week" ? 7 * kMicrosecondsADay : microseconds_in(node.text);
  if ((node.numbers[0] == 0 && node.numbers[1] == 0) || node.type.kind != Kind::Int64) no_kernel(node);
  if (type.kind != node.arg_types[1].kind || type.unit != node.arg_types[1].unit) no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = difference_kernel<int32_t>(node, whole);
  } else if (type.kind == Kind::Timestamp && type.unit == 'u') {
    node.kernel = difference_kernel<int64_t>(node, whole);
  } else {
    no_kernel(node);
  }
}

// ---------------------------------------------------------------------------------------------- buckets

// Buckets of days begin on a Monday, 2000-01-03, those of months in January 2000; counted from 1970.
constexpr int64_t kOriginDay = days_of(2000, 1, 3);
constexpr int64_t kOriginMonth = 30 * 12;

int64_t month_bucket(int32_t days, int64_t width) {
  const Civil civil = civil_of(days);
  const int64_t since = (civil.year - int64_t{1970}) * 12 + civil.month - 1 - kOriginMonth;
  const int64_t start = kOriginMonth + floor_divide(since, width) * width;
  const int64_t year = floor_divide(start, 12);
  return days_of(1970 + year, start - year * 12 + 1, 1);
}

// numbers[1]: the width in microseconds. Whether it leaves the range.
bool time_bucket(int64_t moment, int64_t width, int64_t& out) {
  constexpr int64_t kOrigin = kOriginDay * kMicrosecondsADay;
  int64_t since;
  if (__builtin_sub_overflow(moment, kOrigin, &since)) return true;
  return __builtin_mul_overflow(floor_divide(since, width), width, &since) ||
         __builtin_add_overflow(kOrigin, since, &out);
}

void bucket_dates(Call& call) {
  const int64_t months = call.node.numbers[0];
  const int64_t width = call.node.numbers[1];
  map_checked<NeedsReference, int32_t, int32_t>(call, [months, width](int32_t days, int32_t& out) {
    int64_t start = 0;
    bool wrong = false;
    if (months != 0) {
      start = month_bucket(days, months);
    } else {
      wrong = microseconds_since(days, start) || time_bucket(start, width, start);
      start = floor_divide(start, kMicrosecondsADay);
    }
    out = static_cast<int32_t>(start);
    return wrong || start < -kDateMax || start > kDateMax;
  });
}

void bucket_timestamps(Call& call) {
  const int64_t months = call.node.numbers[0];
  const int64_t width = call.node.numbers[1];
  map_checked<NeedsReference, int64_t, int64_t>(call, [months, width](int64_t moment, int64_t& out) {
    out = 0;
    if (months == 0) return time_bucket(moment, width, out);
    return static_cast<bool>(
        __builtin_mul_overflow(month_bucket(split(moment).days, months), kMicrosecondsADay, &out));
  });
}

void resolve_bucket(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  const bool is_width =
      (node.numbers[0] > 0) != (node.numbers[1] > 0) && node.numbers[0] >= 0 && node.numbers[1] >= 0;
  if (!is_width || type.kind != node.type.kind) no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = bucket_dates;
  } else if (type.kind == Kind::Timestamp && type.unit == 'u' && node.type.unit == 'u') {
    node.kernel = bucket_timestamps;
  } else {
    no_kernel(node);
  }
  node.can_raise = true;
}

constexpr Function kFunctions[] = {
    {"make_date", resolve_make<Kind::Date32, 3, 3, make_dates>},
    {"make_time", resolve_make<Kind::Time64, 2, 3, make_times>},
    {"make_timestamp", resolve_make<Kind::Timestamp, 5, 6, make_timestamps>},
    {"last_day", resolve_last_day},
    {"dayname", resolve_name<day_name>},
    {"monthname", resolve_name<month_name>},
    {"date_diff", resolve_difference<false>},
    {"date_sub", resolve_difference<true>},
    {"time_bucket", resolve_bucket},
};

}  // namespace

std::span<const Function> date_functions() {
  return kFunctions;
}

}  // namespace bireme
