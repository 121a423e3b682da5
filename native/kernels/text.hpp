// Searching and measuring UTF-8 text. Nothing here reads a byte outside the views it is given.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace bireme {

inline constexpr size_t kNotFound = std::string_view::npos;

// Where `needle` first occurs in `text`, in bytes; kNotFound where it does not.
size_t find_bytes(std::string_view text, std::string_view needle);

inline bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

inline bool is_ascii(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) return false;
  }
  unsigned char rest = 0;
  for (; at < text.size(); ++at) rest |= static_cast<unsigned char>(text[at]);
  return rest < 0x80;
}

// How many code points there are.
inline int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (char byte : text) count += !is_continuation(byte);
  return count;
}

// The byte at which the character after `at` begins.
inline size_t next_character(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

// The byte at which character number `index` (from 0) begins; the size of the text where there are fewer.
inline size_t character_start(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at = next_character(text, at);
  return at;
}

}  // namespace bireme
