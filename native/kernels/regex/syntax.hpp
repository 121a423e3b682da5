// Regular expressions as trees, in the meaning that RE2 gives them.
//
// Only what our automaton can run with certainty is taken; for all else, mistakes included, `parse` has no
// answer and RE2 itself is asked (backends/reference/patterns.py). Not taken: assertions at words and lines,
// flags inside a pattern, named groups, classes by name or property, repeats of what can be empty, and
// case-blind matching of letters beyond ASCII.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bireme::regex {

struct CodePoints {
  uint32_t first;
  uint32_t last;

  bool operator==(const CodePoints&) const = default;
};

struct Syntax {
  enum class Form : uint8_t { Empty, Class, Begin, End, Group, Sequence, Choice, Repeat };

  Form form = Form::Empty;
  std::vector<CodePoints> characters = {};  // of a class: ascending, with gaps between them
  std::vector<Syntax> parts = {};           // of a group or repeat: one
  int group = 0;                            // its number, from 1
  int least = 0;
  int most = 0;  // kAny: no bound
  bool greedy = true;
};

inline constexpr int kAny = -1;

struct Flags {
  bool ignore_case = false;
  bool dot_takes_all = false;  // also the end of a line
  bool literal = false;        // the pattern is a text, not an expression
};

struct Expression {
  Syntax root;
  int groups = 0;
};

std::optional<Expression> parse(std::string_view pattern, Flags flags);

}  // namespace bireme::regex
