#include "parquet/utf8.hpp"

#include "parquet/bytes.hpp"

namespace bireme::parquet {

namespace {

constexpr uint64_t kHighBits = 0x8080808080808080;

bool is_ascii(const uint8_t* bytes, int64_t count) {
  uint64_t any = 0;
  int64_t done = 0;
  for (; count - done >= 32; done += 32) {
    for (int word = 0; word < 4; ++word) any |= load<uint64_t>(bytes + done + 8 * word);
    if ((any & kHighBits) != 0) return false;
  }
  for (; done < count; ++done) any |= bytes[done];
  return (any & kHighBits) == 0;
}

bool is_continuation(uint8_t byte) {
  return (byte & 0xC0) == 0x80;
}

// The length of the character at `at`, of which `left` bytes are there; 0 where there is none.
int64_t character_length(const uint8_t* at, int64_t left) {
  const uint8_t lead = at[0];
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const int64_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (left < length) return 0;
  for (int64_t byte = 1; byte < length; ++byte) {
    if (!is_continuation(at[byte])) return 0;
  }
  // Nothing longer than it needs to be, no surrogates, nothing above U+10FFFF.
  const uint8_t second = at[1];
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

bool is_utf8(const uint8_t* bytes, int64_t count) {
  int64_t done = 0;
  while (done < count) {
    if (count - done >= 8 && (load<uint64_t>(bytes + done) & kHighBits) == 0) {
      done += 8;
      continue;
    }
    const int64_t length = character_length(bytes + done, count - done);
    if (length == 0) return false;
    done += length;
  }
  return true;
}

}  // namespace

bool are_utf8(const uint8_t* bytes, int64_t begin, const int32_t* ends, int64_t count) {
  if (count == 0) return true;
  const int64_t total = ends[count - 1] - begin;
  if (is_ascii(bytes + begin, total)) return true;
  if (!is_utf8(bytes + begin, total)) return false;
  // No word may end within a character.
  for (int64_t index = 0; index + 1 < count; ++index) {
    if (ends[index] < ends[count - 1] && is_continuation(bytes[ends[index]])) return false;
  }
  return true;
}

}  // namespace bireme::parquet
