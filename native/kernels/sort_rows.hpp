// The order of rows by several keys.
#pragma once

#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

// As many of the most significant bits of a row's keys as fit into one word, and the row.
struct SortEntry {
  uint64_t code;
  uint32_t row;

  friend bool operator<(const SortEntry& left, const SortEntry& right) {
    return left.code != right.code ? left.code < right.code : left.row < right.row;
  }
};

// The rows in order. Where `is_decided`, codes alone tell which rows differ in their keys; the keys from
// number `split` on then take the lowest `split_bits` of them. The pieces are those of the keys, those before
// key `split` first.
struct SortedRows {
  Cells<SortEntry> entries;
  std::vector<SortPiece> pieces;
  size_t split_pieces = 0;
  int split_bits = 0;
  bool is_decided = false;
};

// Rows that `are_in_order` as they come are not sorted.
SortedRows sorted_rows(const Batch& batch, const std::vector<SortKey>& keys, size_t split, bool are_in_order);

// The positions of the rows in order, as int64; rows with equal keys keep their order. With `limit` >= 0 only
// the first that many.
OutputColumn sort_rows(const Batch& batch, const std::vector<SortKey>& keys, int64_t limit);

}  // namespace bireme
