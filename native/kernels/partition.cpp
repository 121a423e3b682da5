#include "kernels/partition.hpp"

#include "arrow/errors.hpp"
#include "kernels/hash.hpp"
#include "kernels/take.hpp"

namespace bireme {

namespace {

// The rows by partition, where `partition_of_row` tells it of each.
template <typename Of>
Partitioning arranged(int64_t rows, uint32_t partitions, Of partition_of_row) {
  Partitioning result;
  result.offsets.assign(partitions + 1, 0);
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t partition = partition_of_row(row);
    if (partition >= partitions)
      throw EngineBug("a row to be partitioned is outside of the range that is split");
    ++result.offsets[partition + 1];
  }
  for (uint32_t partition = 0; partition < partitions; ++partition) {
    result.offsets[partition + 1] += result.offsets[partition];
  }
  std::vector<int64_t> next(result.offsets.begin(), result.offsets.end() - 1);
  result.rows = Buffer(rows * 4);
  int32_t* out = result.rows.as<int32_t>();
  for (int64_t row = 0; row < rows; ++row) out[next[partition_of_row(row)]++] = static_cast<int32_t>(row);
  return result;
}

}  // namespace

Partitioning partition_rows(std::span<const Column* const> keys, int64_t rows, uint32_t partitions,
                            HashRange within) {
  if (uint64_t{partitions} * within.total > UINT32_MAX)
    throw EngineBug("a range of hashes is cut too finely");
  if (rows > INT32_MAX) throw Unsupported("a batch has more than 2147483647 rows");
  Buffer hashes(rows * 8);
  hash_rows(keys, rows, hashes.as<uint64_t>());
  const uint64_t* hash = hashes.as<uint64_t>();
  const uint32_t total = partitions * within.total;
  const uint32_t first = partitions * within.index;
  return arranged(rows, partitions, [=](int64_t row) { return partition_of(hash[row], total) - first; });
}

Partitioning partition_by(std::span<const uint32_t> partition_of_row, uint32_t partitions) {
  const uint32_t* given = partition_of_row.data();
  return arranged(static_cast<int64_t>(partition_of_row.size()), partitions,
                  [=](int64_t row) { return given[row]; });
}

std::vector<std::vector<OutputColumn>> split(const std::vector<Column>& columns,
                                             const Partitioning& partitioning) {
  std::vector<std::vector<OutputColumn>> parts(partitioning.offsets.size() - 1);
  for (size_t part = 0; part < parts.size(); ++part) {
    Column rows;
    rows.type = simple_type(Kind::Int32);
    rows.values = partitioning.rows.as<int32_t>() + partitioning.offsets[part];
    rows.rows = partitioning.offsets[part + 1] - partitioning.offsets[part];
    for (const Column& column : columns) parts[part].push_back(take(column, rows));
  }
  return parts;
}

}  // namespace bireme
