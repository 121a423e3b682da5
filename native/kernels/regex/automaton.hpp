// A deterministic automaton that also knows where groups begin and end (Laurikari's tagged automaton).
//
// A state is what may be going on after some bytes: ways through the program, the preferred one first. Ways
// that have remembered the same positions share a row of registers, so a step between states only moves the
// few positions that change. It is made whole before the first text, within bounds, and never changes: any
// number of threads may search with it, in time linear in the text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/regex/nfa.hpp"

namespace bireme::regex {

inline constexpr uint32_t kUnset = UINT32_MAX;

// Positions of a match in its text: of the marks that the program remembers, kUnset for groups that took no
// part.
struct Found {
  std::array<uint32_t, size_t{2} * kGroupsMax> marks;

  std::string_view group(std::string_view text, int number) const {
    const uint32_t begin = marks[static_cast<size_t>(2 * number)];
    const uint32_t end = marks[static_cast<size_t>(2 * number + 1)];
    return begin == kUnset || end == kUnset ? std::string_view() : text.substr(begin, end - begin);
  }
};

class Automaton {
 public:
  // Null where it would be too large. `marks` are those the program remembers.
  static std::shared_ptr<const Automaton> make(const Nfa& nfa, uint32_t marks);

  // Whether there is a match.
  bool matches(std::string_view text) const;
  // The first match that begins at byte `from` or later; `from` is where a character begins.
  bool find(std::string_view text, size_t from, Found& found) const;

 private:
  friend class Builder;

  static constexpr size_t kRegistersMax = 256;
  static constexpr uint32_t kEvent = 1u << 31;
  // As sources of moves: where the search has come to, and no position.
  static constexpr uint16_t kPosition = UINT16_MAX;
  static constexpr uint16_t kNowhere = UINT16_MAX - 1;

  struct Move {
    uint16_t to;
    uint16_t from;
  };
  struct Moves {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct State {
    int match_row = -1;    // a match ends here, and where its groups are
    bool is_last = false;  // no way that is left is preferred to that match
    bool ends = false;     // where the text ends here, there is a match that is preferred to it
    Moves end_moves;       // what that match remembers, in row 0
  };
  struct Start {
    uint32_t state = 0;
    Moves moves;
  };

  void apply(Moves moves, size_t position, uint32_t* registers) const;
  void keep(int row, const uint32_t* registers, Found& found) const;

  std::array<uint8_t, 256> class_of_{};
  uint32_t classes_ = 1;
  std::vector<int> marks_;  // by place in a row of registers
  std::vector<State> states_;
  std::vector<uint32_t> table_;  // by state * classes + class: the next state * classes, and kEvent
  std::vector<Moves> table_moves_;
  std::vector<Move> moves_;
  Start at_begin_;
  Start elsewhere_;
  uint32_t dead_ = kUnset;  // where no way is left; kUnset: there always is one
};

}  // namespace bireme::regex
