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

  bool operator()(const SortEntry& left_entry, const SortEntry& right_entry) const {
    const int64_t left = left_entry.row;
    const int64_t right = right_entry.row;
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

// The same by codes that tell everything.
class CodesDiffer {
 public:
  explicit CodesDiffer(int shift) : shift_(shift) {}

  bool operator()(const SortEntry& left, const SortEntry& right) const {
    // All bits, where there are 64, are those of keys that are not looked at here.
    return shift_ < 64 && (left.code ^ right.code) >> shift_ != 0;
  }

 private:
  int shift_;
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
  void run(Place place, const SortEntry* order, int64_t begin, int64_t end, int64_t partition) {
    if (values_[static_cast<size_t>(place)] == nullptr) return;
    for (int64_t position = begin; position < end; ++position)
      put(place, order[position].row, end - partition);
  }

 private:
  void put(Place place, int64_t row, int64_t value) {
    if (int64_t* values = values_[static_cast<size_t>(place)]) values[row] = value;
  }

  int64_t* values_[5] = {};
};

template <typename Differ>
void write_places(const Cells<SortEntry>& entries, const Differ& partition_differs,
                  const Differ& peer_differs, Writer& writer) {
  const SortEntry* order = entries.data();
  const int64_t rows = entries.size();
  Runs runs;
  const auto end_runs = [&](int64_t end, bool partition_ends) {
    writer.run(Place::RowsUpToPeers, order, runs.peers, end, runs.partition);
    if (partition_ends) writer.run(Place::PartitionRows, order, runs.partition, end, runs.partition);
  };
  for (int64_t position = 0; position < rows; ++position) {
    if (position > 0) {
      const SortEntry& before = order[position - 1];
      if (partition_differs(before, order[position])) {
        end_runs(position, true);
        runs = {position, position, 1};
      } else if (peer_differs(before, order[position])) {
        end_runs(position, false);
        runs.peers = position;
        ++runs.dense;
      }
    }
    writer.row(order[position].row, position, runs);
  }
  end_runs(rows, true);
}

}  // namespace

std::vector<OutputColumn> window_places(const Batch& batch, const std::vector<SortKey>& keys,
                                        size_t partition_keys, const std::vector<Place>& places,
                                        bool are_in_order) {
  if (partition_keys > keys.size()) throw EngineBug("a window has more partition keys than keys");
  const int64_t rows = batch.rows();
  std::vector<OutputColumn> columns(places.size());
  for (OutputColumn& column : columns) {
    column.type = simple_type(Kind::Int64);
    column.rows = rows;
    column.values = Buffer(rows * 8);
  }
  const SortedRows sorted = sorted_rows(batch, keys, partition_keys, are_in_order);
  Writer writer(places, columns);
  if (sorted.is_decided) {
    write_places(sorted.entries, CodesDiffer(sorted.split_bits), CodesDiffer(0), writer);
  } else {
    const size_t split = sorted.split_pieces;
    write_places(sorted.entries, Differs(sorted.pieces, 0, split),
                 Differs(sorted.pieces, split, sorted.pieces.size()), writer);
  }
  return columns;
}

}  // namespace bireme
