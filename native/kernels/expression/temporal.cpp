// Parts of dates and timestamps, date_trunc, and moving a moment by a constant interval.
//
// Timestamps count their unit since 1970; date parts look at whole days, rounded down.
#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

using namespace moments;

// ------------------------------------------------------------------------------------------------ parts

int64_t year_of(int32_t days) {
  return civil_of(days).year;
}
int64_t quarter_of(int32_t days) {
  return (civil_of(days).month + 2) / 3;
}
int64_t month_of(int32_t days) {
  return civil_of(days).month;
}
int64_t day_of(int32_t days) {
  return civil_of(days).day;
}
int64_t day_of_week(int32_t days) {
  return (weekday(days) + 1) % 7;
}
int64_t iso_day_of_week(int32_t days) {
  return weekday(days) + 1;
}
int64_t day_of_year(int32_t days) {
  return days - days_of(civil_of(days).year, 1, 1) + 1;
}

int64_t iso_year(int32_t days) {
  return civil_of(static_cast<int32_t>(days - weekday(days) + 3)).year;
}

int64_t iso_week(int32_t days) {
  const int64_t thursday = days - weekday(days) + 3;
  return (thursday - days_of(civil_of(static_cast<int32_t>(thursday)).year, 1, 1)) / 7 + 1;
}

int64_t year_and_week(int32_t days) {
  const int64_t year = iso_year(days);
  const int64_t week = iso_week(days);
  return year * 100 + (year < 0 ? -week : week);
}

int64_t decade_of(int32_t days) {
  return toward_zero(civil_of(days).year, 10);
}

// The number of the span of so many years, from 1; before the year 1 from -1 down.
template <int64_t years>
int64_t span_of(int32_t days) {
  const int64_t year = civil_of(days).year;
  return year > 0 ? (year - 1) / years + 1 : year / years - 1;
}

template <int64_t (*part)(int32_t)>
void part_of_date(Call& call) {
  map_unary<int32_t, int64_t>(call, [](int32_t days) { return part(days); });
}

template <int64_t (*part)(int32_t)>
void part_of_timestamp(Call& call) {
  const int64_t ticks = ticks_a_day(call.node.arg_types[0].unit);
  map_unary<int64_t, int64_t>(
      call, [ticks](int64_t moment) { return part(static_cast<int32_t>(floor_divide(moment, ticks))); });
}

template <int64_t (*part)(int32_t)>
void resolve_part(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  if (node.type.kind != Kind::Int64) no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = part_of_date<part>;
  } else if (type.kind == Kind::Timestamp && type.unit != 's' && type.unit != 'm') {
    node.kernel = part_of_timestamp<part>;
  } else {
    no_kernel(node);
  }
}

// The parts of a time of day in microseconds.
template <int64_t modulus, int64_t divisor>
void part_of_clock(Call& call) {
  constexpr int64_t kDay = 86'400'000'000;
  map_unary<int64_t, int64_t>(call,
                              [](int64_t moment) { return floor_modulo(moment, kDay) % modulus / divisor; });
}

template <int64_t modulus, int64_t divisor>
void resolve_clock(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  const bool clock = (type.kind == Kind::Timestamp || type.kind == Kind::Time64) && type.unit == 'u';
  if (!clock || node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = part_of_clock<modulus, divisor>;
}

// ------------------------------------------------------------------------------------------- truncation

// The first day of the span of so many months in which a day lies; spans are counted from the year 0, toward
// it.
int64_t first_of_months(int32_t days, int64_t span) {
  const Civil civil = civil_of(days);
  const int64_t months = toward_zero(static_cast<int64_t>(civil.year) * 12 + civil.month - 1, span) * span;
  const int64_t year = floor_divide(months, 12);
  return days_of(year, months - year * 12 + 1, 1);
}

// numbers[0] is the unit in months; numbers[1], in microseconds; both 0: a week.
bool truncate(const Node& node, int64_t microseconds, int64_t& out) {
  constexpr int64_t kDay = 86'400'000'000;
  if (node.numbers[1] != 0) {
    return __builtin_mul_overflow(floor_divide(microseconds, node.numbers[1]), node.numbers[1], &out);
  }
  const auto days = static_cast<int32_t>(floor_divide(microseconds, kDay));
  const int64_t first = node.numbers[0] != 0 ? first_of_months(days, node.numbers[0]) : days - weekday(days);
  return __builtin_mul_overflow(first, kDay, &out);
}

void truncate_timestamps(Call& call) {
  map_checked<Overflow, int64_t, int64_t>(
      call, [&call](int64_t moment, int64_t& out) { return truncate(call.node, moment, out); });
}

void truncate_dates(Call& call) {
  map_checked<Overflow, int32_t, int64_t>(call, [&call](int32_t days, int64_t& out) {
    int64_t moment;
    if (__builtin_mul_overflow(static_cast<int64_t>(days), int64_t{86'400'000'000}, &moment)) {
      out = 0;
      return true;
    }
    return truncate(call.node, moment, out);
  });
}

void resolve_truncate(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  node.numbers[0] = months_in(node.text);
  node.numbers[1] = microseconds_in(node.text);
  if (node.numbers[0] == 0 && node.numbers[1] == 0 && node.text != "week") no_kernel(node);
  const Type& type = node.arg_types[0];
  if (node.type.kind != Kind::Timestamp || node.type.unit != 'u') no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = truncate_dates;
  } else if (type.kind == Kind::Timestamp && type.unit == 'u') {
    node.kernel = truncate_timestamps;
  } else {
    no_kernel(node);
  }
  node.can_raise = true;
}

// ------------------------------------------------------------------------------- moving by an interval

// numbers: months, days, nanoseconds.
bool move(const Node& node, int64_t days, int64_t rest, int64_t& out) {
  const int64_t ticks = ticks_a_day(node.type.unit);
  if (node.numbers[0] != 0) days = add_months(static_cast<int32_t>(days), node.numbers[0]);
  const int128 moved = (static_cast<int128>(days) + node.numbers[1]) * ticks + rest +
                       node.numbers[2] / nanoseconds_a_tick(node.type.unit);
  out = static_cast<int64_t>(moved);
  return moved != static_cast<int128>(out);
}

void move_dates(Call& call) {
  map_checked<Overflow, int32_t, int64_t>(
      call, [&call](int32_t days, int64_t& out) { return move(call.node, days, 0, out); });
}

void move_timestamps(Call& call) {
  const int64_t ticks = ticks_a_day(call.node.type.unit);
  map_checked<Overflow, int64_t, int64_t>(call, [&call, ticks](int64_t moment, int64_t& out) {
    return move(call.node, floor_divide(moment, ticks), floor_modulo(moment, ticks), out);
  });
}

// A time of day goes round the clock; months and days do not move it.
void move_times(Call& call) {
  const int64_t step = call.node.numbers[2] / nanoseconds_a_tick(call.node.type.unit);
  const int64_t day = ticks_a_day(call.node.type.unit);
  map_unary<int64_t, int64_t>(
      call, [step, day](int64_t time) { return floor_modulo(floor_modulo(time, day) + step % day, day); });
}

void resolve_move(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  if (type.kind == Kind::Time64 && node.type.kind == Kind::Time64 && type.unit == node.type.unit) {
    node.kernel = move_times;
    return;
  }
  if (node.type.kind != Kind::Timestamp) no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = move_dates;
  } else if (type.kind == Kind::Timestamp && type.unit == node.type.unit && type.unit != 's' &&
             type.unit != 'm') {
    node.kernel = move_timestamps;
  } else {
    no_kernel(node);
  }
  node.can_raise = true;
}

void days_between(Call& call) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  int64_t* out = call.out_as<int64_t>();
  for (int64_t row = 0; row < call.rows; ++row) {
    out[row] = static_cast<int64_t>(a.at<int32_t>(row)) - b.at<int32_t>(row);
  }
}

void resolve_days_between(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  if (node.arg_types[0].kind != Kind::Date32 || node.arg_types[1].kind != Kind::Date32) no_kernel(node);
  if (node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = days_between;
}

constexpr Function kFunctions[] = {
    {"year", resolve_part<year_of>},
    {"quarter", resolve_part<quarter_of>},
    {"month", resolve_part<month_of>},
    {"week", resolve_part<iso_week>},
    {"day", resolve_part<day_of>},
    {"dayofweek", resolve_part<day_of_week>},
    {"isodow", resolve_part<iso_day_of_week>},
    {"dayofyear", resolve_part<day_of_year>},
    {"isoyear", resolve_part<iso_year>},
    {"yearweek", resolve_part<year_and_week>},
    {"decade", resolve_part<decade_of>},
    {"century", resolve_part<span_of<100>>},
    {"millennium", resolve_part<span_of<1000>>},
    {"hour", resolve_clock<86'400'000'000, 3'600'000'000>},
    {"minute", resolve_clock<3'600'000'000, 60'000'000>},
    {"second", resolve_clock<60'000'000, 1'000'000>},
    {"millisecond", resolve_clock<60'000'000, 1'000>},
    {"microsecond", resolve_clock<60'000'000, 1>},
    {"date_trunc", resolve_truncate},
    {"move", resolve_move},
    {"days_between", resolve_days_between},
};

}  // namespace

std::span<const Function> temporal_functions() {
  return kFunctions;
}

}  // namespace bireme
