#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "kernels/json.hpp"
#include "kernels/json_bytes.hpp"

namespace bireme {

namespace {

using json::is_digit;
using json::is_high;
using json::is_space;
using json::read_unit;

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
