// Splitting the rows of a batch by the hash of a key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"

namespace bireme {

// The rows of every partition, in their order, partition after partition.
struct Partitioning {
  Buffer rows;                   // int32
  std::vector<int64_t> offsets;  // partitions + 1: where each begins in `rows`
};

// Part number `index` of `total` equal ones of all hashes. `total` times the partitions it is cut into must
// be below 2^32.
struct HashRange {
  uint32_t index = 0;
  uint32_t total = 1;
};

// `keys` are the columns that are hashed; `within` has the hashes of all rows. Throws Unsupported for keys
// without a hash, EngineBug for a row outside.
Partitioning partition_rows(std::span<const Column* const> keys, int64_t rows, uint32_t partitions,
                            HashRange within = {});

// The rows by the partition that is given for each. There are at most INT32_MAX rows.
Partitioning partition_by(std::span<const uint32_t> partition_of_row, uint32_t partitions);

// The columns of each partition; every partition owns its memory, so that it can be given up alone.
// Throws Unsupported for columns of Kind::Other.
std::vector<std::vector<OutputColumn>> split(const std::vector<Column>& columns,
                                             const Partitioning& partitioning);

}  // namespace bireme
