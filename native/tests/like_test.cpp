// LIKE and byte search against matchers that are plainly right, on random short texts of a small alphabet.
#include "kernels/like.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/text.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

// By recursion over pattern and text, one character at a time.
bool naive(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    for (size_t at = 0;; at = next_character(text, at)) {
      if (naive(text.substr(at), pattern.substr(1))) return true;
      if (at >= text.size()) return false;
    }
  }
  if (text.empty()) return false;
  if (pattern[0] == '_') return naive(text.substr(next_character(text, 0)), pattern.substr(1));
  if (pattern[0] == '\\') {
    return pattern.size() > 1 && text[0] == pattern[1] && naive(text.substr(1), pattern.substr(2));
  }
  return text[0] == pattern[0] && naive(text.substr(1), pattern.substr(1));
}

// Texts lie in blocks of exactly their size, so that sanitizers see every byte read outside.
std::string_view exact_view(std::vector<char>& memory, const std::string& text) {
  memory.assign(text.begin(), text.end());
  memory.shrink_to_fit();
  return {memory.data(), memory.size()};
}

std::string draw(std::mt19937& random, const std::vector<std::string>& letters, size_t length_max) {
  std::string text;
  for (size_t left = random() % (length_max + 1); left > 0; --left)
    text += letters[random() % letters.size()];
  return text;
}

// What the form of a pattern promises, for those that have one.
bool by_form(const LikePattern& pattern, std::string_view text) {
  switch (pattern.form()) {
    case LikePattern::Form::Equal:
      return text == pattern.part();
    case LikePattern::Form::Prefix:
      return text.starts_with(pattern.part());
    case LikePattern::Form::Suffix:
      return text.ends_with(pattern.part());
    case LikePattern::Form::Contains:
      return text.find(pattern.part()) != std::string_view::npos;
    case LikePattern::Form::General:
      break;
  }
  return pattern.matches(text);
}

void check_random(uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> text_letters = {"a", "b", "é", "漢", "%", "_"};
  const std::vector<std::string> pattern_letters = {"a", "b", "é", "漢", "%", "%", "_", "\\%", "\\_", "ab"};
  std::vector<char> memory;
  for (int round = 0; round < 400; ++round) {
    const std::string pattern = draw(random, pattern_letters, 6);
    const std::string text = draw(random, text_letters, round % 2 == 0 ? 8 : 40);
    const LikePattern compiled(pattern, '\\');
    const bool got = compiled.matches(exact_view(memory, text));
    CHECK(got == naive(text, pattern));
    CHECK(by_form(compiled, text) == got);
    if (got != naive(text, pattern))
      std::fprintf(stderr, "  '%s' like '%s'\n", text.c_str(), pattern.c_str());
  }
}

void check_search(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<char> memory;
  std::vector<char> needle_memory;
  for (int round = 0; round < 400; ++round) {
    const std::string text = draw(random, {"a", "b"}, round % 2 == 0 ? 20 : 150);
    // What is drawn apart from the text is mostly not found, or early.
    const size_t tail = std::min<size_t>(text.size(), random() % 25);
    const std::string needle =
        round % 3 == 0 ? text.substr(text.size() - tail) : draw(random, {"a", "b"}, 12);
    CHECK(find_bytes(exact_view(memory, text), exact_view(needle_memory, needle)) == text.find(needle));
  }
}

// One byte at a time.
int64_t naive_count(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += !is_continuation(byte);
  return count;
}

void check_words(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<char> memory;
  std::vector<char> other_memory;
  for (int round = 0; round < 400; ++round) {
    const std::string text = draw(random, {"a", "b", "é", "漢"}, 40);
    CHECK(count_characters(exact_view(memory, text)) == naive_count(text));
    CHECK(is_ascii(exact_view(memory, text)) == (naive_count(text) == static_cast<int64_t>(text.size()) &&
                                                 text.find_first_of("\xc3\xe6") == std::string::npos));
    const std::string ascii = draw(random, {"a", "z", "A", "Z", "{", "`", "@", "[", "m", "\x7f", "0"}, 40);
    for (const char first : {'a', 'A'}) {
      std::string changed = ascii;
      for (char& byte : changed)
        byte = byte >= first && byte < first + 26 ? static_cast<char>(byte ^ 32) : byte;
      std::vector<char> out(ascii.size());
      change_case(exact_view(memory, ascii), first, out.data());
      CHECK(std::string(out.begin(), out.end()) == changed);
    }
    std::string near = ascii;
    if (!near.empty() && round % 3 != 0) near[random() % near.size()] ^= 1;
    CHECK(same_bytes(exact_view(memory, ascii).data(), exact_view(other_memory, near).data(), near.size()) ==
          (ascii == near));
  }
}

}  // namespace

int main() {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    check_random(seed);
    check_search(seed);
    check_words(seed);
  }
  CHECK(!LikePattern("abc\\", '\\').valid());
  CHECK(LikePattern("abc\\", -1).matches("abc\\"));
  CHECK(LikePattern("%special%requests%", -1).matches("the special and the requests"));
  CHECK(!LikePattern("%special%requests%", -1).matches("requests that are special"));
  CHECK(count_characters("aé漢") == 3 && is_ascii("plain text of some length") &&
        !is_ascii("plain text of some lengté"));
  return test::finish();
}
