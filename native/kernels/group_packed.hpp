// An index from keys of up to 64 bytes to numbers: packed into words, found by address where they are dense,
// else by hash.
//
// Rule: keys get numbers 0, 1, 2 … in the order in which they first come, and lie in that order in `keys_`.
// What finds a number (an array addressed by the key, or slots) can be thrown away and made again from them,
// so the index moves between the two as the keys it has seen ask for: dense while there are at most
// kCellsPerKey cells for each key that is there, or may be once the rows at hand are taken. Rows that bring
// no new keys pay for none: a table of one of many ranges of hashes sees few keys of a wide range again and
// again. A lean index counts on no rows to come, so it never takes much more than its keys do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/group_cells.hpp"
#include "kernels/group_layout.hpp"
#include "kernels/group_slots.hpp"

namespace bireme {

class PackedIndex {
 public:
  explicit PackedIndex(const KeyLayout& layout, bool is_lean = false);

  uint32_t size() const {
    return static_cast<uint32_t>(layout_.words == 1 ? keys_.size() : keys_.size() / layout_.words);
  }
  int64_t nbytes() const { return keys_.nbytes() + slots_.nbytes() + domain_.nbytes(); }
  // Bytes that looking up so many new keys would take beside those, where they are found by hash.
  int64_t bytes_to_add(int64_t entries) const {
    return domain_.active() ? 0 : slots_.bytes_to_reserve(int64_t{size()} + entries);
  }
  bool dense() const { return domain_.active(); }

  // Says that up to `rows` more keys are to come, which is what pays for a dense index.
  void expect(int64_t rows) { keys_expected_ = std::max(keys_expected_, int64_t{size()} + rows); }
  // Whether it helps to know the ranges of the keys to come, and tells them: one array for all of them, if
  // they are dense.
  bool wants_ranges() const { return can_be_dense_ && (domain_.active() || is_fresh()); }
  void foresee(const std::vector<KeyDomain::Range>& ranges) { cover(ranges); }
  // Makes room for keys, so that the first ones are not copied again and again.
  void reserve(int64_t entries) { keys_.reserve(entries * layout_.words); }
  void reserve_slots(int64_t entries) { slots_.reserve(entries); }

  // Takes the keys of an index that has no keys with NULL, under the numbers they have there.
  void adopt(const PackedIndex& other);
  bool has_null_bits() const { return has_null_bits_; }

  void find_or_add(const KeyVector& keys, uint32_t* entries);
  void find(const KeyVector& keys, uint32_t* entries) const;
  // A number of its own for the one key that is never looked up.
  uint32_t add_unlisted();

  // The word of part `part` for each entry, and whether the column is valid there.
  void read_part(int part, const uint32_t* entries, int64_t rows, uint64_t* words, int64_t step) const;
  bool is_null(int column, uint32_t entry) const;

 private:
  static constexpr uint64_t kCellsPerKey = 8;
  static constexpr uint64_t kCellsMin = 1 << 16;
  static constexpr uint64_t kLeanCellsMin = 1 << 10;

  uint64_t cells_limit() const;
  bool is_fresh() const { return size() == 0 || (size() == 1 && unlisted_ == 0); }
  bool grow_domain(const KeyVector& keys);
  bool cover(const std::vector<KeyDomain::Range>& ranges);
  bool become_dense();
  void leave_domain();
  void fill_domain();
  void add_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries);
  template <bool ManyNew>
  void add_words_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries);
  template <int W>
  bool guess(const uint32_t* hashes, int64_t rows, uint32_t* entries) const;
  template <int W>
  void add_by_hash(const KeyVector& keys, uint32_t* entries);
  template <int W>
  void find_by_hash(const KeyVector& keys, uint32_t* entries) const;
  template <int W>
  void pack(const KeyVector& keys, uint64_t* words) const;
  void append_key(const KeyVector& keys, int64_t row);
  void list_all();
  uint64_t part_of(int part, uint32_t entry) const;

  KeyLayout layout_;
  bool is_lean_;
  bool can_be_dense_;
  bool has_null_bits_ = false;
  std::vector<bool> nullable_;
  Cells<uint64_t> keys_;
  Slots slots_;
  KeyDomain domain_;
  int64_t keys_expected_ = 0;   // the most that there may have been
  int64_t dense_check_ = 4096;  // the size at which to look again whether the keys are dense
  uint32_t unlisted_ = kNoEntry;
  bool many_new_ = true;  // whether the last vector brought many new keys
};

}  // namespace bireme
