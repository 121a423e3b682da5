// strptime and try_strptime.
//
// What the specifiers mean is in backends/reference/time_parsing.py. Those of weeks and zones have no kernel.
// A text that does not fit is left to the reference backend, which says what is wrong with it.
#include <algorithm>
#include <optional>

#include "kernels/expression/by_text.hpp"
#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/expression/time_names.hpp"
#include "kernels/expression/time_template.hpp"

namespace bireme {

namespace {

using namespace moments;
using namespace time_template;

// What is not said is -1, or has the value that it then means.
struct Fields {
  int64_t year = 1900;
  int64_t month = -1;
  int64_t day = -1;
  int64_t day_of_year = -1;
  int64_t hour = 0;
  int64_t half_day = -1;
  int64_t minute = 0;
  int64_t second = 0;
  int64_t microsecond = 0;
  int64_t offset_seconds = 0;
};

int64_t number_of(std::string_view digits) {
  int64_t value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

// Microseconds; fails where there are finer parts.
bool read_fraction(std::string_view digits, int64_t& microsecond) {
  int64_t nanoseconds = number_of(digits);
  for (size_t size = digits.size(); size < 9; ++size) nanoseconds *= 10;
  microsecond = nanoseconds / 1000;
  return nanoseconds % 1000 == 0;
}

int64_t offset_of(std::string_view text) {
  int64_t seconds = 0;
  int64_t unit = 3600;
  for (size_t at = 1; at + 1 < text.size(); at += 2, unit /= 60) {
    at += text[at] == ':';
    seconds += number_of(text.substr(at, 2)) * unit;
  }
  return text[0] == '-' ? -seconds : seconds;
}

bool read_name(const Piece& piece, std::string_view text, Fields& fields) {
  switch (piece.field) {
    case Field::ShortMonthName:
    case Field::MonthName:
      fields.month = 1;
      while (!same_letters(short_month(fields.month), text.substr(0, kShortName))) ++fields.month;
      break;
    case Field::HalfDay:
      fields.half_day = text[0] == 'P' || text[0] == 'p';
      break;
    case Field::Offset:
      fields.offset_seconds = offset_of(text);
      break;
    default:
      break;
  }
  return true;
}

int64_t& field_of(Field field, Fields& fields) {
  switch (field) {
    case Field::Year:
    case Field::ShortYear:
      return fields.year;
    case Field::Month:
      return fields.month;
    case Field::Day:
      return fields.day;
    case Field::DayOfYear:
      return fields.day_of_year;
    case Field::Minute:
      return fields.minute;
    case Field::Second:
      return fields.second;
    default:
      return fields.hour;
  }
}

// Takes in what a piece says; whether it can be.
bool read(const Piece& piece, std::string_view text, Fields& fields) {
  if (piece.digits == 0) return read_name(piece, text, fields);
  if (piece.field == Field::Fraction) return read_fraction(text, fields.microsecond);
  int64_t value = number_of(text);
  if (value < piece.least || value > piece.most) return false;
  if (piece.field == Field::ShortYear) value += value > 68 ? 1900 : 2000;  // as POSIX has it
  field_of(piece.field, fields) = value;
  return true;
}

std::optional<int64_t> day_number(const Fields& fields) {
  if (fields.month >= 0 || fields.day >= 0) {
    const int64_t month = std::max<int64_t>(fields.month, 1);
    const int64_t day = std::max<int64_t>(fields.day, 1);
    if (day > days_in_month(fields.year, month)) return std::nullopt;
    return days_of(fields.year, month, day);
  }
  if (fields.day_of_year > (is_leap(fields.year) ? 366 : 365)) return std::nullopt;
  return days_of(fields.year, 1, 1) + std::max<int64_t>(fields.day_of_year, 1) - 1;
}

// Microseconds since 1970 of what is said, where that lies in the years 1 to 9999.
std::optional<int64_t> moment_of(const Fields& fields) {
  constexpr int64_t kFirst = days_of(1, 1, 1) * kMicrosecondsADay;
  constexpr int64_t kPast = days_of(10'000, 1, 1) * kMicrosecondsADay;
  const auto days = day_number(fields);
  int64_t hour = fields.hour;
  if (fields.half_day >= 0) {
    if (hour > 12) return std::nullopt;
    hour = hour % 12 + 12 * fields.half_day;
  }
  if (!days.has_value()) return std::nullopt;
  const int64_t seconds = (hour * 60 + fields.minute) * 60 + fields.second - fields.offset_seconds;
  const int64_t moment = *days * kMicrosecondsADay + seconds * 1'000'000 + fields.microsecond;
  if (moment < kFirst || moment >= kPast) return std::nullopt;
  return moment;
}

std::optional<int64_t> parsed(const Pieces& pieces, std::string_view text, Taken& taken) {
  taken.resize(pieces.size());
  if (!match(pieces, 0, stripped(text), taken)) return std::nullopt;
  Fields fields;
  for (size_t index = 0; index < pieces.size(); ++index) {
    if (!read(pieces[index], taken[index], fields)) return std::nullopt;
  }
  return moment_of(fields);
}

// Nothing for a format that is read elsewhere, or none.
std::optional<Pieces> pieces_of(std::string_view format) {
  Pieces pieces;
  const bool fits = add_pieces(pieces, stripped(format)) && !pieces.empty() && pieces.size() <= kPiecesMax;
  return fits ? std::optional(std::move(pieces)) : std::nullopt;
}

// out[row] = the text of the row, taken apart by the pieces that pieces_at(row) gives.
template <typename PiecesAt>
void parse_rows(Call& call, PiecesAt pieces_at) {
  Taken taken;
  int64_t* out = call.out_as<int64_t>();
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  for (int64_t row = 0; row < call.rows; ++row) {
    out[row] = 0;
    bad[row] = 0;
    if (!is_live(call, row)) continue;
    const auto moment = parsed(pieces_at(row), text_at(call, 0, row), taken);
    out[row] = moment.value_or(0);
    bad[row] = !moment.has_value();
  }
  call.reject<NeedsReference>(bad);
}

void one_format_kernel(Call& call) {
  const auto& pieces = *static_cast<const Pieces*>(call.node.state.get());
  parse_rows(call, [&pieces](int64_t) -> const Pieces& { return pieces; });
}

void formats_kernel(Call& call) {
  ByText<Pieces> formats;
  parse_rows(call, [&](int64_t row) -> const Pieces& {
    const Pieces* pieces = formats.get(text_at(call, 1, row), pieces_of);
    if (pieces == nullptr) leave_to_reference(call);
    return *pieces;
  });
}

void resolve_parse(Node& node, std::span<const Node* const>) {
  const bool fits = !node.args.empty() && node.arg_types[0].kind == Kind::String &&
                    node.type.kind == Kind::Timestamp && node.type.unit == 'u';
  if (!fits) no_kernel(node);
  node.can_raise |= !node.safe;
  node.costly = true;
  if (node.args.size() == 2 && node.arg_types[1].kind == Kind::String) {
    node.kernel = formats_kernel;
    return;
  }
  expect_args(node, 1);
  auto pieces = pieces_of(node.text);
  if (!pieces.has_value()) no_kernel(node);
  node.state = std::make_shared<const Pieces>(std::move(*pieces));
  node.kernel = one_format_kernel;
}

constexpr Function kFunctions[] = {{"strptime", resolve_parse}, {"try_strptime", resolve_parse}};

}  // namespace

std::span<const Function> time_parse_functions() {
  return kFunctions;
}

}  // namespace bireme
