// Byte strings kept by a table: short ones in place, long ones in an arena; and an index from string to
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/group_cells.hpp"
#include "kernels/group_slots.hpp"

namespace bireme {

// A string of at most 12 bytes lies in `head` and `tail`, zero-padded; of a longer one `head` holds the first
// 4 bytes and `tail` its address. So most comparisons are decided without following a pointer.
struct Text {
  uint32_t length = 0;
  uint32_t head = 0;
  uint64_t tail = 0;

  static constexpr uint32_t kInlineMax = 12;

  const char* data() const {
    if (length <= kInlineMax) return reinterpret_cast<const char*>(this) + 4;
    return reinterpret_cast<const char*>(tail);
  }
  std::string_view view() const { return {data(), length}; }
};
static_assert(sizeof(Text) == 16);

// A Text over bytes that stay where they are.
inline Text text_over(const char* bytes, uint32_t length) {
  Text text;
  text.length = length;
  if (length <= Text::kInlineMax) {
    std::memcpy(reinterpret_cast<char*>(&text) + offsetof(Text, head), bytes, length);
  } else {
    std::memcpy(&text.head, bytes, 4);
    text.tail = reinterpret_cast<uint64_t>(bytes);
  }
  return text;
}

inline bool operator==(const Text& left, const Text& right) {
  if (left.length != right.length || left.head != right.head) return false;
  if (left.length <= Text::kInlineMax) return left.tail == right.tail;
  return std::memcmp(left.data(), right.data(), left.length) == 0;
}

inline bool text_less(const Text& left, const Text& right) {
  const uint32_t left_head = __builtin_bswap32(left.head);
  const uint32_t right_head = __builtin_bswap32(right.head);
  if (left_head != right_head) return left_head < right_head;
  return left.view() < right.view();
}

// Memory for the bytes of long strings, given back all at once.
class TextArena {
 public:
  int64_t nbytes() const { return nbytes_; }

  // `length` bytes that stay where they are.
  char* allocate(int64_t length) {
    if (length > left_) {
      const int64_t block = length > next_block_ ? length : next_block_;
      blocks_.reserve(blocks_.size() + 1);
      Buffer buffer(block);
      next_ = buffer.as<char>();
      left_ = block;
      nbytes_ += buffer.capacity();
      blocks_.push_back(std::move(buffer));
      if (next_block_ < kBlockMax) next_block_ *= 2;
    }
    char* place = next_;
    next_ += length;
    left_ -= length;
    return place;
  }

  Text keep(const Text& text) {
    if (text.length <= Text::kInlineMax) return text;
    char* place = allocate(text.length);
    std::memcpy(place, text.data(), text.length);
    Text kept = text;
    kept.tail = reinterpret_cast<uint64_t>(place);
    return kept;
  }

 private:
  static constexpr int64_t kBlockMax = int64_t{1} << 22;

  std::vector<Buffer> blocks_;
  char* next_ = nullptr;
  int64_t left_ = 0;
  int64_t next_block_ = 4096;
  int64_t nbytes_ = 0;
};

inline uint64_t load_word(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

// Of our own: it never leaves the process, unlike the engine's hash of rows.
inline uint32_t hash_text(const Text& text) {
  constexpr uint64_t k0 = 0xa0761d6478bd642fULL, k1 = 0xe7037ed1a0b428dbULL, k2 = 0x8ebc6af09c88c6e3ULL;
  uint64_t state = text.length * k0;
  if (text.length <= Text::kInlineMax) {
    return static_cast<uint32_t>(fold_multiply(fold_multiply(text.tail ^ k1, state ^ text.head), k2) >> 32);
  }
  const char* at = text.data();
  const char* end = at + text.length;
  for (; end - at > 16; at += 16) state = fold_multiply(load_word(at) ^ k1, load_word(at + 8) ^ state);
  // Longer than 12 bytes, so the last 8 are there; they may overlap those before.
  const uint64_t rest = end - at >= 8 ? load_word(at) : load_word(end - 8);
  state = fold_multiply(rest ^ k1, load_word(end - 8) ^ state);
  return static_cast<uint32_t>(fold_multiply(state, k2) >> 32);
}

// Numbers distinct strings in the order in which they come.
class TextIndex {
 public:
  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
  int64_t nbytes() const { return slots_.nbytes() + texts_.nbytes() + arena_.nbytes(); }
  int64_t bytes_to_reserve(int64_t count) const { return slots_.bytes_to_reserve(texts_.size() + count); }
  const Text& operator[](uint32_t entry) const { return texts_[entry]; }

  // Makes room for `count` new entries. What `find_or_add` needs.
  void reserve_more(int64_t count) {
    slots_.reserve(texts_.size() + count);
    texts_.reserve(texts_.size() + count);
  }

  uint32_t find(const Text& text, uint32_t hash) const { return find(text, hash, kNoEntry, false); }
  uint32_t find_or_add(const Text& text, uint32_t hash) { return find_or_add(text, hash, kNoEntry); }

  // The same where `guess` has a say in which entry is looked at first; whether it looked for one is told.
  uint32_t find(const Text& text, uint32_t hash, uint32_t guess, bool has_looked) const {
    if (guess == kNoEntry ? has_looked : texts_[guess] == text) return guess;
    return slots_.find(hash, [&](uint32_t entry) { return texts_[entry] == text; });
  }

  uint32_t find_or_add(const Text& text, uint32_t hash, uint32_t guess) {
    if (guess != kNoEntry && texts_[guess] == text) return guess;
    return slots_.find_or_make(
        hash, [&](uint32_t entry) { return texts_[entry] == text; },
        [&] {
          texts_.append(arena_.keep(text));
          return size() - 1;
        });
  }

  // The entries that texts with these hashes are likely to have, and brings those into the cache if they are
  // not likely to be there. Whether it has looked: then a text without an entry is not there.
  bool guess(const uint32_t* hashes, int64_t rows, uint32_t* entries) const {
    if (!slots_.guess(hashes, rows, entries, size())) return false;
    for (int64_t row = 0; row < rows; ++row) {
      if (entries[row] != kNoEntry) __builtin_prefetch(&texts_[entries[row]]);
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (entries[row] == kNoEntry) continue;
      const Text& text = texts_[entries[row]];
      if (text.length > Text::kInlineMax) __builtin_prefetch(text.data());
    }
    return true;
  }

  // A number of its own for the one key that is never looked up.
  uint32_t add_unlisted() {
    texts_.push_back(Text{});
    return size() - 1;
  }

 private:
  Slots slots_;
  Cells<Text> texts_;
  TextArena arena_;
};

}  // namespace bireme
