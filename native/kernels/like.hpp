// LIKE: % stands for any text, _ for one character (code point), an escape character takes the next one as it
// is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bireme {

class LikePattern {
 public:
  // `escape` is one ASCII character, or -1 for none. A pattern that ends in its escape is not `valid`.
  LikePattern(std::string_view pattern, int64_t escape);

  bool valid() const { return valid_; }
  bool matches(std::string_view text) const;

  // What a pattern asks that is one piece of plain bytes, `part`, with or without % around it; General is all
  // else.
  enum class Form { General, Equal, Prefix, Suffix, Contains };
  Form form() const { return form_; }
  std::string_view part() const { return part_; }

 private:
  // What stands between two %: bytes, of which those where `any` is set stand for one character each.
  struct Piece {
    std::string bytes;
    std::vector<bool> any;  // empty: none
  };

  static bool match_at(const Piece& piece, std::string_view text, size_t at, size_t& end);
  static size_t find(const Piece& piece, std::string_view text, size_t from, size_t& end);
  static bool match_suffix(const Piece& piece, std::string_view text, size_t from);
  void finish_piece(Piece& piece);
  void find_form();

  std::vector<Piece> pieces_;  // at least one; between each two of them there was at least one %
  bool valid_ = true;
  Form form_ = Form::General;
  std::string part_;
};

}  // namespace bireme
