// Where each row stands in its window: what ranking functions and counts of partitions are made of.
//
// Rule: keys, and the order of rows, are those of `window_runs`.
#pragma once

#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

enum class Place {
  Number,         // of the row in its partition, from 1
  Rank,           // the number of the first row with its keys
  DenseRank,      // the number of its keys among those of the partition
  PartitionRows,  // how many rows the partition has
  RowsUpToPeers,  // the number of the last row with its keys
};

// An int64 column for each place asked for, in the order of the batch's rows. The first `partition_keys` of
// the keys divide the rows, the others order them. Rows that `are_in_order` are not sorted.
std::vector<OutputColumn> window_places(const Batch& batch, const std::vector<SortKey>& keys,
                                        size_t partition_keys, const std::vector<Place>& places,
                                        bool are_in_order);

}  // namespace bireme
