#include "kernels/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace bireme {

namespace {

// As in the reference backend, whose language has a stack that is not deeper.
constexpr int kDepthMax = 200;

bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}
bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

int hex_digit(char byte) {
  if (is_digit(byte)) return byte - '0';
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The four digits of \uXXXX; -1 where they are not four digits.
int32_t read_unit(const char* at, const char* end) {
  if (end - at < 4) return -1;
  int32_t unit = 0;
  for (int index = 0; index < 4; ++index) {
    const int digit = hex_digit(at[index]);
    if (digit < 0) return -1;
    unit = unit << 4 | digit;
  }
  return unit;
}

constexpr bool is_high(int32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low(int32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

char* append_code_point(char* out, uint32_t code) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *out++ = static_cast<char>(0xC0 | code >> 6);
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = static_cast<char>(0xE0 | code >> 12);
    *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out++ = static_cast<char>(0xF0 | code >> 18);
    *out++ = static_cast<char>(0x80 | (code >> 12 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  }
  return out;
}

// Reads what stands behind a backslash, which is well formed.
const char* unescape(const char* at, const char* end, char*& out) {
  const char kind = *at++;
  switch (kind) {
    case 'b':
      *out++ = '\b';
      return at;
    case 'f':
      *out++ = '\f';
      return at;
    case 'n':
      *out++ = '\n';
      return at;
    case 'r':
      *out++ = '\r';
      return at;
    case 't':
      *out++ = '\t';
      return at;
    case 'u': {
      const int32_t unit = read_unit(at, end);
      at += 4;
      auto code = static_cast<uint32_t>(unit);
      if (is_high(unit)) {
        code = 0x10000 + ((code - 0xD800) << 10) + static_cast<uint32_t>(read_unit(at + 2, end) - 0xDC00);
        at += 6;
      }
      out = append_code_point(out, code);
      return at;
    }
    default:
      *out++ = kind;
      return at;
  }
}

// Goes through one text. All its functions but `at_end` say whether what they were to find is there.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool document(const JsonPath& path, std::string_view& part, bool& is_found) {
    path_ = &path;
    if (!value(0, true, 0)) return false;
    spaces();
    part = part_;
    is_found = is_found_;
    return at_ == end_;
  }

  // How many elements the array has whose bracket was just opened; does not move.
  int64_t count_elements() {
    const char* start = at_;
    const JsonPath nothing;
    path_ = &nothing;
    int64_t count = 0;
    const bool is_whole = elements([&](int64_t) {
      ++count;
      return value(0, false, 1);
    });
    at_ = start;
    return is_whole ? count : -1;
  }

  bool open(char bracket) {
    spaces();
    return take(bracket);
  }

 private:
  void spaces() {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }
  bool take(char byte) {
    if (at_ == end_ || *at_ != byte) return false;
    ++at_;
    return true;
  }

  // A value that is `wanted` where the path leads through it, `step` steps of which are done.
  bool value(size_t step, bool wanted, int depth) {
    spaces();
    if (at_ == end_ || depth > kDepthMax) return false;
    const char* start = at_;
    const bool is_part = wanted && step == path_->size();
    if (!any(step, wanted && !is_part, depth)) return false;
    if (is_part) {
      part_ = {start, static_cast<size_t>(at_ - start)};
      is_found_ = true;
    }
    return true;
  }

  bool any(size_t step, bool wanted, int depth) {
    switch (*at_) {
      case '{':
        ++at_;
        return object(step, wanted, depth);
      case '[':
        ++at_;
        return array(step, wanted, depth);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        if (end_ - at_ >= 2 && at_[1] == 'u') return word("null");
        return not_finite();
      default:
        return number();
    }
  }

  bool object(size_t step, bool wanted, int depth) {
    spaces();
    while (!take('}')) {
      const char* start = at_;
      if (!string()) return false;
      const bool is_wanted =
          wanted && !is_found_ && is_key(step, {start, static_cast<size_t>(at_ - start)});
      spaces();
      if (!take(':')) return false;
      if (!value(step + 1, is_wanted, depth + 1)) return false;
      if (is_wanted) wanted = false;
      spaces();
      if (take(',')) {
        spaces();
      } else if (at_ == end_ || *at_ != '}') {
        return false;
      }
    }
    return true;
  }

  template <typename Element>
  bool elements(Element element) {
    spaces();
    for (int64_t index = 0; !take(']'); ++index) {
      if (!element(index)) return false;
      spaces();
      if (take(',')) {
        spaces();
      } else if (at_ == end_ || *at_ != ']') {
        return false;
      }
    }
    return true;
  }

  bool array(size_t step, bool wanted, int depth) {
    int64_t index = -1;
    if (wanted && (*path_)[step].kind != JsonStep::Kind::Key) {
      index = (*path_)[step].index;
      if (index < 0 && (*path_)[step].kind == JsonStep::Kind::Index && !from_start(index, depth)) return false;
    }
    return elements([&](int64_t at) { return value(step + 1, wanted && at == index, depth + 1); });
  }

  // An index from the end as one from the start, or one that no element has.
  bool from_start(int64_t& index, int depth) {
    const char* start = at_;
    int64_t count = 0;
    if (!elements([&](int64_t) {
          ++count;
          return value(0, false, depth + 1);
        }))
      return false;
    at_ = start;
    index = index + count < 0 ? -1 : index + count;
    return true;
  }

  bool is_key(size_t step, std::string_view quoted) const {
    const JsonStep& wanted = (*path_)[step];
    if (wanted.kind == JsonStep::Kind::Index) return false;
    if (is_plain_json_text(quoted)) return quoted.substr(1, quoted.size() - 2) == wanted.key;
    std::string key(quoted.size(), '\0');
    const char* end = write_json_text(quoted, key.data());
    return std::string_view(key.data(), static_cast<size_t>(end - key.data())) == wanted.key;
  }

  bool word(std::string_view expected) {
    if (static_cast<size_t>(end_ - at_) < expected.size()) return false;
    if (std::memcmp(at_, expected.data(), expected.size()) != 0) return false;
    at_ += expected.size();
    return true;
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ < end_) {
      const auto byte = static_cast<unsigned char>(*at_++);
      if (byte == '"') return true;
      if (byte < 0x20) return false;
      if (byte == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    if (at_ == end_) return false;
    const char kind = *at_++;
    if (kind != 'u') return std::strchr("\"\\/bfnrt", kind) != nullptr && kind != '\0';
    const int32_t unit = read_unit(at_, end_);
    if (unit < 0 || is_low(unit)) return false;
    at_ += 4;
    if (!is_high(unit)) return true;
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u' || !is_low(read_unit(at_ + 2, end_))) return false;
    at_ += 6;
    return true;
  }

  bool digits() {
    const char* start = at_;
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return at_ > start;
  }

  bool number() {
    take('-');
    if (at_ < end_ && !is_digit(*at_)) return not_finite();
    if (take('0')) {
      if (at_ < end_ && is_digit(*at_)) return false;
    } else if (!digits()) {
      return false;
    }
    if (take('.') && !digits()) return false;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool not_finite() {
    for (const std::string_view name : {"infinity", "inf", "nan"}) {
      const auto size = static_cast<std::ptrdiff_t>(name.size());
      if (end_ - at_ < size) continue;
      if (std::equal(name.begin(), name.end(), at_, [](char left, char right) { return left == (right | 0x20); })) {
        at_ += size;
        return true;
      }
    }
    return false;
  }

  const char* at_;
  const char* end_;
  const JsonPath* path_ = nullptr;
  std::string_view part_;
  bool is_found_ = false;
};

bool is_whole_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// "[3]", "[-1]" or "[#-1]", from behind the bracket up to the one that closes it.
bool parse_index(std::string_view text, JsonStep& step) {
  step.kind = JsonStep::Kind::Index;
  bool from_end = false;
  if (!text.empty() && text[0] == '#') {
    if (text.size() < 3 || text[1] != '-') return false;
    from_end = true;
    text.remove_prefix(2);
  } else if (!text.empty() && text[0] == '-') {
    from_end = true;
    text.remove_prefix(1);
  }
  if (!is_whole_number(text)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.index);
  if (error != std::errc()) return false;
  if (from_end) step.index = -step.index;
  return true;
}

bool parse_steps(std::string_view text, JsonPath& path) {
  while (!text.empty()) {
    JsonStep step;
    if (text[0] == '[') {
      const size_t close = text.find(']');
      if (close == std::string_view::npos || !parse_index(text.substr(1, close - 1), step)) return false;
      text.remove_prefix(close + 1);
    } else if (text[0] == '.' && text.size() > 1) {
      text.remove_prefix(1);
      const bool is_quoted = text[0] == '"';
      if (is_quoted) text.remove_prefix(1);
      const size_t end = is_quoted ? text.find('"') : std::min(text.find_first_of(".["), text.size());
      if (end == std::string_view::npos || end == 0) return false;
      step.key = text.substr(0, end);
      if (!is_quoted && step.key == "*") return false;
      text.remove_prefix(end + (is_quoted ? 1 : 0));
    } else {
      return false;
    }
    path.push_back(std::move(step));
  }
  return true;
}

bool parse_pointer(std::string_view text, JsonPath& path) {
  while (!text.empty()) {
    text.remove_prefix(1);
    const size_t end = std::min(text.find('/'), text.size());
    const std::string_view name = text.substr(0, end);
    JsonStep step;
    step.kind = JsonStep::Kind::Either;
    step.index = -1;
    if (is_whole_number(name)) std::from_chars(name.data(), name.data() + name.size(), step.index);
    for (size_t at = 0; at < name.size(); ++at) {
      if (name[at] == '~' && at + 1 < name.size() && (name[at + 1] == '0' || name[at + 1] == '1')) {
        step.key += name[++at] == '0' ? '~' : '/';
      } else {
        step.key += name[at];
      }
    }
    path.push_back(std::move(step));
    text.remove_prefix(end);
  }
  return true;
}

// A real in the shortest digits that give it back, without an exponent from 1e-6 up to below 1e21 (as ECMAScript does it).
char* write_real(std::string_view text, char* out) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) {
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
  }
  char digits[32];
  char* end = std::to_chars(digits, digits + sizeof digits, std::fabs(value), std::chars_format::scientific).ptr;
  char* mark = std::find(digits, end, 'e');
  int exponent = 0;
  std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, end, exponent);
  std::string mantissa(1, digits[0]);
  if (mark > digits + 2) mantissa.append(digits + 2, mark);
  if (std::signbit(value)) *out++ = '-';
  const auto count = static_cast<int>(mantissa.size());
  std::string plain;
  if (exponent < -6 || exponent >= 21) {
    plain = mantissa.substr(0, 1);
    if (count > 1) plain += "." + mantissa.substr(1);
    plain += "e" + std::to_string(exponent);
  } else if (exponent < 0) {
    plain = "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + mantissa;
  } else if (exponent >= count - 1) {
    plain = mantissa + std::string(static_cast<size_t>(exponent - count + 1), '0') + ".0";
  } else {
    plain = mantissa;
    plain.insert(static_cast<size_t>(exponent) + 1, ".");
  }
  std::memcpy(out, plain.data(), plain.size());
  return out + plain.size();
}

char* write_escaped(char* out, unsigned char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  *out++ = '\\';
  switch (byte) {
    case '"':
    case '\\':
      *out++ = static_cast<char>(byte);
      return out;
    case '\b':
      *out++ = 'b';
      return out;
    case '\f':
      *out++ = 'f';
      return out;
    case '\n':
      *out++ = 'n';
      return out;
    case '\r':
      *out++ = 'r';
      return out;
    case '\t':
      *out++ = 't';
      return out;
    default:
      std::memcpy(out, "u00", 3);
      out[3] = kDigits[byte >> 4];
      out[4] = kDigits[byte & 15];
      return out + 5;
  }
}

const char* string_end(const char* at) {
  for (++at; *at != '"'; ++at) at += *at == '\\' ? 1 : 0;
  return at + 1;
}

char* write_string(std::string_view quoted, char* out) {
  if (is_plain_json_text(quoted)) {
    std::memcpy(out, quoted.data(), quoted.size());
    return out + quoted.size();
  }
  std::string text(quoted.size(), '\0');
  const char* end = write_json_text(quoted, text.data());
  *out++ = '"';
  for (const char* at = text.data(); at < end; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      out = write_escaped(out, byte);
    } else {
      *out++ = *at;
    }
  }
  *out++ = '"';
  return out;
}

char* write_number(std::string_view text, char* out) {
  if (text == "-0") {
    *out = '0';
    return out + 1;
  }
  if (kind_of_json(text) == JsonKind::Real) return write_real(text, out);
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

bool ends_number(char byte) {
  return is_space(byte) || byte == ',' || byte == ']' || byte == '}';
}

}  // namespace

bool parse_json_path(std::string_view text, JsonPath& path) {
  path.clear();
  if (text.empty()) return true;
  if (text[0] == '$') return parse_steps(text.substr(1), path);
  if (text[0] == '/') return parse_pointer(text, path);
  JsonStep step;
  step.key = text;
  path.push_back(std::move(step));
  return true;
}

JsonFound find_json(std::string_view text, const JsonPath& path, std::string_view& part) {
  bool is_found = false;
  if (!Reader(text).document(path, part, is_found)) return JsonFound::Malformed;
  return is_found ? JsonFound::Part : JsonFound::Missing;
}

JsonKind kind_of_json(std::string_view value) {
  switch (value[0]) {
    case '{':
      return JsonKind::Object;
    case '[':
      return JsonKind::Array;
    case '"':
      return JsonKind::Text;
    case 't':
      return JsonKind::True;
    case 'f':
      return JsonKind::False;
    case 'n':
      return value == "null" ? JsonKind::Null : JsonKind::Real;
    default:
      return is_whole_number(value[0] == '-' ? value.substr(1) : value) ? JsonKind::Whole : JsonKind::Real;
  }
}

int64_t elements_of_json(std::string_view array) {
  Reader reader(array);
  return reader.open('[') ? reader.count_elements() : 0;
}

int64_t json_room(std::string_view value) {
  // The shortest real that becomes long: 1e20.
  constexpr int64_t kRealBytesMax = 32;
  const auto reals = std::count_if(value.begin(), value.end(), [](char byte) { return byte == 'e' || byte == 'E' || byte == '.'; });
  return static_cast<int64_t>(value.size()) + kRealBytesMax * reals + kRealBytesMax;
}

char* write_json(std::string_view value, char* out) {
  const char* at = value.data();
  const char* end = at + value.size();
  while (at < end) {
    const char byte = *at;
    if (is_space(byte)) {
      ++at;
    } else if (byte == '"') {
      const char* stop = string_end(at);
      out = write_string({at, static_cast<size_t>(stop - at)}, out);
      at = stop;
    } else if (is_digit(byte) || byte == '-') {
      const char* stop = std::find_if(at, end, ends_number);
      out = write_number({at, static_cast<size_t>(stop - at)}, out);
      at = stop;
    } else {
      // A comma behind the last element goes.
      if ((byte == ']' || byte == '}') && out[-1] == ',') --out;
      *out++ = byte;
      ++at;
    }
  }
  return out;
}

char* write_json_text(std::string_view quoted, char* out) {
  const char* at = quoted.data() + 1;
  const char* end = quoted.data() + quoted.size() - 1;
  while (at < end) {
    if (*at == '\\') {
      at = unescape(at + 1, end, out);
    } else {
      *out++ = *at++;
    }
  }
  return out;
}

bool is_plain_json_text(std::string_view quoted) {
  return quoted.find('\\') == std::string_view::npos;
}

}  // namespace bireme
