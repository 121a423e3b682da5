// Sort keys as codes: unsigned words whose order is the order asked for, whatever the type and direction.
//
// Rule: a key column becomes pieces, most significant first: a bit that says NULL (if there are any), then its value as one
// or two words. A piece is shifted down to start at 0 and says how many bits it needs. Strings give their first bytes behind
// what all of them start with, and where that does not decide, `text` is compared.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/column.hpp"
#include "kernels/group_cells.hpp"

namespace bireme {

struct SortKey {
  bool descending = false;
  bool nulls_first = false;
};

struct SortPiece {
  Cells<uint64_t> codes;  // one per row
  int bits = 0;
  // For strings whose code does not decide: the column to compare where codes are equal.
  const Column* text = nullptr;
  bool descending = false;
};

// Appends the pieces of a key column. One that is `alone` need not say in how few bits it would fit. Throws Unsupported for
// Kind::Other.
void append_sort_pieces(const Column& column, SortKey key, bool alone, std::vector<SortPiece>& pieces);

}  // namespace bireme
