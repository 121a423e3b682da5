// What takes the place of a match: a text in which \0 to \9 stand for groups and \\ for a backslash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/regex/automaton.hpp"

namespace bireme::regex {

class Rewrite {
 public:
  // No answer where it is not well formed, or names a group that is none of `groups`.
  static std::optional<Rewrite> parse(std::string_view text, int groups);

  // The marks that it must be told.
  uint32_t marks() const;
  // The group that it consists of, or -1.
  int only_group() const { return pieces_.size() == 1 && pieces_[0].text.empty() ? pieces_[0].group : -1; }
  void append(std::string& out, std::string_view text, const Found& found) const;

 private:
  // A text, and the group after it, if any.
  struct Piece {
    std::string text;
    int group = -1;
  };

  std::vector<Piece> pieces_;
};

// The text with its first match, or all of them, replaced; it may be a part of `text` or lie in `scratch`.
std::string_view replace(std::string_view text, const Automaton& automaton, const Rewrite& rewrite, bool all,
                         std::string& scratch);

}  // namespace bireme::regex
