#include "kernels/like.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/text.hpp"

namespace bireme {

LikePattern::LikePattern(std::string_view pattern, int64_t escape) {
  Piece piece;
  const auto add = [&piece](char byte, bool any) {
    piece.bytes.push_back(byte);
    piece.any.push_back(any);
  };
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char byte = pattern[at];
    if (escape >= 0 && byte == static_cast<char>(escape)) {
      if (++at == pattern.size()) {
        valid_ = false;
        break;
      }
      add(pattern[at], false);
    } else if (byte == '%') {
      finish_piece(piece);
    } else {
      add(byte, byte == '_');
    }
  }
  finish_piece(piece);
  find_form();
}

void LikePattern::find_form() {
  const auto is_plain = [](const Piece& piece) { return piece.any.empty(); };
  if (!std::all_of(pieces_.begin(), pieces_.end(), is_plain)) return;
  const bool open_start = pieces_.front().bytes.empty();
  const bool open_end = pieces_.back().bytes.empty();
  if (pieces_.size() == 1) {
    form_ = Form::Equal;
    part_ = pieces_.front().bytes;
  } else if (pieces_.size() == 2 && (open_start || open_end)) {
    form_ = open_end ? Form::Prefix : Form::Suffix;
    part_ = open_end ? pieces_.front().bytes : pieces_.back().bytes;
  } else if (pieces_.size() == 3 && open_start && open_end) {
    form_ = Form::Contains;
    part_ = pieces_[1].bytes;
  }
}

void LikePattern::finish_piece(Piece& piece) {
  // Of pieces in the middle, empty ones (%%) mean nothing.
  if (pieces_.size() > 1 && pieces_.back().bytes.empty()) pieces_.pop_back();
  if (std::find(piece.any.begin(), piece.any.end(), true) == piece.any.end()) piece.any.clear();
  pieces_.push_back(std::exchange(piece, Piece{}));
}

// Whether the piece matches at byte `at`; sets `end` to where the match ends.
bool LikePattern::match_at(const Piece& piece, std::string_view text, size_t at, size_t& end) {
  if (piece.any.empty()) {
    if (text.size() - at < piece.bytes.size()) return false;
    end = at + piece.bytes.size();
    return same_bytes(text.data() + at, piece.bytes.data(), piece.bytes.size());
  }
  for (size_t index = 0; index < piece.bytes.size(); ++index) {
    if (at >= text.size()) return false;
    if (piece.any[index]) {
      at = next_character(text, at);
    } else if (text[at] == piece.bytes[index]) {
      ++at;
    } else {
      return false;
    }
  }
  end = at;
  return true;
}

// Where the piece first matches from byte `from` on.
size_t LikePattern::find(const Piece& piece, std::string_view text, size_t from, size_t& end) {
  if (piece.any.empty()) {
    const size_t found = find_bytes(text.substr(from), piece.bytes);
    if (found == kNotFound) return kNotFound;
    end = from + found + piece.bytes.size();
    return from + found;
  }
  for (size_t at = from; at <= text.size(); at = next_character(text, at)) {
    if (match_at(piece, text, at, end)) return at;
  }
  return kNotFound;
}

// Whether the piece matches a suffix of the text that begins at `from` or later.
bool LikePattern::match_suffix(const Piece& piece, std::string_view text, size_t from) {
  size_t end = 0;
  if (piece.any.empty()) {
    return text.size() - from >= piece.bytes.size() &&
           match_at(piece, text, text.size() - piece.bytes.size(), end);
  }
  // Every character of the piece, any or not, is one of the text: step back as many.
  size_t characters = 0;
  for (size_t index = 0; index < piece.bytes.size(); ++index)
    characters += !is_continuation(piece.bytes[index]);
  size_t at = text.size();
  for (; characters > 0; --characters) {
    if (at <= from) return false;
    do {
      --at;
    } while (at > from && is_continuation(text[at]));
  }
  return match_at(piece, text, at, end) && end == text.size();
}

bool LikePattern::matches(std::string_view text) const {
  size_t at = 0;
  if (!match_at(pieces_.front(), text, 0, at)) return false;
  if (pieces_.size() == 1) return at == text.size();
  for (size_t index = 1; index + 1 < pieces_.size(); ++index) {
    if (find(pieces_[index], text, at, at) == kNotFound) return false;
  }
  return match_suffix(pieces_.back(), text, at);
}

}  // namespace bireme
