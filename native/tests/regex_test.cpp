// Regular expressions against a matcher that goes back on its way, over random patterns and texts.
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/regex/automaton.hpp"
#include "kernels/regex/rewrite.hpp"
#include "kernels/regex/syntax.hpp"
#include "kernels/text.hpp"
#include "tests/check.hpp"

using namespace bireme;
using namespace bireme::regex;

namespace {

// The first way that leads to the end is the match, since ways are tried in the order in which they are
// preferred.
class Backtracker {
 public:
  explicit Backtracker(std::string_view text) : text_(text) {}

  bool find(const Syntax& root, size_t from) {
    for (size_t at = from; at <= text_.size(); at = next_character(text_, at)) {
      groups_.clear();
      const auto done = [this, at](size_t end) {
        groups_[0] = {at, end};
        return true;
      };
      if (match(root, at, done)) return true;
    }
    return false;
  }

  std::string group(int number) const {
    const auto found = groups_.find(number);
    if (found == groups_.end()) return "";
    return std::string(text_.substr(found->second.first, found->second.second - found->second.first));
  }
  size_t begin() const { return groups_.at(0).first; }
  size_t end() const { return groups_.at(0).second; }

 private:
  using Then = std::function<bool(size_t)>;

  bool match(const Syntax& syntax, size_t at, const Then& then) {
    switch (syntax.form) {
      case Syntax::Form::Empty:
        return then(at);
      case Syntax::Form::Begin:
        return at == 0 && then(at);
      case Syntax::Form::End:
        return at == text_.size() && then(at);
      case Syntax::Form::Class:
        return takes(syntax, at) && then(next_character(text_, at));
      case Syntax::Form::Group: {
        const auto before = groups_;
        const auto close = [this, &syntax, &then, at](size_t end) {
          const auto inside = groups_;
          groups_[syntax.group] = {at, end};
          if (then(end)) return true;
          groups_ = inside;
          return false;
        };
        if (match(syntax.parts[0], at, close)) return true;
        groups_ = before;
        return false;
      }
      case Syntax::Form::Sequence:
        return sequence(syntax, 0, at, then);
      case Syntax::Form::Choice:
        for (const Syntax& part : syntax.parts) {
          if (match(part, at, then)) return true;
        }
        return false;
      case Syntax::Form::Repeat:
        return repeat(syntax, 0, at, then);
    }
    return false;
  }

  bool takes(const Syntax& syntax, size_t at) const {
    if (at >= text_.size()) return false;
    const std::string_view letter = text_.substr(at, next_character(text_, at) - at);
    auto point = static_cast<uint32_t>(static_cast<unsigned char>(letter[0]));
    if (letter.size() > 1) point &= 0x7fu >> letter.size();
    for (size_t byte = 1; byte < letter.size(); ++byte)
      point = point << 6 | (static_cast<unsigned char>(letter[byte]) & 0x3f);
    for (const CodePoints& range : syntax.characters) {
      if (point >= range.first && point <= range.last) return true;
    }
    return false;
  }

  bool sequence(const Syntax& syntax, size_t part, size_t at, const Then& then) {
    if (part == syntax.parts.size()) return then(at);
    return match(syntax.parts[part], at, [&](size_t next) { return sequence(syntax, part + 1, next, then); });
  }

  bool repeat(const Syntax& syntax, int times, size_t at, const Then& then) {
    const auto again = [&] {
      if (syntax.most != kAny && times >= syntax.most) return false;
      return match(syntax.parts[0], at, [&](size_t next) { return repeat(syntax, times + 1, next, then); });
    };
    if (times < syntax.least) return again();
    return syntax.greedy ? again() || then(at) : then(at) || again();
  }

  std::string_view text_;
  std::map<int, std::pair<size_t, size_t>> groups_;
};

template <typename Items>
std::string pick(std::mt19937& random, const Items& items) {
  return items[random() % std::size(items)];
}

std::string draw_pattern(std::mt19937& random, int depth) {
  static const std::vector<std::string> kAtoms = {"a",     "b",     "é",   "漢",      ".",     "[ab]",
                                                  "[^a]",  "[^/é]", "\\d", "\\W",     "[a-é]", "/",
                                                  "\\x41", "^",     "$",   "(?:ab|a)"};
  static const std::vector<std::string> kTimes = {"*",  "+",   "?",     "*?",   "+?",
                                                  "??", "{2}", "{1,2}", "{2,}", "{0,3}?"};
  const unsigned form = random() % 8;
  if (depth == 0 || form < 2) return pick(random, kAtoms);
  if (form < 4) return draw_pattern(random, depth - 1) + draw_pattern(random, depth - 1);
  if (form == 4) return "(" + draw_pattern(random, depth - 1) + ")";
  if (form == 5) return "(?:" + draw_pattern(random, depth - 1) + "|" + draw_pattern(random, depth - 1) + ")";
  return "(" + draw_pattern(random, depth - 1) + ")" + pick(random, kTimes);
}

std::string draw_text(std::mt19937& random) {
  static const std::vector<std::string> kLetters = {"a", "b", "ab", "é", "漢", "/", "A", "0", "\n", "😀"};
  std::string text;
  for (size_t left = random() % 11; left > 0; --left) text += pick(random, kLetters);
  return text;
}

std::shared_ptr<const Automaton> automaton_of(const Expression& expression, Where where, uint32_t marks) {
  const auto nfa = compile(expression.root, where, marks);
  return nfa.has_value() ? Automaton::make(*nfa, marks) : nullptr;
}

// Texts lie in blocks of exactly their size, so that sanitizers see every byte read outside.
int check_pattern(std::mt19937& random, const std::string& pattern) {
  const auto expression = parse(pattern, {});
  if (!expression.has_value()) return 0;
  const uint32_t marks = marks_of(0) | marks_of(1) | marks_of(2);
  const auto finder = automaton_of(*expression, Where::Anywhere, marks);
  const auto tester = automaton_of(*expression, Where::Anywhere, 0);
  if (finder == nullptr || tester == nullptr) return 0;
  for (int round = 0; round < 20; ++round) {
    const std::string drawn = draw_text(random);
    const std::vector<char> memory(drawn.begin(), drawn.end());
    const std::string_view text(memory.data(), memory.size());
    Backtracker slow(text);
    size_t from = 0;
    if (random() % 2 == 0 && !text.empty()) from = next_character(text, 0);
    const bool expected = slow.find(expression->root, from);
    Found found;
    const bool got = finder->find(text, from, found);
    bool same = got == expected && (from > 0 || tester->matches(text) == expected);
    if (got && expected) {
      same &= found.marks[0] == slow.begin() && found.marks[1] == slow.end();
      for (int group = 0; group < 3; ++group)
        same &= std::string(found.group(text, group)) == slow.group(group);
    }
    CHECK(same);
    if (!same) std::fprintf(stderr, "  '%s' in '%s' from %zu\n", pattern.c_str(), drawn.c_str(), from);
  }
  return 1;
}

void check_random() {
  std::mt19937 random(17);
  int taken = 0;
  for (int round = 0; round < 1200; ++round) taken += check_pattern(random, draw_pattern(random, 4));
  CHECK(taken > 600);
}

// Whatever the bytes of a pattern, parsing ends, and reads nothing outside of it.
void check_any_bytes() {
  std::mt19937 random(3);
  static const std::string kBytes = "ab()[]{}*+?|\\^$.,-0129:isxdwWAzn\xc3\xa9\xf0\xff";
  for (int round = 0; round < 6000; ++round) {
    std::vector<char> pattern(random() % 14);
    for (char& byte : pattern) byte = kBytes[random() % kBytes.size()];
    const auto expression = parse({pattern.data(), pattern.size()}, {});
    if (expression.has_value()) automaton_of(*expression, Where::Whole, marks_of(0));
  }
}

std::string replaced(std::string_view text, std::string_view pattern, std::string_view by, bool all) {
  const auto expression = parse(pattern, {});
  const auto rewrite = Rewrite::parse(by, expression->groups);
  const auto automaton = automaton_of(*expression, Where::Anywhere, marks_of(0) | rewrite->marks());
  Scratch scratch;
  return std::string(replace(text, *automaton, *rewrite, all, scratch));
}

void check_replacing() {
  const std::string_view host = "^https?://(?:www\\.)?([^/]+)/.*$";
  CHECK(replaced("http://www.é.de/x/y", host, "\\1", false) == "é.de");
  CHECK(replaced("http://www/", host, "\\1", false) == "www");
  CHECK(replaced("ftp://www.a.de/x", host, "\\1", false) == "ftp://www.a.de/x");
  CHECK(replaced("abcb", "b", "<\\0>", false) == "a<b>cb");
  CHECK(replaced("abcb", "b", "<\\0\\\\>", true) == "a<b\\>c<b\\>");
  CHECK(replaced("aéb", "x*", "-", true) == "-a-é-b-");
  CHECK(replaced("", "x*", "-", true) == "-");
  CHECK(replaced("baab", "a*", "-", true) == "-b-b-");
  CHECK(!Rewrite::parse("\\3", 2).has_value() && !Rewrite::parse("a\\", 2).has_value() &&
        !Rewrite::parse("\\n", 2).has_value());
}

// What is left to RE2.
void check_refused() {
  for (const char* pattern :
       {"a**", "(a*)*", "\\bx",    "(?P<n>a)", "[[:alpha:]]", "\\pL", "a{3,2}", "*",      "(",   ")",
        "[",   "[b-a]", "a{1001}", "\\",       "[a",          "a{",   "(?m)^a", "x(?i)y", "\\1", "(?i)é"}) {
    CHECK(!parse(pattern, {}).has_value());
  }
  const auto wide = parse("(?:a|b)*a(?:a|b){20}", {});
  CHECK(wide.has_value() && automaton_of(*wide, Where::Anywhere, 0) == nullptr);
}

}  // namespace

int main() {
  check_random();
  check_any_bytes();
  check_replacing();
  check_refused();
  return test::finish();
}
