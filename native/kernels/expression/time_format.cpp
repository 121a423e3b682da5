// strftime of the years 1 to 9999; English, whatever the locale.
//
// What each specifier writes is in backends/reference/time_formats.py. A constant format with one that is
// not known has no kernel, and of a row it is left to the reference backend, which says what is wrong with it.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/expression/by_text.hpp"
#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/expression/time_names.hpp"

namespace bireme {

namespace {

using namespace moments;

constexpr int64_t kFirstDay = days_of(1, 1, 1);
constexpr int64_t kLastDay = days_of(9999, 12, 31);

// A point in time taken apart.
struct Point {
  Civil civil;
  int32_t days;
  int32_t hour;
  int32_t minute;
  int32_t second;
  int32_t nanoseconds;  // behind the second
};

// Of a day and the nanoseconds since its midnight.
Point point_of(int32_t days, int64_t rest) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto seconds = static_cast<int32_t>(rest / kSecond);
  return {civil_of(days),    days,         seconds / 3600,
          seconds / 60 % 60, seconds % 60, static_cast<int32_t>(rest % kSecond)};
}

int32_t day_of_year(const Point& point) {
  return static_cast<int32_t>(point.days - days_of(point.civil.year, 1, 1)) + 1;
}

// ---------------------------------------------------------------------------------------------- writers

char* write_digits(char* at, int64_t value, int digits) {
  for (char* digit = at + digits; digit != at; value /= 10) *--digit = static_cast<char>('0' + value % 10);
  return at + digits;
}

char* write_two(char* at, int64_t value) {
  at[0] = static_cast<char>('0' + value / 10);
  at[1] = static_cast<char>('0' + value % 10);
  return at + 2;
}

char* write_bare(char* at, int64_t value) {
  return write_digits(at, value, value < 10 ? 1 : value < 100 ? 2 : 3);
}

char* write_date(char* at, const Point& point) {
  at = write_digits(at, point.civil.year, 4);
  *at++ = '-';
  at = write_two(at, point.civil.month);
  *at++ = '-';
  return write_two(at, point.civil.day);
}

char* write_clock(char* at, const Point& point) {
  at = write_two(at, point.hour);
  *at++ = ':';
  at = write_two(at, point.minute);
  *at++ = ':';
  return write_two(at, point.second);
}

int32_t hour_12(const Point& point) {
  return (point.hour + 11) % 12 + 1;
}

// The week of the year, weeks beginning on a weekday (0 for Monday); days before the first one are in week 0.
int64_t week_from(const Point& point, int64_t first) {
  return (day_of_year(point) + 6 - (weekday(point.days) - first + 7) % 7) / 7;
}

// The Thursday of the ISO week, whose year is that of the week.
int64_t thursday_of(const Point& point) {
  return point.days - weekday(point.days) + 3;
}

int64_t iso_week(const Point& point) {
  const int64_t thursday = thursday_of(point);
  return (thursday - days_of(civil_of(static_cast<int32_t>(thursday)).year, 1, 1)) / 7 + 1;
}

using Writer = char* (*)(char* at, const Point& point);

struct Specifier {
  std::string_view name;
  int size_max;
  Writer write;
};

constexpr Specifier kSpecifiers[] = {
    {"Y", 4, [](char* at, const Point& point) { return write_digits(at, point.civil.year, 4); }},
    {"y", 2, [](char* at, const Point& point) { return write_two(at, point.civil.year % 100); }},
    {"-y", 2, [](char* at, const Point& point) { return write_bare(at, point.civil.year % 100); }},
    {"m", 2, [](char* at, const Point& point) { return write_two(at, point.civil.month); }},
    {"-m", 2, [](char* at, const Point& point) { return write_bare(at, point.civil.month); }},
    {"d", 2, [](char* at, const Point& point) { return write_two(at, point.civil.day); }},
    {"-d", 2, [](char* at, const Point& point) { return write_bare(at, point.civil.day); }},
    {"j", 3, [](char* at, const Point& point) { return write_digits(at, day_of_year(point), 3); }},
    {"-j", 3, [](char* at, const Point& point) { return write_bare(at, day_of_year(point)); }},
    {"H", 2, [](char* at, const Point& point) { return write_two(at, point.hour); }},
    {"-H", 2, [](char* at, const Point& point) { return write_bare(at, point.hour); }},
    {"I", 2, [](char* at, const Point& point) { return write_two(at, hour_12(point)); }},
    {"-I", 2, [](char* at, const Point& point) { return write_bare(at, hour_12(point)); }},
    {"p", 2, [](char* at, const Point& point) { return append(at, point.hour < 12 ? "AM" : "PM"); }},
    {"M", 2, [](char* at, const Point& point) { return write_two(at, point.minute); }},
    {"-M", 2, [](char* at, const Point& point) { return write_bare(at, point.minute); }},
    {"S", 2, [](char* at, const Point& point) { return write_two(at, point.second); }},
    {"-S", 2, [](char* at, const Point& point) { return write_bare(at, point.second); }},
    {"n", 9, [](char* at, const Point& point) { return write_digits(at, point.nanoseconds, 9); }},
    {"f", 6, [](char* at, const Point& point) { return write_digits(at, point.nanoseconds / 1'000, 6); }},
    {"g", 3, [](char* at, const Point& point) { return write_digits(at, point.nanoseconds / 1'000'000, 3); }},
    {"a", 3, [](char* at, const Point& point) { return append(at, short_day(weekday(point.days))); }},
    {"A", 9, [](char* at, const Point& point) { return append(at, kDayNames[weekday(point.days)]); }},
    {"b", 3, [](char* at, const Point& point) { return append(at, short_month(point.civil.month)); }},
    {"h", 3, [](char* at, const Point& point) { return append(at, short_month(point.civil.month)); }},
    {"B", 9, [](char* at, const Point& point) { return append(at, kMonthNames[point.civil.month - 1]); }},
    {"w", 1, [](char* at, const Point& point) { return write_bare(at, (weekday(point.days) + 1) % 7); }},
    {"u", 1, [](char* at, const Point& point) { return write_bare(at, weekday(point.days) + 1); }},
    {"U", 2, [](char* at, const Point& point) { return write_two(at, week_from(point, 6)); }},
    {"W", 2, [](char* at, const Point& point) { return write_two(at, week_from(point, 0)); }},
    {"V", 2, [](char* at, const Point& point) { return write_two(at, iso_week(point)); }},
    {"G", 4,
     [](char* at, const Point& point) {
       return write_digits(at, civil_of(static_cast<int32_t>(thursday_of(point))).year, 4);
     }},
    {"x", 10, write_date},
    {"X", 8, write_clock},
    {"T", 8, write_clock},
    {"c", 19,
     [](char* at, const Point& point) {
       at = write_date(at, point);
       *at++ = ' ';
       return write_clock(at, point);
     }},
    {"z", 3, [](char* at, const Point&) { return append(at, "+00"); }},
    {"Z", 0, [](char* at, const Point&) { return at; }},
};

// ---------------------------------------------------------------------------------------------- formats

// A literal text, then what a specifier writes; the last part of a format has none.
struct Part {
  std::string text;
  Writer write = nullptr;
};

struct Format {
  std::vector<Part> parts{1};
  int64_t size_max = 0;
};

const Specifier* find_specifier(std::string_view name) {
  for (const Specifier& specifier : kSpecifiers) {
    if (specifier.name == name) return &specifier;
  }
  return nullptr;
}

// Nothing where a specifier is not known.
std::optional<Format> compiled(std::string_view text) {
  Format format;
  size_t at = 0;
  while (at < text.size()) {
    const char byte = text[at++];
    if (byte != '%' || text.substr(at, 1) == "%") {
      at += byte == '%';
      format.parts.back().text.push_back(byte);
      ++format.size_max;
      continue;
    }
    const std::string_view name = text.substr(at, text.substr(at, 1) == "-" ? 2 : 1);
    const Specifier* specifier = find_specifier(name);
    if (specifier == nullptr) return std::nullopt;
    format.parts.back().write = specifier->write;
    format.parts.emplace_back();
    format.size_max += specifier->size_max;
    at += name.size();
  }
  return format;
}

char* write_point(const Format& format, const Point& point, char* at) {
  for (const Part& part : format.parts) {
    at = append(at, part.text);
    if (part.write != nullptr) at = part.write(at, point);
  }
  return at;
}

// A day, and the nanoseconds since its midnight.
struct Split {
  int64_t days;
  int64_t rest;
};

struct OfDates {
  using In = int32_t;
  explicit OfDates(const Type&) {}
  Split operator()(int32_t days) const { return {days, 0}; }
};

struct OfTimestamps {
  using In = int64_t;
  explicit OfTimestamps(const Type& type) : day(ticks_a_day(type.unit)), tick(nanoseconds_a_tick(type.unit)) {}
  Split operator()(int64_t moment) const { return {floor_divide(moment, day), floor_modulo(moment, day) * tick}; }

  int64_t day;
  int64_t tick;
};

Str written(const Format& format, const Split& split, TextWriter& writer) {
  if (split.days < kFirstDay || split.days > kLastDay) throw NeedsReference("strftime of a far date");
  const Point point = point_of(static_cast<int32_t>(split.days), split.rest);
  return writer.keep_until(write_point(format, point, writer.room(format.size_max)));
}

// The format is part of the node, or comes with each row.
template <typename Of>
void one_format_kernel(Call& call) {
  const auto& format = *static_cast<const Format*>(call.node.state.get());
  const Of split(call.node.arg_types[0]);
  make_texts(call, [&](int64_t row, TextWriter& writer) {
    return written(format, split(call.args[0]->at<typename Of::In>(row)), writer);
  });
}

template <typename Of>
void formats_kernel(Call& call) {
  const Of split(call.node.arg_types[0]);
  ByText<Format> formats;
  make_texts(call, [&](int64_t row, TextWriter& writer) {
    const Format* format = formats.get(text_at(call, 1, row), compiled);
    if (format == nullptr) leave_to_reference(call);
    return written(*format, split(call.args[0]->at<typename Of::In>(row)), writer);
  });
}

template <typename Of>
void resolve_of(Node& node) {
  node.can_raise = true;
  node.costly = true;
  if (node.args.size() == 2) {
    if (node.arg_types[1].kind != Kind::String) no_kernel(node);
    node.kernel = formats_kernel<Of>;
    return;
  }
  expect_args(node, 1);
  auto format = compiled(node.text);
  if (!format.has_value()) no_kernel(node);
  node.state = std::make_shared<const Format>(std::move(*format));
  node.kernel = one_format_kernel<Of>;
}

void resolve_strftime(Node& node, std::span<const Node* const>) {
  if (node.args.empty() || node.type.kind != Kind::String) no_kernel(node);
  const Type& type = node.arg_types[0];
  if (type.kind == Kind::Date32) {
    resolve_of<OfDates>(node);
  } else if (type.kind == Kind::Timestamp && (type.unit == 'u' || type.unit == 'n')) {
    resolve_of<OfTimestamps>(node);
  } else {
    no_kernel(node);
  }
}

constexpr Function kFunctions[] = {{"strftime", resolve_strftime}};

}  // namespace

std::span<const Function> time_format_functions() {
  return kFunctions;
}

}  // namespace bireme
