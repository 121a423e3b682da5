// Look-ups of vectors of keys. Every loop does the same work for each row, without a branch on what it finds,
// so that the processor has many rows' misses under way at once; only hashing, which must branch, fetches
// ahead by itself.
#include "kernels/join_loops.hpp"

namespace bireme::BIREME_ISA {

namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr int64_t kRowsMax = 1024;
// Slots that stay in the second-level cache are not worth fetching ahead.
constexpr uint64_t kNearSlots = 16 * 1024;

void find_sequence(const uint64_t* __restrict words, int64_t rows, WordRange range,
                   uint32_t* __restrict heads) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t offset = words[row] - range.low;
    heads[row] = offset <= range.reach ? static_cast<uint32_t>(offset) : kNone;
  }
}

// The rank of a value, or kNone where it is no key.
inline uint32_t rank_of(uint64_t word, const RankedBits& ranked) {
  const uint64_t offset = word - ranked.range.low;
  const bool inside = offset <= ranked.range.reach;
  const uint64_t at = inside ? offset >> 6 : 0;
  const uint64_t bits = ranked.bits[at];
  const uint64_t bit = uint64_t{1} << (offset & 63);
  const bool held = inside & ((bits & bit) != 0);
  const uint32_t rank = ranked.ranks[at] + static_cast<uint32_t>(__builtin_popcountll(bits & (bit - 1)));
  return held ? rank : kNone;
}

void find_ranked(const uint64_t* __restrict words, int64_t rows, const RankedBits& ranked,
                 uint32_t* __restrict heads) {
  const RankedBits local = ranked;
  for (int64_t row = 0; row < rows; ++row) heads[row] = rank_of(words[row], local);
}

void find_linked(const uint64_t* __restrict words, int64_t rows, const RankedBits& ranked,
                 const uint32_t* __restrict links, uint32_t* __restrict heads) {
  const RankedBits local = ranked;
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t rank = rank_of(words[row], local);
    const bool held = rank != kNone;
    const uint32_t link = links[held ? rank : 0];
    heads[row] = held ? link : kNone;
  }
}

void find_direct(const uint64_t* __restrict words, int64_t rows, WordRange range,
                 const uint32_t* __restrict cells, uint32_t* __restrict heads) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t offset = words[row] - range.low;
    const bool inside = offset <= range.reach;
    const uint32_t cell = cells[inside ? offset : 0];
    heads[row] = inside ? cell : kNone;
  }
}

void find_hashed(const uint64_t* __restrict words, int64_t rows, HashSlots slots,
                 uint32_t* __restrict heads) {
  uint32_t homes[kRowsMax];
  for (int64_t row = 0; row < rows; ++row) {
    homes[row] = static_cast<uint32_t>(home_of(join_hash(words[row]), slots.capacity));
  }
  if (slots.capacity > kNearSlots) {
    for (int64_t row = 0; row < rows; ++row) __builtin_prefetch(slots.slots + homes[row]);
  }
  for (int64_t row = 0; row < rows; ++row) {
    uint64_t at = homes[row];
    while (slots.slots[at].key != words[row] && slots.slots[at].head != kNone) {
      if (++at == slots.capacity) at = 0;
    }
    heads[row] = slots.slots[at].head;
  }
}

uint32_t count_ranks(const uint64_t* __restrict bits, int64_t begin, int64_t end, uint32_t rank,
                     uint32_t* __restrict ranks) {
  for (int64_t word = begin; word < end; ++word) {
    ranks[word] = rank;
    rank += static_cast<uint32_t>(__builtin_popcountll(bits[word]));
  }
  return rank;
}

int64_t matches(const uint32_t* __restrict heads, int64_t rows, uint32_t first,
                uint32_t* __restrict positions, uint32_t* __restrict found) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    // Written always, counted only where there is a match: no branch to guess.
    positions[count] = first + static_cast<uint32_t>(row);
    found[count] = heads[row];
    count += heads[row] != kNone ? 1 : 0;
  }
  return count;
}

}  // namespace

const JoinLoops& join_loops() {
  static constexpr JoinLoops loops = {find_sequence, find_ranked, find_linked, find_direct,
                                      find_hashed,   count_ranks, matches};
  return loops;
}

}  // namespace bireme::BIREME_ISA
