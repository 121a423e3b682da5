#include "kernels/expression/time_template.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "kernels/expression/time_names.hpp"

namespace bireme::time_template {

namespace {

struct Specifier {
  char name;
  Field field;
  int digits;
  int least;
  int most;
};

constexpr Specifier kSpecifiers[] = {
    {'Y', Field::Year, 4, 1, 9999},
    {'y', Field::ShortYear, 2, 0, 99},
    {'m', Field::Month, 2, 1, 12},
    {'b', Field::ShortMonthName, 0, 0, 0},
    {'h', Field::ShortMonthName, 0, 0, 0},
    {'B', Field::MonthName, 0, 0, 0},
    {'d', Field::Day, 2, 1, 31},
    {'j', Field::DayOfYear, 3, 1, 366},
    {'H', Field::Hour, 2, 0, 23},
    {'I', Field::Hour12, 2, 1, 12},
    {'p', Field::HalfDay, 0, 0, 0},
    {'M', Field::Minute, 2, 0, 59},
    {'S', Field::Second, 2, 0, 59},
    {'g', Field::Fraction, 3, 0, 999'999'999},
    {'f', Field::Fraction, 6, 0, 999'999'999},
    {'n', Field::Fraction, 9, 0, 999'999'999},
    {'a', Field::ShortDayName, 0, 0, 0},
    {'A', Field::DayName, 0, 0, 0},
    {'z', Field::Offset, 0, 0, 0},
};

std::string_view spelled_out(char shorthand) {
  switch (shorthand) {
    case 'x':
      return "%Y-%m-%d";
    case 'X':
    case 'T':
      return "%H:%M:%S";
    case 'c':
      return "%Y-%m-%d %H:%M:%S";
    default:
      return {};
  }
}

// ---------------------------------------------------------------------------------------------- blanks

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

// As a regular expression of ASCII sees them.
bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// The bytes of the blank of Unicode that a text begins with; 0 where it begins with none.
size_t blank_at(std::string_view text) {
  if (text.empty()) return 0;
  if (is_space(text[0]) || (text[0] >= '\x1c' && text[0] <= '\x1f')) return 1;
  constexpr std::string_view kBlanks[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80",
                                          "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84",
                                          "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
                                          "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                          "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  if (static_cast<unsigned char>(text[0]) < 0x80) return 0;
  for (const std::string_view blank : kBlanks) {
    if (text.substr(0, blank.size()) == blank) return blank.size();
  }
  return 0;
}

size_t blank_before_end(std::string_view text) {
  for (size_t size = 1; size <= std::min<size_t>(3, text.size()); ++size) {
    if (blank_at(text.substr(text.size() - size)) == size) return size;
  }
  return 0;
}

// ---------------------------------------------------------------------------------------------- formats

bool add_specifier(Pieces& pieces, char name) {
  if (name == '%') {
    pieces.push_back({Field::Text, 0, 0, 0, "%"});
    return true;
  }
  const std::string_view inner = spelled_out(name);
  if (!inner.empty()) return add_pieces(pieces, inner);
  for (const Specifier& known : kSpecifiers) {
    if (known.name != name) continue;
    pieces.push_back({known.field, known.digits, known.least, known.most});
    return true;
  }
  return false;
}

// -------------------------------------------------------------------------------------------- matching

// How much of a text is one of some names, of which none begins another one.
size_t name_size(std::string_view text, std::span<const std::string_view> names, size_t size_max) {
  for (const std::string_view name : names) {
    const std::string_view wanted = name.substr(0, size_max);
    if (same_letters(text.substr(0, wanted.size()), wanted)) return wanted.size();
  }
  return 0;
}

size_t count_digits(std::string_view text, size_t most) {
  size_t count = 0;
  while (count < most && count < text.size() && is_digit(text[count])) ++count;
  return count;
}

// The sizes that a piece may have at the beginning of a text, in the order in which they are tried.
struct Sizes {
  std::array<size_t, 9> size;
  size_t count = 0;

  void add(size_t next) { size[count++] = next; }
};

// Signed hours, and minutes and seconds if they follow, as many as there are at first.
void add_offsets(std::string_view text, Sizes& sizes) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return;
  std::array<size_t, 3> ends{};
  size_t found = 0;
  size_t at = 1;
  while (found < ends.size()) {
    if (found > 0 && text.substr(at, 1) == ":") ++at;
    if (count_digits(text.substr(std::min(at, text.size())), 2) < 2) break;
    at += 2;
    ends[found++] = at;
  }
  while (found > 0) sizes.add(ends[--found]);
}

void add_name(size_t size, Sizes& sizes) {
  if (size > 0) sizes.add(size);
}

Sizes sizes_of(const Piece& piece, std::string_view text) {
  constexpr std::string_view kHalves[] = {"AM", "PM"};
  constexpr size_t kLongest = 9;
  Sizes sizes;
  switch (piece.field) {
    case Field::Space: {
      size_t size = 0;
      while (size < text.size() && is_space(text[size])) ++size;
      add_name(size, sizes);
      break;
    }
    case Field::Text:
      if (text.starts_with(piece.text)) sizes.add(piece.text.size());
      break;
    case Field::ShortMonthName:
      add_name(name_size(text, kMonthNames, kShortName), sizes);
      break;
    case Field::MonthName:
      add_name(name_size(text, kMonthNames, kLongest), sizes);
      break;
    case Field::ShortDayName:
      add_name(name_size(text, kDayNames, kShortName), sizes);
      break;
    case Field::DayName:
      add_name(name_size(text, kDayNames, kLongest), sizes);
      break;
    case Field::HalfDay:
      add_name(name_size(text, kHalves, kLongest), sizes);
      break;
    case Field::Offset:
      add_offsets(text, sizes);
      break;
    default:
      for (size_t size = count_digits(text, static_cast<size_t>(piece.digits)); size > 0; --size)
        sizes.add(size);
  }
  return sizes;
}

}  // namespace

std::string_view stripped(std::string_view text) {
  while (const size_t size = blank_at(text)) text.remove_prefix(size);
  while (const size_t size = blank_before_end(text)) text.remove_suffix(size);
  return text;
}

bool add_pieces(Pieces& pieces, std::string_view format) {
  while (!format.empty()) {
    const char byte = format[0];
    if (byte == '%') {
      format.remove_prefix(format.substr(1, 1) == "-" ? 2 : 1);
      if (format.empty() || !add_specifier(pieces, format[0])) return false;
      format.remove_prefix(1);
    } else if (is_space(byte)) {
      pieces.push_back({Field::Space});
      while (!format.empty() && is_space(format[0])) format.remove_prefix(1);
    } else if (blank_at(format) != 0) {
      return false;
    } else {
      const bool goes_on = !pieces.empty() && pieces.back().field == Field::Text;
      if (!goes_on) pieces.push_back({Field::Text});
      pieces.back().text.push_back(byte);
      format.remove_prefix(1);
    }
  }
  return true;
}

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           const auto lower = [](char byte) { return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte; };
           return lower(x) == lower(y);
         });
}

bool match(const Pieces& pieces, size_t index, std::string_view text, Taken& taken) {
  if (index == pieces.size()) return text.empty();
  const Sizes sizes = sizes_of(pieces[index], text);
  for (size_t choice = 0; choice < sizes.count; ++choice) {
    taken[index] = text.substr(0, sizes.size[choice]);
    if (match(pieces, index + 1, text.substr(sizes.size[choice]), taken)) return true;
  }
  return false;
}

}  // namespace bireme::time_template
