// Build rows with equal keys, as chains in the order of rows.
//
// Rule: a link is a row, and says whether another row follows. So a table of distinct keys reads and writes
// no chain at all, and neither does any key that occurs once.
#pragma once

#include <cstdint>
#include <mutex>

#include "kernels/group_cells.hpp"

namespace bireme {

inline constexpr uint32_t kNoRow = 0xFFFFFFFF;
inline constexpr uint32_t kMoreRows = 0x80000000;
inline constexpr int64_t kBuildRowsMax = 0x7FFFFFFF;

constexpr uint32_t row_of(uint32_t link) {
  return link & ~kMoreRows;
}
// Of a link that is not kNoRow.
constexpr bool has_more(uint32_t link) {
  return (link & kMoreRows) != 0;
}

class Chains {
 public:
  explicit Chains(int64_t rows) : rows_(rows) {}

  int64_t rows() const { return rows_; }
  bool open() const { return !next_.empty(); }
  int64_t nbytes() const { return next_.nbytes(); }
  // The link that follows a row whose own link has more.
  const uint32_t* next() const { return next_.data(); }

  // Where links are to be written; made by the first that asks. Any number of threads may.
  uint32_t* make() {
    std::call_once(once_, [this] { next_.resize(rows_); });
    return next_.data();
  }

 private:
  int64_t rows_;
  std::once_flag once_;
  Cells<uint32_t> next_;
};

// One part of a build, which puts rows before those that are there already: rows come last to first.
class ChainWriter {
 public:
  explicit ChainWriter(Chains& chains) : chains_(chains) {}

  uint32_t before(uint32_t head, uint32_t row) {
    if (head == kNoRow) return row;
    if (next_ == nullptr) next_ = chains_.make();
    next_[row] = head;
    return row | kMoreRows;
  }

 private:
  Chains& chains_;
  uint32_t* next_ = nullptr;
};

}  // namespace bireme
