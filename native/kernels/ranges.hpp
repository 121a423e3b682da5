// Splitting the rows of a batch by where they fall among splitters, in an order by several keys.
//
// Rule: the order is that of sort_rows. Rows of range r do not come before splitter r - 1 and come before
// splitter r, so ranges that are sorted one by one are sorted as a whole; rows with equal keys fall into one
// range.
#pragma once

#include <vector>

#include "arrow/batch.hpp"
#include "kernels/partition.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

// `keys` and `splitters` have a column per key, of the same types; the splitters are in order. There is one
// range more than there are splitters. Throws Unsupported for keys that have no native order.
Partitioning partition_by_ranges(const Batch& keys, const Batch& splitters,
                                 const std::vector<SortKey>& order);

}  // namespace bireme
