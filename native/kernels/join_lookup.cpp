#include "kernels/join_lookup.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

// What a value of the range may cost at most, in values a row: what a look-up gains by not hashing is lost
// again once the memory it touches is much more than that of a hash table.
constexpr uint64_t kDirectCellsPerRow = 3;
constexpr uint64_t kRankedBitsPerRow = 256;
constexpr uint64_t kLinkedBitsPerRow = 64;
// So small that it stays in cache whatever the rows.
constexpr uint64_t kDirectCellsSmall = uint64_t{1} << 14;
constexpr uint64_t kBitsSmall = uint64_t{1} << 19;

// Three slots in five are taken.
constexpr uint64_t hash_capacity(int64_t keys) {
  return static_cast<uint64_t>(keys) * 5 / 3 + 16;
}

// Calls work(words, keep or null, first row, rows) for the chunk, vector by vector, from the last to the
// first.
template <typename Work>
void each_vector_backwards(const WordSource& source, const WordSource::Chunk& chunk, Work work) {
  WordReader reader(source.words, chunk.keys);
  for (int64_t end = chunk.rows; end > 0;) {
    const int64_t begin = (end - 1) / kVectorRows * kVectorRows;
    bool all = true;
    const uint64_t* words = reader.read(begin, end - begin, all);
    work(words, all ? nullptr : reader.keep(), chunk.first_row + begin, end - begin);
    end = begin;
  }
}

template <typename Work>
void each_chunk_backwards(const WordSource& source, Work work) {
  for (auto chunk = source.chunks.rbegin(); chunk != source.chunks.rend(); ++chunk) work(*chunk);
}

// Offsets [begin, end) of the range: what one part takes care of. Cut where a word of bits begins.
struct Share {
  uint64_t begin;
  uint64_t end;
  bool touches(const WordSource::Chunk& chunk) const { return chunk.high >= begin && chunk.low < end; }
};

Share share_of(WordRange range, int part, int parts) {
  const unsigned __int128 words = static_cast<unsigned __int128>(range.reach / 64) + 1;
  const auto at = [&](int index) {
    const auto word =
        static_cast<uint64_t>(words * static_cast<unsigned>(index) / static_cast<unsigned>(parts));
    return std::min(word * 64, range.reach + 1);
  };
  return {at(part), at(part + 1)};
}

// Gathers words for a visit.
class Visitor {
 public:
  explicit Visitor(const WordVisit& visit) : visit_(visit) {}
  void add(uint64_t word) {
    words_[count_++] = word;
    if (count_ == kVectorRows) flush();
  }
  void flush() {
    if (count_ > 0) visit_(words_, count_);
    count_ = 0;
  }

 private:
  const WordVisit& visit_;
  uint64_t words_[kVectorRows];
  int64_t count_ = 0;
};

class Sequence final : public WordLookup {
 public:
  explicit Sequence(WordRange range) : range_(range) {}
  std::string form() const override { return "a sequence"; }
  int64_t nbytes() const override { return 0; }
  void build(const WordSource&, Chains&, int, int) override {}
  void find(const uint64_t* words, int64_t rows, uint32_t* heads) const override {
    join_loops().find_sequence(words, rows, range_, heads);
  }
  void each_word(const WordVisit& visit) const override {
    Visitor visitor(visit);
    for (uint64_t offset = 0; offset <= range_.reach; ++offset) visitor.add(range_.low + offset);
    visitor.flush();
  }

 private:
  WordRange range_;
};

class Nothing final : public WordLookup {
 public:
  std::string form() const override { return "empty"; }
  int64_t nbytes() const override { return 0; }
  void build(const WordSource&, Chains&, int, int) override {}
  void find(const uint64_t*, int64_t rows, uint32_t* heads) const override {
    std::fill_n(heads, rows, kNoRow);
  }
  void each_word(const WordVisit&) const override {}
};

class Direct final : public WordLookup {
 public:
  explicit Direct(WordRange range) : range_(range) { cells_.resize(static_cast<int64_t>(range.reach) + 1); }
  std::string form() const override { return "direct-addressed"; }
  int64_t nbytes() const override { return cells_.nbytes(); }

  void build(const WordSource& source, Chains& chains, int part, int parts) override {
    const Share share = share_of(range_, part, parts);
    uint32_t* cells = cells_.data();
    std::fill(cells + share.begin, cells + share.end, kNoRow);
    ChainWriter chain(chains);
    each_chunk_backwards(source, [&](const WordSource::Chunk& chunk) {
      if (!share.touches(chunk)) return;
      each_vector_backwards(
          source, chunk, [&](const uint64_t* words, const uint8_t* keep, int64_t first, int64_t rows) {
            for (int64_t row = rows - 1; row >= 0; --row) {
              const uint64_t offset = words[row] - range_.low;
              if (offset < share.begin || offset >= share.end || (keep != nullptr && keep[row] == 0))
                continue;
              cells[offset] = chain.before(cells[offset], static_cast<uint32_t>(first + row));
            }
          });
    });
  }

  void find(const uint64_t* words, int64_t rows, uint32_t* heads) const override {
    join_loops().find_direct(words, rows, range_, cells_.data(), heads);
  }

  void each_word(const WordVisit& visit) const override {
    Visitor visitor(visit);
    for (int64_t cell = 0; cell < cells_.size(); ++cell) {
      if (cells_[cell] != kNoRow) visitor.add(range_.low + static_cast<uint64_t>(cell));
    }
    visitor.flush();
  }

 private:
  WordRange range_;
  Cells<uint32_t> cells_;
};

class Ranked final : public WordLookup {
 public:
  Ranked(const WordSource& source, bool linked) : range_(source.words.range()), linked_(linked) {
    const auto words = static_cast<int64_t>(range_.reach / 64 + 1);
    bits_.resize(words);
    ranks_.resize(words);
    if (linked) links_.resize(source.valid);
  }
  std::string form() const override {
    return linked_ ? "a bitmap with rows by rank" : "a bitmap whose ranks are rows";
  }
  int64_t nbytes() const override { return bits_.nbytes() + ranks_.nbytes() + links_.nbytes(); }

  void build(const WordSource& source, Chains& chains, int part, int parts) override {
    const Share share = share_of(range_, part, parts);
    if (share.begin == share.end) return;
    const auto begin = static_cast<int64_t>(share.begin / 64);
    const auto end = static_cast<int64_t>((share.end + 63) / 64);
    std::fill(bits_.data() + begin, bits_.data() + end, 0);
    // Links of a part begin after as many as all rows of smaller keys would take.
    const int64_t before = set_bits(source, share);
    const uint32_t after =
        join_loops().count_ranks(bits_.data(), begin, end, static_cast<uint32_t>(before), ranks_.data());
    if (linked_) link(source, chains, share, before, after);
  }

  void find(const uint64_t* words, int64_t rows, uint32_t* heads) const override {
    const RankedBits ranked{range_, bits_.data(), ranks_.data()};
    if (linked_) {
      join_loops().find_linked(words, rows, ranked, links_.data(), heads);
    } else {
      join_loops().find_ranked(words, rows, ranked, heads);
    }
  }

  void each_word(const WordVisit& visit) const override {
    Visitor visitor(visit);
    for (int64_t word = 0; word < bits_.size(); ++word) {
      for (uint64_t rest = bits_[word]; rest != 0; rest &= rest - 1) {
        visitor.add(range_.low + static_cast<uint64_t>(word * 64 + std::countr_zero(rest)));
      }
    }
    visitor.flush();
  }

 private:
  // Sets the bits of the share, and returns how many rows have smaller keys.
  int64_t set_bits(const WordSource& source, const Share& share) {
    uint64_t* bits = bits_.data();
    int64_t before = 0;
    for (const WordSource::Chunk& chunk : source.chunks) {
      if (!share.touches(chunk)) {
        if (chunk.high < share.begin) before += chunk.valid;
        continue;
      }
      each_vector_backwards(source, chunk,
                            [&](const uint64_t* words, const uint8_t* keep, int64_t, int64_t rows) {
                              for (int64_t row = 0; row < rows; ++row) {
                                if (keep != nullptr && keep[row] == 0) continue;
                                const uint64_t offset = words[row] - range_.low;
                                before += offset < share.begin ? 1 : 0;
                                if (offset >= share.begin && offset < share.end)
                                  bits[offset >> 6] |= uint64_t{1} << (offset & 63);
                              }
                            });
    }
    return before;
  }

  void link(const WordSource& source, Chains& chains, const Share& share, int64_t before, uint32_t after) {
    uint32_t* links = links_.data();
    std::fill(links + before, links + after, kNoRow);
    const RankedBits ranked{range_, bits_.data(), ranks_.data()};
    ChainWriter chain(chains);
    uint32_t ranks[kVectorRows];
    each_chunk_backwards(source, [&](const WordSource::Chunk& chunk) {
      if (!share.touches(chunk)) return;
      each_vector_backwards(
          source, chunk, [&](const uint64_t* words, const uint8_t* keep, int64_t first, int64_t rows) {
            uint64_t own[kVectorRows];
            uint32_t places[kVectorRows];
            int64_t count = 0;
            for (int64_t row = rows - 1; row >= 0; --row) {
              const uint64_t offset = words[row] - range_.low;
              own[count] = words[row];
              places[count] = static_cast<uint32_t>(first + row);
              count +=
                  offset >= share.begin && offset < share.end && (keep == nullptr || keep[row] != 0) ? 1 : 0;
            }
            // Only bits of the share are looked at: others may be changing.
            join_loops().find_ranked(own, count, ranked, ranks);
            for (int64_t index = 0; index < count; ++index) {
              links[ranks[index]] = chain.before(links[ranks[index]], places[index]);
            }
          });
    });
  }

  WordRange range_;
  bool linked_;
  Cells<uint64_t> bits_;
  Cells<uint32_t> ranks_;
  Cells<uint32_t> links_;
};

class Hash final : public WordLookup {
 public:
  Hash(const WordSource& source, int parts)
      : capacity_(hash_capacity(source.valid)), late_(static_cast<size_t>(parts)) {
    if (capacity_ > UINT32_MAX) throw std::bad_alloc();
    slots_.resize(static_cast<int64_t>(capacity_));
  }
  std::string form() const override { return "a hash table"; }
  int64_t nbytes() const override { return slots_.nbytes(); }

  void build(const WordSource& source, Chains& chains, int part, int parts) override {
    const uint64_t begin = capacity_ * static_cast<uint64_t>(part) / static_cast<uint64_t>(parts);
    const uint64_t end = capacity_ * static_cast<uint64_t>(part + 1) / static_cast<uint64_t>(parts);
    std::fill(slots_.data() + begin, slots_.data() + end, HashSlot{0, kNoRow, 0});
    std::vector<Late>& late = late_[static_cast<size_t>(part)];
    late.clear();
    ChainWriter chain(chains);
    each_chunk_backwards(source, [&](const WordSource::Chunk& chunk) {
      each_vector_backwards(
          source, chunk, [&](const uint64_t* words, const uint8_t* keep, int64_t first, int64_t rows) {
            uint64_t own[kVectorRows];
            uint32_t places[kVectorRows];
            uint32_t homes[kVectorRows];
            int64_t count = 0;
            for (int64_t row = rows - 1; row >= 0; --row) {
              const uint64_t home = home_of(join_hash(words[row]), capacity_);
              own[count] = words[row];
              places[count] = static_cast<uint32_t>(first + row);
              homes[count] = static_cast<uint32_t>(home);
              count += home >= begin && home < end && (keep == nullptr || keep[row] != 0) ? 1 : 0;
            }
            for (int64_t index = 0; index < count; ++index)
              __builtin_prefetch(slots_.data() + homes[index], 1);
            for (int64_t index = 0; index < count; ++index) {
              const uint64_t at = place(own[index], homes[index], end);
              if (at == end) {
                // It belongs into slots of the next part, which only `finish` may touch.
                late.push_back({own[index], places[index]});
              } else {
                insert(chain, slots_[static_cast<int64_t>(at)], own[index], places[index]);
              }
            }
          });
    });
  }

  void finish(Chains& chains) override {
    if (std::all_of(late_.begin(), late_.end(), [](const std::vector<Late>& late) { return late.empty(); }))
      return;
    chains.make();  // whatever fails for want of memory must fail before anything is changed
    ChainWriter chain(chains);
    for (std::vector<Late>& late : late_) {
      for (const Late& one : late) {
        uint64_t at = place(one.key, home_of(join_hash(one.key), capacity_), capacity_);
        if (at == capacity_) at = place(one.key, 0, capacity_);
        insert(chain, slots_[static_cast<int64_t>(at)], one.key, one.row);
      }
      late = {};
    }
  }

  void find(const uint64_t* words, int64_t rows, uint32_t* heads) const override {
    join_loops().find_hashed(words, rows, {slots_.data(), capacity_}, heads);
  }

  void each_word(const WordVisit& visit) const override {
    Visitor visitor(visit);
    for (int64_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].head != kNoRow) visitor.add(slots_[slot].key);
    }
    visitor.flush();
  }

 private:
  struct Late {
    uint64_t key;
    uint32_t row;
  };

  // The slot of the key or the first empty one from `at` on, or `end`.
  uint64_t place(uint64_t key, uint64_t at, uint64_t end) const {
    const HashSlot* slots = slots_.data();
    while (at < end && slots[at].head != kNoRow && slots[at].key != key) ++at;
    return at;
  }

  static void insert(ChainWriter& chain, HashSlot& slot, uint64_t key, uint32_t row) {
    slot.key = key;
    slot.head = chain.before(slot.head, row);
  }

  uint64_t capacity_;
  Cells<HashSlot> slots_;
  std::vector<std::vector<Late>> late_;
};

}  // namespace

std::unique_ptr<WordLookup> make_lookup(const WordSource& source, int parts) {
  if (source.valid == 0) return std::make_unique<Nothing>();
  const WordRange range = source.words.range();
  const auto rows = static_cast<uint64_t>(source.valid);
  // Fewer values than these are also few enough for their number not to wrap around.
  const auto fits = [&](uint64_t per_row, uint64_t small) {
    return range.reach < std::max(rows * per_row, small);
  };
  if (source.words.is_integer_like()) {
    if (source.ascending && range.reach + 1 == rows) return std::make_unique<Sequence>(range);
    if (source.ascending && fits(kRankedBitsPerRow, kBitsSmall))
      return std::make_unique<Ranked>(source, false);
    if (fits(kDirectCellsPerRow, kDirectCellsSmall)) return std::make_unique<Direct>(range);
    if (fits(kLinkedBitsPerRow, kBitsSmall)) return std::make_unique<Ranked>(source, true);
  }
  return std::make_unique<Hash>(source, parts);
}

}  // namespace bireme
