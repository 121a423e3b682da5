// Formats of strptime as pieces, and which parts of a text the pieces take.
//
// The pieces are tried as a regular expression is: a number takes as many digits as it can, and fewer where
// the rest of the text fits only then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bireme::time_template {

enum class Field : uint8_t {
  Space,
  Text,
  Year,
  ShortYear,
  Month,
  ShortMonthName,
  MonthName,
  Day,
  DayOfYear,
  Hour,
  Hour12,
  HalfDay,
  Minute,
  Second,
  Fraction,
  ShortDayName,
  DayName,
  Offset,
};

// Numbers take up to `digits` digits, and mean what lies between `least` and `most`.
struct Piece {
  Field field;
  int digits = 0;
  int least = 0;
  int most = 0;
  std::string text = {};
};

using Pieces = std::vector<Piece>;

// Matching takes a call for each piece, one inside of the other; formats of people have some ten.
inline constexpr size_t kPiecesMax = 64;

// What each piece takes of a text.
using Taken = std::vector<std::string_view>;

// Without the blanks, of all of Unicode, at both ends.
std::string_view stripped(std::string_view text);
// Appends the pieces of a format; whether all of it is known.
bool add_pieces(Pieces& pieces, std::string_view format);
// Whether the pieces from `index` on can take all of a text.
bool match(const Pieces& pieces, size_t index, std::string_view text, Taken& taken);
// Whether texts are the same but for the case of ASCII letters.
bool same_letters(std::string_view a, std::string_view b);

}  // namespace bireme::time_template
