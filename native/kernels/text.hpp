// Searching and measuring UTF-8 text. Nothing here reads a byte outside the views it is given.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace bireme {

inline constexpr size_t kNotFound = std::string_view::npos;

// Where `needle` first occurs in `text`, in bytes; kNotFound where it does not.
size_t find_bytes(std::string_view text, std::string_view needle);

// Whether it is part of a character that is not ASCII.
inline bool is_foreign(char byte) {
  return (static_cast<unsigned char>(byte) & 0x80) != 0;
}

inline bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Eight bytes at a time: the same byte in each.
constexpr uint64_t each_byte(uint8_t byte) {
  return 0x0101010101010101u * byte;
}

template <typename Word>
Word load_word(const char* data) {
  Word word;
  std::memcpy(&word, data, sizeof(Word));
  return word;
}

inline bool is_ascii(std::string_view text) {
  const size_t size = text.size();
  uint64_t all = 0;
  if (size < 8) {
    for (const char byte : text) all |= static_cast<unsigned char>(byte);
  } else {
    for (size_t at = 0; at + 8 < size; at += 8) all |= load_word<uint64_t>(text.data() + at);
    all |= load_word<uint64_t>(text.data() + size - 8);  // looks at some bytes twice
  }
  return (all & each_byte(0x80)) == 0;
}

// How many of eight bytes go on with a character that began before them.
constexpr int64_t count_continuations(uint64_t word) {
  const uint64_t found = (word >> 7) & ~(word >> 6) & each_byte(1);
  return static_cast<int64_t>(found * each_byte(1) >> 56);  // the sum of all bytes
}

// How many code points there are.
inline int64_t count_characters(std::string_view text) {
  const size_t size = text.size();
  auto count = static_cast<int64_t>(size);
  if (size < 8) {
    for (const char byte : text) count -= is_continuation(byte);
    return count;
  }
  size_t at = 0;
  for (; at + 8 <= size; at += 8) count -= count_continuations(load_word<uint64_t>(text.data() + at));
  // The last bytes, without those before them that are counted already.
  if (at < size)
    count -= count_continuations(load_word<uint64_t>(text.data() + size - 8) >> (8 * (8 - (size - at))));
  return count;
}

// Whether `size` bytes are the same. For a few bytes this is quicker than std::memcmp, which is a call.
inline bool same_bytes(const char* a, const char* b, size_t size) {
  if (size > 16) return std::memcmp(a, b, size) == 0;
  const auto ends_agree = [a, b, size]<typename Word>(Word) {
    const size_t last = size - sizeof(Word);
    return load_word<Word>(a) == load_word<Word>(b) && load_word<Word>(a + last) == load_word<Word>(b + last);
  };
  if (size >= 8) return ends_agree(uint64_t{});
  if (size >= 4) return ends_agree(uint32_t{});
  if (size >= 2) return ends_agree(uint16_t{});
  return size == 0 || *a == *b;
}

// The other case of every ASCII letter in eight bytes that lies between 'a' (or 'A', by `first`) and 'z'
// ('Z'); all bytes are ASCII.
constexpr uint64_t other_case(uint64_t word, char first) {
  const auto low = static_cast<uint8_t>(first);
  const uint64_t reaches_first = word + each_byte(static_cast<uint8_t>(0x80 - low));
  const uint64_t passes_last = word + each_byte(static_cast<uint8_t>(0x80 - low - 26));
  return word ^ (((reaches_first ^ passes_last) & each_byte(0x80)) >> 2);
}

// Writes an ASCII text with the letters from `first` ('a' or 'A') on in their other case.
inline void change_case(std::string_view text, char first, char* out) {
  const size_t size = text.size();
  const auto change = [&text, first, out](size_t at, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, bytes);
    word = other_case(word, first);
    std::memcpy(out + at, &word, bytes);
  };
  for (size_t at = 0; at + 8 <= size; at += 8) change(at, 8);
  if (size >= 8) {
    change(size - 8, 8);
  } else {
    for (size_t at = 0; at < size; ++at) change(at, 1);
  }
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
