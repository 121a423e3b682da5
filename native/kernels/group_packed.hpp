// An index from keys of up to 32 bytes to numbers: the keys packed into words, found by address where they are dense, else by hash.
//
// Rule: keys get numbers 0, 1, 2 … in the order in which they first come, and lie in that order in `keys_`. What finds a
// number (an array addressed by the key, or slots) can be thrown away and made again from them, so the index
// moves between the two as the keys it has seen ask for: dense while a cell costs less than kCellsPerRow allows.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/type.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_slots.hpp"

namespace bireme {

// A machine word of a column's value and its place in the packed key.
struct KeyPart {
  int column = 0;
  int word = 0;
  int shift = 0;
  int bits = 64;
  bool is_signed = true;
};

struct KeyColumn {
  Type type;
  bool nullable = true;  // whether NULL is a key; if not, rows with a NULL here are in no index
  bool interned = false;  // a string that stands as its number in an index of its own
  int part = 0;  // its first; a wide decimal has two
  int null_word = -1;  // the place of the bit that says NULL, if there is one
  int null_shift = 0;
};

struct KeyLayout {
  static constexpr int kWordsMax = 4;

  // Without `null_bits` there is no room to say that a column is NULL.
  KeyLayout(const std::vector<Type>& types, const std::vector<bool>& nullable, bool null_bits);

  // Whether keys fit into kWordsMax words; `words` then says how many.
  bool packed() const { return words >= 1 && words <= kWordsMax; }

  std::vector<KeyColumn> columns;
  std::vector<KeyPart> parts;
  int words = 0;
};

// Up to kVectorRows keys, a word of one part of all of them side by side.
struct KeyVector {
  int64_t rows = 0;
  std::vector<const uint64_t*> parts;  // one per part of the layout
  std::vector<const uint8_t*> valid;  // one per column: a byte per row, or null where none of them is NULL
};

// Numbers in an array whose index is computed from the key. Does not own the keys.
class KeyDomain {
 public:
  struct Axis {
    uint64_t base = 0;  // the smallest value
    uint64_t span = 0;  // codes on this axis: the values', and 0 for NULL if it is nullable
    uint64_t stride = 0;
    bool nullable = false;
  };
  struct Range {
    int64_t low = INT64_MAX;  // low > high: no value at all
    int64_t high = INT64_MIN;
  };

  bool active() const { return !axes_.empty(); }
  int64_t nbytes() const { return cells_.nbytes(); }
  uint32_t* cells() { return cells_.data(); }
  const uint32_t* cells() const { return cells_.data(); }

  enum class Covered { No, Anew, Further };
  // Covers `ranges` and what it covered before, with room to grow, in at most `limit` cells. `Anew`: all cells are empty; `Further`:
  // cells keep their place and what they hold; `No`: it would take more, and nothing has changed.
  Covered cover(const std::vector<Range>& ranges, const std::vector<bool>& nullable, uint64_t limit);
  // Fills in the cell of each key, kept below the last one, which stands for all keys outside. Returns whether any is outside.
  bool locate(const KeyLayout& layout, const KeyVector& keys, uint64_t* cells) const;
  void clear() noexcept {
    axes_.clear();
    cells_.clear();
  }

 private:
  bool extends(const std::vector<Axis>& axes) const;
  void locate_each(const KeyLayout& layout, const KeyVector& keys, uint64_t* cells) const;

  std::vector<Axis> axes_;
  Cells<uint32_t> cells_;
};

class PackedIndex {
 public:
  explicit PackedIndex(const KeyLayout& layout);

  uint32_t size() const { return static_cast<uint32_t>(layout_.words == 1 ? keys_.size() : keys_.size() / layout_.words); }
  int64_t nbytes() const { return keys_.nbytes() + slots_.nbytes() + domain_.nbytes(); }
  bool dense() const { return domain_.active(); }

  // Says that `rows` more keys are to come, which is what pays for a dense index.
  void expect(int64_t rows) { rows_seen_ += rows; }

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
  static constexpr uint64_t kCellsPerRow = 8;
  static constexpr uint64_t kCellsMin = 1 << 16;

  uint64_t cells_limit() const;
  bool grow_domain(const KeyVector& keys);
  bool become_dense();
  void leave_domain();
  void fill_domain();
  void add_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries);
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
  bool can_be_dense_;
  bool has_null_bits_ = false;
  std::vector<bool> nullable_;
  Cells<uint64_t> keys_;
  Slots slots_;
  KeyDomain domain_;
  int64_t rows_seen_ = 0;
  int64_t dense_check_ = 4096;  // the size at which to look again whether the keys are dense
  uint32_t unlisted_ = kNoEntry;
};

}  // namespace bireme
