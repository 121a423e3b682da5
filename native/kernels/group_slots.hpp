// Open addressing from 32-bit hashes to the numbers of entries that are kept elsewhere.
//
// Rule: a slot holds the whole hash, and its home is the upper bits of it. So the table grows without a look
// at the keys, in one pass that reads and writes forward, and most entries that differ are told apart without
// a look at them. What makes two entries equal is the caller's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

#include "kernels/group_cells.hpp"
#include "kernels/vector_rows.hpp"

namespace bireme {

inline constexpr uint32_t kNoEntry = 0xFFFFFFFFu;

// Tables with more entries do not stay in the second-level cache, and looking ahead pays.
inline constexpr uint32_t kPrefetchEntries = 16 * 1024;

// Multiplies into 128 bits and folds: one instruction that mixes well where one factor is odd and random.
inline uint64_t fold_multiply(uint64_t left, uint64_t right) {
  const auto product = static_cast<unsigned __int128>(left) * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class Slots {
 public:
  int64_t nbytes() const { return slots_.nbytes(); }
  // Bytes that `reserve` would take for `entries`, beside those that there are until it has ended.
  int64_t bytes_to_reserve(int64_t entries) const {
    const int64_t capacity = capacity_for(entries);
    return capacity == slots_.size() ? 0 : capacity * static_cast<int64_t>(sizeof(uint64_t));
  }

  // Makes room for `entries` in all. Throws std::bad_alloc and then changes nothing.
  void reserve(int64_t entries) {
    if (entries > kEntriesMax) throw std::bad_alloc();
    const int64_t capacity = capacity_for(entries);
    if (capacity != slots_.size()) grow(capacity);
  }

  // For each hash the first entry that has it, kNoEntry where none does: what a search will find, unless two
  // keys share a hash. It looks at no keys, so those of all rows can be brought up before any is looked at.
  // Whether it has looked: among few `entries_in_all` that does not pay, and all get kNoEntry.
  bool guess(const uint32_t* hashes, int64_t rows, uint32_t* entries, uint32_t entries_in_all) const {
    if (entries_in_all <= kPrefetchEntries) {
      std::fill(entries, entries + rows, kNoEntry);
      return false;
    }
    for (int64_t row = 0; row < rows; ++row) prefetch(hashes[row]);
    for (int64_t row = 0; row < rows; ++row) entries[row] = find(hashes[row], [](uint32_t) { return true; });
    return true;
  }

  // The entry with this hash for which equal(entry) holds, or kNoEntry.
  template <typename Equal>
  uint32_t find(uint32_t hash, Equal equal) const {
    if (slots_.empty()) return kNoEntry;
    for (uint64_t at = hash >> shift_;; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[static_cast<int64_t>(at)];
      if (slot == kEmpty) return kNoEntry;
      const auto entry = static_cast<uint32_t>(slot >> 32);
      if (static_cast<uint32_t>(slot) == hash && equal(entry)) return entry;
    }
  }

  // As `find`, but where there is none puts in what make() gives. There must be room.
  template <typename Equal, typename Make>
  uint32_t find_or_make(uint32_t hash, Equal equal, Make make) {
    for (uint64_t at = hash >> shift_;; at = (at + 1) & mask_) {
      uint64_t& slot = slots_[static_cast<int64_t>(at)];
      if (slot == kEmpty) {
        const uint32_t entry = make();
        slot = static_cast<uint64_t>(entry) << 32 | hash;
        return entry;
      }
      const auto entry = static_cast<uint32_t>(slot >> 32);
      if (static_cast<uint32_t>(slot) == hash && equal(entry)) return entry;
    }
  }

  void clear() noexcept { slots_.clear(); }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr int64_t kEntriesMax = int64_t{5} << 28;  // 2^31 slots

  int64_t capacity_for(int64_t entries) const {
    if (entries * 8 <= slots_.size() * 5) return slots_.size();
    int64_t capacity = slots_.empty() ? 64 : 2 * slots_.size();
    while (entries * 8 > capacity * 5) capacity *= 2;
    return capacity;
  }

  void prefetch(uint32_t hash) const { __builtin_prefetch(slots_.data() + (hash >> shift_)); }

  void grow(int64_t capacity) {
    Cells<uint64_t> larger;
    larger.resize(capacity, kEmpty);
    const auto shift = static_cast<uint32_t>(32 - std::countr_zero(static_cast<uint64_t>(capacity)));
    const uint64_t mask = static_cast<uint64_t>(capacity) - 1;
    for (int64_t index = 0; index < slots_.size(); ++index) {
      const uint64_t slot = slots_[index];
      if (slot == kEmpty) continue;
      uint64_t at = static_cast<uint32_t>(slot) >> shift;
      while (larger[static_cast<int64_t>(at)] != kEmpty) at = (at + 1) & mask;
      larger[static_cast<int64_t>(at)] = slot;
    }
    std::swap(slots_, larger);
    shift_ = shift;
    mask_ = mask;
  }

  Cells<uint64_t> slots_;  // the entry above, the hash below
  uint32_t shift_ = 31;
  uint64_t mask_ = 0;
};

}  // namespace bireme
