// The rows of windows in their order, and where partitions and peers begin.
//
// Rule: keys are those of the partition, then those of the order; equality is that of sorting, so NULL equals
// NULL and NaN equals NaN. Rows with equal keys stay as they come.
#pragma once

#include <vector>

#include "arrow/batch.hpp"
#include "kernels/sort_rows.hpp"

namespace bireme {

// Positions are those in the order; the last beginning of both lists is the number of rows.
struct WindowRuns {
  Cells<SortEntry> order;
  Cells<uint32_t> partitions;
  Cells<uint32_t> peers;
};

// The first `partition_keys` of the keys divide the rows, the others order them. Rows that `are_in_order` are not sorted.
WindowRuns window_runs(const Batch& batch, const std::vector<SortKey>& keys, size_t partition_keys,
                       bool are_in_order);

}  // namespace bireme
