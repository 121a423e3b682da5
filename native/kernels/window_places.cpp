#include "kernels/window_places.hpp"

#include "arrow/errors.hpp"
#include "kernels/window_runs.hpp"

namespace bireme {

namespace {

class Writer {
 public:
  Writer(const std::vector<Place>& places, std::vector<OutputColumn>& columns) {
    for (size_t index = 0; index < places.size(); ++index) {
      int64_t*& values = values_[static_cast<size_t>(places[index])];
      if (values != nullptr) throw EngineBug("a place of rows in a window is asked for twice");
      values = columns[index].values.as<int64_t>();
    }
  }

  void put(Place place, int64_t row, int64_t value) {
    if (int64_t* values = values_[static_cast<size_t>(place)]) values[row] = value;
  }

 private:
  int64_t* values_[5] = {};
};

void write_places(const WindowRuns& runs, Writer& writer) {
  int64_t peer = 0;
  for (int64_t partition = 0; partition + 1 < runs.partitions.size(); ++partition) {
    const int64_t begin = runs.partitions[partition];
    const int64_t end = runs.partitions[partition + 1];
    for (int64_t dense = 1; runs.peers[peer] < end; ++peer, ++dense) {
      const int64_t first = runs.peers[peer];
      const int64_t last = runs.peers[peer + 1];
      for (int64_t position = first; position < last; ++position) {
        const int64_t row = runs.order[position].row;
        writer.put(Place::Number, row, position - begin + 1);
        writer.put(Place::Rank, row, first - begin + 1);
        writer.put(Place::DenseRank, row, dense);
        writer.put(Place::PartitionRows, row, end - begin);
        writer.put(Place::RowsUpToPeers, row, last - begin);
      }
    }
  }
}

}  // namespace

std::vector<OutputColumn> window_places(const Batch& batch, const std::vector<SortKey>& keys,
                                        size_t partition_keys, const std::vector<Place>& places,
                                        bool are_in_order) {
  const int64_t rows = batch.rows();
  std::vector<OutputColumn> columns(places.size());
  for (OutputColumn& column : columns) {
    column.type = simple_type(Kind::Int64);
    column.rows = rows;
    column.values = Buffer(rows * 8);
  }
  const WindowRuns runs = window_runs(batch, keys, partition_keys, are_in_order);
  Writer writer(places, columns);
  if (rows > 0) write_places(runs, writer);
  return columns;
}

}  // namespace bireme
