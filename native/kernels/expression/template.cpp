// format and printf with a constant template. A node's text is the template; what this does not take,
// mistakes included, has no kernel here (backends/reference/templates.py says what it means).
//
// Taken are whole numbers in decimal and hexadecimal digits, floats in e, f and g or as short as they can be,
// and texts; with a width, zeros, a sign and a side. Floats that are not finite are left to the reference.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

constexpr int kWidthMax = 1000;
constexpr int kNotGiven = -1;

enum class Written : uint8_t { Text, Whole, Float };

struct Spec {
  char side = 0;  // '<', '>', '^', or 0 where it is not given
  char fill = ' ';
  char sign = 0;  // '+', ' ', or 0
  bool zeros = false;
  int width = 0;
  int precision = kNotGiven;
  char kind = 0;
};

struct Field {
  size_t arg = 0;
  Spec spec;
};

// A text, and the value after it, if any.
struct Piece {
  std::string text;
  std::optional<Field> field;
};

using Template = std::vector<Piece>;

Written written_as(const Type& type) {
  if (type.kind == Kind::String) return Written::Text;
  return is_float(type.kind) ? Written::Float : Written::Whole;
}

// ---------------------------------------------------------------------------------------- reading templates

// A template up to where it is read; `fits` turns false where it is none of ours.
struct Reader {
  std::string_view text;
  const std::vector<Type>& types;
  size_t at = 0;
  size_t next_arg = 0;
  bool fits = true;

  bool done() const { return at >= text.size() || !fits; }
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool sees_ascii() const { return peek() != 0 && !is_foreign(peek()); }
  bool take(char wanted) {
    const bool found = at < text.size() && text[at] == wanted;
    at += found;
    return found;
  }
  int take_number(int otherwise) {
    if (peek() < '0' || peek() > '9') return otherwise;
    int number = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at)
      number = std::min(10 * number + (peek() - '0'), kWidthMax + 1);
    fits &= number <= kWidthMax;
    return number;
  }
};

bool is_side(char character) {
  return character == '<' || character == '>' || character == '^';
}

bool is_one_of(char kind, std::string_view kinds) {
  return kind != 0 && kinds.find(kind) != std::string_view::npos;
}

bool goes_with(const Spec& spec, Written written) {
  switch (written) {
    case Written::Text:
      return (spec.kind == 0 || spec.kind == 's') && spec.sign == 0 && !spec.zeros;
    case Written::Whole:
      return (spec.kind == 0 || is_one_of(spec.kind, "dxX")) && spec.precision == kNotGiven;
    default:
      return is_one_of(spec.kind, "eEfFgG") || (spec.kind == 0 && spec.precision == kNotGiven);
  }
}

// What is between ':' and '}'.
Spec read_format_spec(Reader& reader) {
  Spec spec;
  if (reader.sees_ascii() && is_side(reader.peek(1))) {
    spec.fill = reader.peek();
    ++reader.at;
  }
  if (is_side(reader.peek())) spec.side = reader.text[reader.at++];
  if (is_one_of(reader.peek(), "-+ ")) spec.sign = reader.text[reader.at++];
  if (spec.sign == '-') spec.sign = 0;
  spec.zeros = reader.take('0');
  spec.width = reader.take_number(0);
  if (reader.take('.')) spec.precision = reader.take_number(kNotGiven - 1);
  if (reader.peek() != '}' && reader.sees_ascii()) spec.kind = reader.text[reader.at++];
  reader.fits &= spec.precision >= kNotGiven && !(spec.zeros && spec.side != 0);
  return spec;
}

void add_field(Reader& reader, Template& pieces, std::optional<size_t> arg, const Spec& spec) {
  const size_t which = arg.has_value() ? *arg : reader.next_arg++;
  reader.fits &= which < reader.types.size() && goes_with(spec, written_as(reader.types[which]));
  pieces.back().field = Field{which, spec};
  pieces.emplace_back();
}

void read_brace(Reader& reader, Template& pieces) {
  const int index = reader.take_number(kNotGiven);
  const Spec spec = reader.take(':') ? read_format_spec(reader) : Spec();
  reader.fits &= reader.take('}');
  add_field(reader, pieces, index < 0 ? std::nullopt : std::optional(static_cast<size_t>(index)), spec);
}

void read_format(Reader& reader, Template& pieces) {
  const char next = reader.text[reader.at++];
  if (next != '{' && next != '}') {
    pieces.back().text += next;
  } else if (reader.take(next)) {
    pieces.back().text += next;
  } else if (next == '{') {
    read_brace(reader, pieces);
  } else {
    reader.fits = false;
  }
}

Spec read_flags(Reader& reader) {
  Spec spec;
  spec.side = '>';
  for (; is_one_of(reader.peek(), "-+ 0"); ++reader.at) {
    const char flag = reader.peek();
    if (flag == '-') spec.side = '<';
    if (flag == '0') spec.zeros = true;
    if (flag == '+' || (flag == ' ' && spec.sign == 0)) spec.sign = flag;
  }
  return spec;
}

void read_conversion(Reader& reader, Template& pieces) {
  Spec spec = read_flags(reader);
  spec.width = reader.take_number(0);
  if (reader.take('.')) spec.precision = reader.take_number(0);
  while (is_one_of(reader.peek(), "hlLjztq")) ++reader.at;
  spec.kind = reader.peek();
  ++reader.at;
  const bool is_known = is_one_of(spec.kind, "sdiuxXeEfFgG");
  if (is_one_of(spec.kind, "iu")) spec.kind = 'd';
  if (spec.side == '<') spec.zeros = false;
  reader.fits &= is_known;
  add_field(reader, pieces, std::nullopt, spec);
}

void read_printf(Reader& reader, Template& pieces) {
  const char next = reader.text[reader.at++];
  if (next != '%' || reader.take('%')) {
    pieces.back().text += next;
  } else {
    read_conversion(reader, pieces);
  }
}

// --------------------------------------------------------------------------------------------------- values

// A value in writing: its sign, and the rest.
struct Writing {
  char room[400];
  std::string_view sign;
  std::string_view rest;
};

std::string_view sign_of(bool is_negative, char asked) {
  if (is_negative) return "-";
  return asked == '+' ? "+" : asked == ' ' ? " " : "";
}

void write_whole(int128 value, const Spec& spec, Writing& out) {
  const bool is_negative = value < 0;
  auto left = is_negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  const char* digits = spec.kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  char* const end = out.room + sizeof out.room;
  char* at = end;
  const unsigned base = is_one_of(spec.kind, "xX") ? 16 : 10;
  for (; left > UINT64_MAX; left /= base) *--at = digits[static_cast<size_t>(left % base)];
  auto narrow = static_cast<uint64_t>(left);
  do {
    *--at = digits[base == 10 ? narrow % 10 : narrow % 16];
    narrow /= base;
  } while (narrow != 0);
  out.sign = sign_of(is_negative, spec.sign);
  out.rest = {at, static_cast<size_t>(end - at)};
}

// The fewest digits that are this value and no other; with an exponent where it is below -4 or above 15.
std::string_view shortest(double magnitude, char* room) {
  char digits[32];
  const char* end =
      std::to_chars(digits, digits + sizeof digits, magnitude, std::chars_format::scientific).ptr;
  const std::string_view made(digits, static_cast<size_t>(end - digits));
  const size_t mark = made.find('e');
  int exponent = 0;
  const char* number = digits + mark + (made[mark + 1] == '+' ? 2 : 1);
  std::from_chars(number, end, exponent);
  if (exponent < -4 || exponent > 15) return {room, static_cast<size_t>(append(room, made) - room)};
  const auto format = std::chars_format::fixed;
  char* at = std::to_chars(room, room + 64, magnitude, format).ptr;
  const std::string_view fixed(room, static_cast<size_t>(at - room));
  if (fixed.find('.') == std::string_view::npos) at = append(at, ".0");
  return {room, static_cast<size_t>(at - room)};
}

std::chars_format layout_of(char kind) {
  const char lower = static_cast<char>(kind | 0x20);
  if (lower == 'e') return std::chars_format::scientific;
  return lower == 'f' ? std::chars_format::fixed : std::chars_format::general;
}

void write_float(double value, const Spec& spec, Writing& out) {
  const double magnitude = std::fabs(value);
  out.sign = sign_of(std::signbit(value), spec.sign);
  if (spec.kind == 0) {
    out.rest = shortest(magnitude, out.room);
    return;
  }
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  // Unlike printf, whatever the locale.
  char* end =
      std::to_chars(out.room, out.room + sizeof out.room, magnitude, layout_of(spec.kind), precision).ptr;
  if (spec.kind < 'a') std::replace(out.room, end, 'e', 'E');
  out.rest = {out.room, static_cast<size_t>(end - out.room)};
}

int128 whole_at(const Call& call, size_t arg, int64_t row) {
  const Vector& vector = *call.args[arg];
  int128 value = 0;
  visit_number(physical_of(call.node.arg_types[arg].kind), [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T> || sizeof(T) == 16) value = static_cast<int128>(vector.at<T>(row));
  });
  return value;
}

double float_at(const Call& call, size_t arg, int64_t row) {
  const Vector& vector = *call.args[arg];
  return call.node.arg_types[arg].kind == Kind::Float32 ? static_cast<double>(vector.at<float>(row))
                                                        : vector.at<double>(row);
}

// Precise digits of a float beyond this leave the room of a writing.
constexpr int kPrecisionMax = 60;

void write_value(const Call& call, const Field& field, int64_t row, Writing& out) {
  const Spec& spec = field.spec;
  out.sign = {};
  switch (written_as(call.node.arg_types[field.arg])) {
    case Written::Text: {
      const std::string_view text = text_at(call, field.arg, row);
      out.rest = spec.precision < 0 ? text : text.substr(0, character_start(text, spec.precision));
      return;
    }
    case Written::Whole:
      return write_whole(whole_at(call, field.arg, row), spec, out);
    case Written::Float: {
      const double value = float_at(call, field.arg, row);
      if (!std::isfinite(value)) leave_to_reference(call);
      return write_float(value, spec, out);
    }
  }
}

// --------------------------------------------------------------------------------------------------- pieces

char side_of(const Call& call, const Field& field) {
  if (field.spec.side != 0) return field.spec.side;
  return written_as(call.node.arg_types[field.arg]) == Written::Text ? '<' : '>';
}

char* append_fill(char* at, char fill, int64_t count) {
  if (count > 0) std::memset(at, fill, static_cast<size_t>(count));
  return at + std::max<int64_t>(count, 0);
}

char* append_field(const Call& call, const Field& field, const Writing& value, char* at) {
  const Spec& spec = field.spec;
  int64_t missing = 0;
  if (spec.width > 0)
    missing = std::max<int64_t>(
        spec.width - static_cast<int64_t>(value.sign.size()) - count_characters(value.rest), 0);
  if (spec.zeros) return append(append_fill(append(at, value.sign), '0', missing), value.rest);
  const char side = side_of(call, field);
  const int64_t before = side == '<' ? 0 : side == '>' ? missing : missing / 2;
  at = append(append(append_fill(at, spec.fill, before), value.sign), value.rest);
  return append_fill(at, spec.fill, missing - before);
}

int64_t size_max(const Call& call, const Template& pieces, int64_t row) {
  int64_t size = 0;
  for (const Piece& piece : pieces) {
    size += static_cast<int64_t>(piece.text.size());
    if (!piece.field.has_value()) continue;
    const Field& field = *piece.field;
    const bool is_text = written_as(call.node.arg_types[field.arg]) == Written::Text;
    size += field.spec.width + (is_text ? text_at(call, field.arg, row).size() : sizeof(Writing::room) + 1);
  }
  return size;
}

void template_kernel(Call& call) {
  const auto& pieces = *static_cast<const Template*>(call.node.state.get());
  make_texts(call, [&call, &pieces](int64_t row, TextWriter& writer) {
    Writing value;
    char* at = writer.room(size_max(call, pieces, row));
    for (const Piece& piece : pieces) {
      at = append(at, piece.text);
      if (!piece.field.has_value()) continue;
      write_value(call, *piece.field, row, value);
      at = append_field(call, *piece.field, value, at);
    }
    return writer.keep_until(at);
  });
}

bool can_be_written(const Type& type) {
  return type.kind == Kind::String || is_integer(type.kind) || is_float(type.kind) ||
         (is_decimal(type.kind) && type.scale == 0);
}

template <void (*read)(Reader&, Template&)>
void resolve_template(Node& node, std::span<const Node* const>) {
  for (const Type& type : node.arg_types) {
    if (!can_be_written(type)) no_kernel(node);
  }
  auto pieces = std::make_shared<Template>(1);
  Reader reader{node.text, node.arg_types};
  while (!reader.done()) read(reader, *pieces);
  for (const Piece& piece : *pieces)
    reader.fits &= !piece.field.has_value() || piece.field->spec.precision <= kPrecisionMax;
  if (!reader.fits || node.type.kind != Kind::String) no_kernel(node);
  node.state = std::move(pieces);
  node.kernel = template_kernel;
}

constexpr Function kFunctions[] = {
    {"format", resolve_template<read_format>},
    {"printf", resolve_template<read_printf>},
};

}  // namespace

std::span<const Function> template_functions() {
  return kFunctions;
}

}  // namespace bireme
