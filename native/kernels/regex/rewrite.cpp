#include "kernels/regex/rewrite.hpp"

#include "kernels/text.hpp"

namespace bireme::regex {

std::optional<Rewrite> Rewrite::parse(std::string_view text, int groups) {
  Rewrite made;
  Piece piece;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      piece.text.push_back(text[at]);
      continue;
    }
    if (++at == text.size()) return std::nullopt;
    if (text[at] == '\\') {
      piece.text.push_back('\\');
      continue;
    }
    piece.group = text[at] - '0';
    if (piece.group < 0 || piece.group > 9 || piece.group > groups) return std::nullopt;
    made.pieces_.push_back(std::move(piece));
    piece = Piece{};
  }
  if (!piece.text.empty()) made.pieces_.push_back(std::move(piece));
  return made;
}

uint32_t Rewrite::marks() const {
  uint32_t marks = 0;
  for (const Piece& piece : pieces_) marks |= piece.group < 0 ? 0 : marks_of(piece.group);
  return marks;
}

void Rewrite::append(Scratch& out, std::string_view text, const Found& found) const {
  for (const Piece& piece : pieces_) {
    out.append(piece.text);
    if (piece.group >= 0) out.append(found.group(text, piece.group));
  }
}

namespace {

// After an empty match at the end of the match before it, the search goes on a character further.
std::string_view replace_all(std::string_view text, const Automaton& automaton, const Rewrite& rewrite,
                             Scratch& scratch) {
  Found found;
  size_t at = 0;
  size_t last_end = kNotFound;
  scratch.clear();
  while (at <= text.size() && automaton.find(text, at, found)) {
    const size_t begin = found.marks[0];
    const size_t end = found.marks[1];
    scratch.append(text.substr(at, begin - at));
    if (begin == end && begin == last_end) {
      const size_t next = begin < text.size() ? next_character(text, begin) : begin + 1;
      scratch.append(text.substr(begin, next - begin));
      at = next;
      continue;
    }
    rewrite.append(scratch, text, found);
    at = last_end = end;
  }
  if (at < text.size()) scratch.append(text.substr(at));
  return scratch.view();
}

}  // namespace

std::string_view replace(std::string_view text, const Automaton& automaton, const Rewrite& rewrite, bool all,
                         Scratch& scratch) {
  if (all) return replace_all(text, automaton, rewrite, scratch);
  Found found;
  if (!automaton.find(text, 0, found)) return text;
  const size_t begin = found.marks[0];
  const size_t end = found.marks[1];
  if (begin == 0 && end == text.size() && rewrite.only_group() >= 0)
    return found.group(text, rewrite.only_group());
  scratch.clear();
  scratch.append(text.substr(0, begin));
  rewrite.append(scratch, text, found);
  scratch.append(text.substr(end));
  return scratch.view();
}

}  // namespace bireme::regex
