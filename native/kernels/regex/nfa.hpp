// A regular expression as a program over bytes (Thompson's construction), for `automaton` to make
// deterministic.
//
// Texts are valid UTF-8, and every class takes whole characters, so a match begins and ends between
// characters. The first of two ways at a fork is preferred, which gives the leftmost match with Perl's and
// RE2's preferences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/regex/syntax.hpp"

namespace bireme::regex {

struct Instruction {
  enum class Form : uint8_t { Bytes, Fork, Mark, Begin, End, Match };

  Form form = Form::Match;
  uint8_t low = 0;  // of Bytes: those it takes
  uint8_t high = 0;
  int32_t next = -1;
  int32_t other = -1;  // of a fork
  int32_t mark = -1;   // of Mark: which position it remembers
};

// Groups 0, which is the match, to 9 can be asked for; marks 2 * n and 2 * n + 1 are where group n begins and
// ends.
inline constexpr int kGroupsMax = 10;

constexpr uint32_t marks_of(int group) {
  return 3u << (2 * group);
}

struct Nfa {
  std::vector<Instruction> code;
  int32_t start = 0;
};

enum class Where : uint8_t { Anywhere, Whole };

// No answer where the program would be too long. Of marks, only those in the mask are remembered.
std::optional<Nfa> compile(const Syntax& root, Where where, uint32_t marks);

}  // namespace bireme::regex
