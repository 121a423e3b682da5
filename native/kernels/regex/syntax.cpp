#include "kernels/regex/syntax.hpp"

#include <algorithm>
#include <utility>

namespace bireme::regex {

namespace {

using Ranges = std::vector<CodePoints>;

constexpr uint32_t kLastCodePoint = 0x10ffff;
constexpr int kDepthMax = 60;
constexpr int kRepeatMax = 200;

struct NotTaken {};

// Ascending, and joined where there is no gap.
Ranges tidy(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePoints& a, const CodePoints& b) { return a.first < b.first; });
  Ranges joined;
  for (const CodePoints& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

Ranges all_but(const Ranges& ranges) {
  Ranges others;
  uint32_t next = 0;
  for (const CodePoints& range : tidy(ranges)) {
    if (range.first > next) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) others.push_back({next, kLastCodePoint});
  return others;
}

// With every letter's other case. Two letters of ASCII have relatives beyond it: the sign of Kelvin and the
// long s.
Ranges without_case(const Ranges& ranges) {
  Ranges folded = ranges;
  for (const CodePoints& range : ranges) {
    if (range.last > 0x7f) throw NotTaken{};
    for (uint32_t letter = range.first; letter <= range.last; ++letter) {
      const uint32_t lower = letter | 0x20;
      if (lower < 'a' || lower > 'z') continue;
      folded.push_back({letter ^ 0x20, letter ^ 0x20});
      if (lower == 'k') folded.push_back({0x212a, 0x212a});
      if (lower == 's') folded.push_back({0x17f, 0x17f});
    }
  }
  return folded;
}

bool can_be_empty(const Syntax& syntax) {
  switch (syntax.form) {
    case Syntax::Form::Class:
      return false;
    case Syntax::Form::Group:
      return can_be_empty(syntax.parts.front());
    case Syntax::Form::Sequence:
      return std::all_of(syntax.parts.begin(), syntax.parts.end(), can_be_empty);
    case Syntax::Form::Choice:
      return std::any_of(syntax.parts.begin(), syntax.parts.end(), can_be_empty);
    case Syntax::Form::Repeat:
      return syntax.least == 0;  // what is repeated cannot be empty
    default:
      return true;
  }
}

class Parser {
 public:
  Parser(std::string_view pattern, Flags flags) : pattern_(pattern), flags_(flags) {}

  Expression parse() {
    if (flags_.literal) return {literal(), 0};
    leading_flags();
    Syntax root = choice(0);
    if (at_ < pattern_.size()) throw NotTaken{};  // a parenthesis that nothing opened
    return {std::move(root), groups_};
  }

 private:
  bool ended() const { return at_ == pattern_.size(); }
  bool sees(char byte) const { return !ended() && pattern_[at_] == byte; }
  bool take(char byte) {
    if (!sees(byte)) return false;
    ++at_;
    return true;
  }
  char next() {
    if (ended()) throw NotTaken{};
    return pattern_[at_++];
  }

  // The pattern is UTF-8.
  uint32_t code_point() {
    const auto lead = static_cast<unsigned char>(next());
    if (lead < 0x80) return lead;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t point = lead & (0x3fu >> more);
    for (int left = more; left > 0; --left) point = point << 6 | (static_cast<unsigned char>(next()) & 0x3f);
    return point;
  }

  Syntax characters(Ranges ranges) const {
    if (flags_.ignore_case) ranges = without_case(ranges);
    return {.form = Syntax::Form::Class, .characters = tidy(std::move(ranges))};
  }

  Syntax literal() {
    Syntax text{.form = Syntax::Form::Sequence};
    while (!ended()) {
      const uint32_t point = code_point();
      text.parts.push_back(characters({{point, point}}));
    }
    return text;
  }

  void leading_flags() {
    if (!pattern_.starts_with("(?")) return;
    const size_t end = pattern_.find_first_not_of("is", 2);
    if (end == 2 || end == std::string_view::npos || pattern_[end] != ')') return;
    for (const char flag : pattern_.substr(2, end - 2)) {
      flags_.ignore_case |= flag == 'i';
      flags_.dot_takes_all |= flag == 's';
    }
    at_ = end + 1;
  }

  Syntax choice(int depth) {
    if (depth > kDepthMax) throw NotTaken{};
    Syntax first = sequence(depth);
    if (!sees('|')) return first;
    Syntax all{.form = Syntax::Form::Choice};
    all.parts.push_back(std::move(first));
    while (take('|')) all.parts.push_back(sequence(depth));
    return all;
  }

  Syntax sequence(int depth) {
    Syntax all{.form = Syntax::Form::Sequence};
    while (!ended() && !sees('|') && !sees(')')) all.parts.push_back(repeated(atom(depth)));
    return all;
  }

  Syntax atom(int depth) {
    switch (pattern_[at_]) {
      case '(':
        return group(depth);
      case '[':
        return char_class();
      case '.':
        ++at_;
        return {.form = Syntax::Form::Class,
                .characters = all_but(flags_.dot_takes_all ? Ranges{} : Ranges{{'\n', '\n'}})};
      case '^':
        ++at_;
        return {.form = Syntax::Form::Begin};
      case '$':
        ++at_;
        return {.form = Syntax::Form::End};
      case '\\':
        return escaped();
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
        throw NotTaken{};
      default: {
        const uint32_t point = code_point();
        return characters({{point, point}});
      }
    }
  }

  Syntax group(int depth) {
    ++at_;
    Syntax made{.form = Syntax::Form::Group};
    if (take('?')) {
      if (!take(':')) throw NotTaken{};
    } else {
      made.group = ++groups_;
    }
    Syntax inside = choice(depth + 1);
    if (!take(')')) throw NotTaken{};
    if (made.group == 0) return inside;
    made.parts.push_back(std::move(inside));
    return made;
  }

  Syntax repeated(Syntax part) {
    int least = 0;
    int most = kAny;
    if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (sees('{')) {
      counts(least, most);
    } else if (!take('*')) {
      return part;
    }
    if (can_be_empty(part)) throw NotTaken{};
    Syntax made{.form = Syntax::Form::Repeat, .least = least, .most = most, .greedy = !take('?')};
    if (sees('*') || sees('+') || sees('?') || sees('{')) throw NotTaken{};
    made.parts.push_back(std::move(part));
    return made;
  }

  void counts(int& least, int& most) {
    ++at_;
    least = most = number();
    if (take(',')) most = sees('}') ? kAny : number();
    if (!take('}') || (most != kAny && most < least)) throw NotTaken{};
  }

  int number() {
    int value = 0;
    const size_t from = at_;
    while (!ended() && sees_digit()) {
      value = value * 10 + (pattern_[at_++] - '0');
      if (value > kRepeatMax) throw NotTaken{};
    }
    if (at_ == from) throw NotTaken{};
    return value;
  }

  bool sees_digit() const { return pattern_[at_] >= '0' && pattern_[at_] <= '9'; }

  // ---------------------------------------------------------------------------------------------- classes

  Syntax char_class() {
    ++at_;
    const bool negated = take('^');
    Ranges ranges;
    for (bool first = true; first || !sees(']'); first = false) add_item(ranges, first);
    ++at_;
    Syntax made = characters(std::move(ranges));
    if (negated) made.characters = all_but(made.characters);
    if (made.characters.empty()) throw NotTaken{};
    return made;
  }

  void add_item(Ranges& ranges, bool first) {
    if (sees('[')) throw NotTaken{};  // may begin a class by name
    if (sees('-') && !first && !pattern_.substr(at_).starts_with("-]")) throw NotTaken{};
    if (sees('\\')) {
      Ranges set;
      if (named_set(set)) {
        ranges.insert(ranges.end(), set.begin(), set.end());
        return;
      }
    }
    const uint32_t low = single();
    uint32_t high = low;
    if (sees('-') && !pattern_.substr(at_).starts_with("-]")) {
      ++at_;
      if (sees('[')) throw NotTaken{};
      high = single();
    }
    if (high < low) throw NotTaken{};
    ranges.push_back({low, high});
  }

  uint32_t single() { return sees('\\') ? escaped_point() : code_point(); }

  // ---------------------------------------------------------------------------------------------- escapes

  Syntax escaped() {
    Ranges set;
    if (named_set(set)) return {.form = Syntax::Form::Class, .characters = tidy(std::move(set))};
    if (pattern_.substr(at_).starts_with("\\A")) {
      at_ += 2;
      return {.form = Syntax::Form::Begin};
    }
    if (pattern_.substr(at_).starts_with("\\z")) {
      at_ += 2;
      return {.form = Syntax::Form::End};
    }
    const uint32_t point = escaped_point();
    return characters({{point, point}});
  }

  // \d, \s, \w and their opposites; whatever is not one of them is left where it is.
  bool named_set(Ranges& set) {
    if (at_ + 1 >= pattern_.size()) throw NotTaken{};
    const char name = pattern_[at_ + 1];
    switch (name | 0x20) {
      case 'd':
        set = {{'0', '9'}};
        break;
      case 's':
        set = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      case 'w':
        set = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      default:
        return false;
    }
    if (flags_.ignore_case) set = without_case(set);
    if ((name & 0x20) == 0) set = all_but(set);
    at_ += 2;
    return true;
  }

  uint32_t escaped_point() {
    ++at_;
    const char byte = next();
    switch (byte) {
      case 'a':
        return '\a';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    const auto letter = static_cast<unsigned char>(byte | 0x20);
    const bool plain = byte > ' ' && !(letter >= 'a' && letter <= 'z') && !(byte >= '0' && byte <= '9') &&
                       byte != '_' && byte != 0x7f;
    if (!plain) throw NotTaken{};
    return static_cast<unsigned char>(byte);
  }

  uint32_t hexadecimal() {
    uint32_t value = 0;
    for (int digit = 0; digit < 2; ++digit) {
      const char byte = next();
      const char lower = static_cast<char>(byte | 0x20);
      if (byte >= '0' && byte <= '9') {
        value = value * 16 + static_cast<uint32_t>(byte - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        throw NotTaken{};
      }
    }
    return value;
  }

  std::string_view pattern_;
  Flags flags_;
  size_t at_ = 0;
  int groups_ = 0;
};

}  // namespace

std::optional<Expression> parse(std::string_view pattern, Flags flags) {
  try {
    return Parser(pattern, flags).parse();
  } catch (const NotTaken&) {
    return std::nullopt;
  }
}

}  // namespace bireme::regex
