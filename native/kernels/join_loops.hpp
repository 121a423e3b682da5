// The loops of join lookups, once per instruction set (kernels/dispatch.hpp).
#pragma once

#include <cstdint>

#include "kernels/key_filter_loops.hpp"

namespace bireme {

// Which of the values from `range.low` on are keys: a bit each; `ranks` counts the keys before each word of
// bits.
struct RankedBits {
  WordRange range;
  const uint64_t* bits = nullptr;
  const uint32_t* ranks = nullptr;
};

struct HashSlot {
  uint64_t key;
  uint32_t head;  // kNoRow: empty
  uint32_t unused;
};

// Open addressing; a key's home is the upper half of its hash scaled to `capacity`, and what is taken moves
// it on, around the end.
struct HashSlots {
  const HashSlot* slots = nullptr;
  uint64_t capacity = 0;
};

// Multiplied into 128 bits and folded, which mixes all bits into all.
inline uint64_t join_hash(uint64_t key) {
  const auto product = static_cast<unsigned __int128>(key ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t home_of(uint64_t hash, uint64_t capacity) {
  return ((hash >> 32) * capacity) >> 32;
}

struct JoinLoops {
  // Each sets heads[row] to the link of the key's first build row, or kNoRow. `rows` is at most kVectorRows.
  // The key range.low + i is that of build row i.
  void (*find_sequence)(const uint64_t* words, int64_t rows, WordRange range, uint32_t* heads);
  // Build rows lie in the order of keys.
  void (*find_ranked)(const uint64_t* words, int64_t rows, const RankedBits& ranked, uint32_t* heads);
  // Links are in `links`, in the order of keys.
  void (*find_linked)(const uint64_t* words, int64_t rows, const RankedBits& ranked, const uint32_t* links,
                      uint32_t* heads);
  // Links are in `cells`, by value.
  void (*find_direct)(const uint64_t* words, int64_t rows, WordRange range, const uint32_t* cells,
                      uint32_t* heads);
  void (*find_hashed)(const uint64_t* words, int64_t rows, HashSlots slots, uint32_t* heads);
  // Fills in ranks[word], from `rank` on, for words [begin, end) of bits; returns the rank after them.
  uint32_t (*count_ranks)(const uint64_t* bits, int64_t begin, int64_t end, uint32_t rank, uint32_t* ranks);
  // Writes the positions (from `first` on) and heads of rows that have a head, and returns how many.
  int64_t (*matches)(const uint32_t* heads, int64_t rows, uint32_t first, uint32_t* positions,
                     uint32_t* found);
};

const JoinLoops& join_loops();

}  // namespace bireme
