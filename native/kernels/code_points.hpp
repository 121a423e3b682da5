// Code points of UTF-8 texts, one after another. Texts are valid.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace bireme {

// The code point at byte `at`, which then is behind it.
inline uint32_t take_code_point(std::string_view text, size_t& at) {
  const auto byte = [&text, &at]() { return static_cast<uint32_t>(static_cast<unsigned char>(text[at++])); };
  const uint32_t first = byte();
  if (first < 0x80) return first;
  const int further = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  uint32_t code = first & (0x3fu >> further);
  for (int index = 0; index < further && at < text.size(); ++index) code = (code << 6) | (byte() & 0x3f);
  return code;
}

using CodePointTexts = std::vector<uint32_t>;

inline void read_code_points(std::string_view text, CodePointTexts& out) {
  out.clear();
  for (size_t at = 0; at < text.size();) out.push_back(take_code_point(text, at));
}

// Writes a code point in up to four bytes, and says where they end.
inline char* append_code_point(char* out, uint32_t code) {
  const auto put = [&out](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
    return out;
  }
  const int further = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  put(((0xff00u >> (further + 1)) & 0xff) | (code >> (6 * further)));
  for (int index = further - 1; index >= 0; --index) put(0x80 | ((code >> (6 * index)) & 0x3f));
  return out;
}

}  // namespace bireme
