#include "kernels/window_runs.hpp"

#include <utility>

#include "arrow/errors.hpp"

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

template <typename Differ>
void find_runs(WindowRuns& runs, const Differ& partition_differs, const Differ& peer_differs) {
  const SortEntry* order = runs.order.data();
  const auto rows = static_cast<uint32_t>(runs.order.size());
  for (uint32_t position = 0; position < rows; ++position) {
    const bool is_first = position == 0 || partition_differs(order[position - 1], order[position]);
    if (is_first) runs.partitions.push_back(position);
    if (is_first || peer_differs(order[position - 1], order[position])) runs.peers.push_back(position);
  }
  runs.partitions.push_back(rows);
  runs.peers.push_back(rows);
}

// All rows are one partition, and peers.
WindowRuns without_keys(int64_t rows) {
  WindowRuns runs;
  runs.order.resize(rows);
  for (int64_t row = 0; row < rows; ++row) runs.order[row] = {0, static_cast<uint32_t>(row)};
  find_runs(runs, CodesDiffer(64), CodesDiffer(64));
  return runs;
}

}  // namespace

WindowRuns window_runs(const Batch& batch, const std::vector<SortKey>& keys, size_t partition_keys,
                       bool are_in_order) {
  if (partition_keys > keys.size()) throw EngineBug("a window has more partition keys than keys");
  if (keys.empty()) return without_keys(batch.rows());
  SortedRows sorted = sorted_rows(batch, keys, partition_keys, are_in_order);
  WindowRuns runs;
  std::swap(runs.order, sorted.entries);
  if (sorted.is_decided) {
    find_runs(runs, CodesDiffer(sorted.split_bits), CodesDiffer(0));
  } else {
    const size_t split = sorted.split_pieces;
    find_runs(runs, Differs(sorted.pieces, 0, split), Differs(sorted.pieces, split, sorted.pieces.size()));
  }
  return runs;
}

}  // namespace bireme
