// What takes the place of a match: a text in which \0 to \9 stand for groups and \\ for a backslash.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/regex/automaton.hpp"

namespace bireme::regex {

// A text that is put together. Before it takes more memory, it tells how much it will have then.
class Scratch {
 public:
  using Grows = std::function<void(size_t bytes)>;

  explicit Scratch(Grows grows = {}) : grows_(std::move(grows)) {}

  void clear() { text_.clear(); }
  void append(std::string_view part) {
    if (text_.size() + part.size() > text_.capacity()) grow(text_.size() + part.size());
    text_.append(part);
  }
  std::string_view view() const { return text_; }

 private:
  void grow(size_t size) {
    const size_t room = std::max(size, 2 * text_.capacity());
    if (grows_) grows_(room);
    text_.reserve(room);
  }

  std::string text_;
  Grows grows_;
};

class Rewrite {
 public:
  // No answer where it is not well formed, or names a group that is none of `groups`.
  static std::optional<Rewrite> parse(std::string_view text, int groups);

  // The marks that it must be told.
  uint32_t marks() const;
  // The group that it consists of, or -1.
  int only_group() const { return pieces_.size() == 1 && pieces_[0].text.empty() ? pieces_[0].group : -1; }
  void append(Scratch& out, std::string_view text, const Found& found) const;

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
                         Scratch& scratch);

}  // namespace bireme::regex
