// How key columns are packed into words, and arrays addressed by such keys.
//
// Rule: a layout depends on types alone. A domain gives every key within known ranges a cell of its own;
// which ranges are worth their cells is for the caller to say.
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
  bool nullable = true;   // whether NULL is a key; if not, rows with a NULL here are in no index
  bool interned = false;  // a string that stands as its number in an index of its own
  int part = 0;           // its first; a wide decimal has two
  int null_word = -1;     // the place of the bit that says NULL, if there is one
  int null_shift = 0;
};

struct KeyLayout {
  static constexpr int kWordsMax = 8;

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
  std::vector<const uint8_t*> valid;   // one per column: a byte per row, or null where none of them is NULL
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
  // Covers `ranges` and what it covered before, with room to grow, in at most `limit` cells. `Anew`: all
  // cells are empty; `Further`: cells keep their place and what they hold; `No`: it would take more, and
  // nothing has changed.
  Covered cover(const std::vector<Range>& ranges, const std::vector<bool>& nullable, uint64_t limit);
  // Fills in the cell of each key, kept below the last one, which stands for all keys outside. Returns
  // whether any is outside.
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

}  // namespace bireme
