#include "kernels/window_places.hpp"

#include "arrow/errors.hpp"
#include "kernels/sort_rows.hpp"

namespace bireme {

namespace {

// Whether two rows differ in one of the pieces from `first` up to `end`.
class Differs {
 public:
  Differs(const std::vector<SortPiece>& pieces, size_t first, size_t end)
      : pieces_(pieces), first_(first), end_(end) {}

  bool operator()(int64_t left, int64_t right) const {
    for (size_t index = first_; index < end_; ++index) {
      const SortPiece& piece = pieces_[index];
      if (piece.codes[left] != piece.codes[right]) return true;
      if (piece.text == nullptr || !piece.text->is_valid(left)) continue;
      if (piece.text->string_at(left) != piece.text->string_at(right)) return true;
    }
    return false;
  }

 private:
  const std::vector<SortPiece>& pieces_;
  size_t first_;
  size_t end_;
};

// Where the partition and the peers of a position begin, and how many groups of peers there were.
struct Runs {
  int64_t partition = 0;
  int64_t peers = 0;
  int64_t dense = 1;
};

class Writer {
 public:
  Writer(const std::vector<Place>& places, std::vector<OutputColumn>& columns) {
    for (size_t index = 0; index < places.size(); ++index) {
      int64_t*& values = values_[static_cast<size_t>(places[index])];
      if (values != nullptr) throw EngineBug("a place of rows in a window is asked for twice");
      values = columns[index].values.as<int64_t>();
    }
  }

  // What is known when the row is met.
  void row(int64_t row, int64_t position, const Runs& runs) {
    put(Place::Number, row, position - runs.partition + 1);
    put(Place::Rank, row, runs.peers - runs.partition + 1);
    put(Place::DenseRank, row, runs.dense);
  }

  // What is known when the next run begins: for the rows of a run that ends before `end`.
  void run(Place place, const int64_t* order, int64_t begin, int64_t end, int64_t partition) {
    if (values_[static_cast<size_t>(place)] == nullptr) return;
    for (int64_t position = begin; position < end; ++position) put(place, order[position], end - partition);
  }

 private:
  void put(Place place, int64_t row, int64_t value) {
    if (int64_t* values = values_[static_cast<size_t>(place)]) values[row] = value;
  }

  int64_t* values_[5] = {};
};

void write_places(const int64_t* order, int64_t rows, const Differs& partition_differs,
                  const Differs& peer_differs, Writer& writer) {
  Runs runs;
  const auto end_runs = [&](int64_t end, bool partition_ends) {
    writer.run(Place::RowsUpToPeers, order, runs.peers, end, runs.partition);
    if (partition_ends) writer.run(Place::PartitionRows, order, runs.partition, end, runs.partition);
  };
  for (int64_t position = 0; position < rows; ++position) {
    const int64_t row = order[position];
    if (position > 0) {
      const int64_t before = order[position - 1];
      if (partition_differs(before, row)) {
        end_runs(position, true);
        runs = {position, position, 1};
      } else if (peer_differs(before, row)) {
        end_runs(position, false);
        runs.peers = position;
        ++runs.dense;
      }
    }
    writer.row(row, position, runs);
  }
  end_runs(rows, true);
}

}  // namespace

std::vector<OutputColumn> window_places(const Batch& batch, const std::vector<SortKey>& keys,
                                        size_t partition_keys, const std::vector<Place>& places) {
  if (partition_keys > keys.size()) throw EngineBug("a window has more partition keys than keys");
  const int64_t rows = batch.rows();
  std::vector<OutputColumn> columns(places.size());
  for (OutputColumn& column : columns) {
    column.type = simple_type(Kind::Int64);
    column.rows = rows;
    column.values = Buffer(rows * 8);
  }
  const OutputColumn order = sort_rows(batch, keys, -1);
  std::vector<SortPiece> pieces;
  size_t partition_pieces = 0;
  for (size_t index = 0; index < keys.size(); ++index) {
    append_sort_pieces(batch.columns()[index], keys[index], false, pieces);
    if (index + 1 == partition_keys) partition_pieces = pieces.size();
  }
  Writer writer(places, columns);
  write_places(order.values.as<int64_t>(), rows, Differs(pieces, 0, partition_pieces),
               Differs(pieces, partition_pieces, pieces.size()), writer);
  return columns;
}

}  // namespace bireme
