// Going through the frames of all rows, partition by partition, and what kernels of frames share on the way.
#pragma once

#include <algorithm>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/window_frames.hpp"

namespace bireme::windows {

// What a frame's end is for the row at a position: `own` is its place or, of ends, the one behind it.
inline int64_t edge_at(const FrameEnd& end, int64_t partition, int64_t peers, int64_t own) {
  switch (end.edge) {
    case FrameEdge::Partition:
      return partition;
    case FrameEdge::Peers:
      return peers;
    case FrameEdge::Offset:
      return own + end.offset;
  }
  throw EngineBug("a frame has an end of no known kind");
}

// The end, no farther away than any row is.
inline FrameEnd within(FrameEnd end, int64_t rows) {
  end.offset = std::clamp(end.offset, -rows - 1, rows + 1);
  return end;
}

// Calls start(begin, end) for each partition, then visit(position, low, high) for each of its rows.
template <typename Start, typename Visit>
void each_frame(const WindowRuns& runs, const WindowTask& task, Start start, Visit visit) {
  const int64_t rows = runs.order.size();
  const FrameEnd from = within(task.start, rows);
  const FrameEnd to = within(task.end, rows);
  int64_t peer = 0;
  for (int64_t partition = 0; partition + 1 < runs.partitions.size(); ++partition) {
    const int64_t begin = runs.partitions[partition];
    const int64_t end = runs.partitions[partition + 1];
    start(begin, end);
    for (; runs.peers[peer] < end; ++peer) {
      const int64_t first = runs.peers[peer];
      const int64_t last = runs.peers[peer + 1];
      for (int64_t position = first; position < last; ++position) {
        const int64_t low = std::clamp(edge_at(from, begin, first, position), begin, end);
        const int64_t high = std::clamp(edge_at(to, end, last, position + 1), low, end);
        visit(position, low, high);
      }
    }
  }
}

// Which positions of the order count: those with a value that the filter keeps. Empty: all.
Cells<uint8_t> counted_positions(const WindowRuns& runs, const Batch& inputs, const WindowTask& task);

inline bool counts(const Cells<uint8_t>& counted, int64_t position) {
  return counted.empty() || counted[position] != 0;
}

// A column whose rows are filled in the order of windows.
class Output {
 public:
  Output(Type type, int64_t width, int64_t rows) {
    column_.type = std::move(type);
    column_.rows = rows;
    column_.null_count = rows;
    column_.values = Buffer::zeroed(rows * width);
    column_.validity = Buffer::zeroed(bitmap_bytes(rows));
  }

  template <typename T>
  void put(int64_t row, T value) {
    column_.values.as<T>()[row] = value;
    column_.validity.as<uint8_t>()[row >> 3] |= static_cast<uint8_t>(1U << (row & 7));
    --column_.null_count;
  }

  OutputColumn take() {
    if (column_.null_count == 0) column_.validity.reset();
    return std::move(column_);
  }

 private:
  OutputColumn column_;
};

inline Output rows_output(int64_t rows) {
  return Output(simple_type(Kind::Int64), 8, rows);
}

// The values at the positions of the order, those that do not count as 0.
template <typename T, typename Read>
Cells<T> gathered(const WindowRuns& runs, const Cells<uint8_t>& counted, Read read) {
  Cells<T> values;
  const int64_t rows = runs.order.size();
  values.resize(rows);
  for (int64_t position = 0; position < rows; ++position)
    values[position] = counts(counted, position) ? read(runs.order[position].row) : T{};
  return values;
}

// The fold of the rows of a frame that moves on: of those behind `middle` as they came in, and of those before
// it from each of them up to there.
template <typename State, typename Fold>
class Queue {
 public:
  Queue(State nothing, Fold fold, int64_t rows, bool rows_go)
      : nothing_(nothing), fold_(fold), behind_(nothing) {
    if (rows_go) suffixes_.resize(rows);
  }

  void start(int64_t begin) {
    middle_ = next_ = begin;
    behind_ = nothing_;
  }

  // The fold of [low, high), neither of which ever goes back; `at` gives the state of a row.
  template <typename At>
  State over(int64_t low, int64_t high, At at) {
    if (low >= next_ && low > middle_) {
      middle_ = next_ = low;
      behind_ = nothing_;
    }
    for (; next_ < high; ++next_) behind_ = fold_(behind_, at(next_));
    if (suffixes_.empty() || low == high) return low == high ? nothing_ : behind_;
    if (low >= middle_) turn(low, at);
    return fold_(suffixes_[low], behind_);
  }

 private:
  template <typename At>
  void turn(int64_t low, At at) {
    State state = nothing_;
    for (int64_t position = next_ - 1; position >= low; --position) {
      state = fold_(at(position), state);
      suffixes_[position] = state;
    }
    middle_ = next_;
    behind_ = nothing_;
  }

  State nothing_;
  Fold fold_;
  Cells<State> suffixes_;
  State behind_;
  int64_t middle_ = 0;
  int64_t next_ = 0;
};

inline bool rows_go(const WindowTask& task) {
  return task.start.edge != FrameEdge::Partition;
}

// The functions that give a row: of an extreme value, and at a place.
OutputColumn pick_extreme(const WindowRuns& runs, const Batch& inputs, const WindowTask& task);
OutputColumn pick_nth(const WindowRuns& runs, const WindowTask& task);
OutputColumn pick_shifted(const WindowRuns& runs, const WindowTask& task);

}  // namespace bireme::windows
