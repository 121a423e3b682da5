// What window functions make of the rows in a frame: counts, sums, and the rows that hold a value.
//
// Rule: both ends of a frame only move forward within a partition, so every row comes in once and goes once. Exact sums and
// counts take back what goes; sums of floats and extremes are folded from two sides (the queue of two stacks), which takes
// two steps a row and never subtracts. Functions that pick one of the values give the row it is in, whatever its type.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/window_runs.hpp"

namespace bireme {

enum class WindowFunction {
  Count,     // int64
  Sum,       // of exact numbers decimal128 with 38 digits, of floats float64; NULL where there are no values
  Mean,   // float64, of exact numbers from their exact sum; NULL where there are no values
  Smallest,  // the row (int64) of the value, NULL where there are none
  Largest,
  Nth,    // the row that is `number` in the frame: from 1, or at its end where it is -1
  Shift,  // the row `number` further on in the partition; outside of it NULL, or the row itself plus all rows
};

// What bounds a frame: the partition, the peers of the row, or a row so many places further on.
enum class FrameEdge { Partition, Peers, Offset };

struct FrameEnd {
  FrameEdge edge = FrameEdge::Partition;
  int64_t offset = 0;
};

struct WindowTask {
  WindowFunction function = WindowFunction::Count;
  int argument = -1;  // column of the inputs, of which rows without a value do not count; -1: none
  int filter = -1;    // column of the inputs: rows count where it is true; -1: none
  FrameEnd start;
  FrameEnd end;
  int64_t number = 0;
  bool is_own_outside = false;
};

// A column for each task, in the order of the rows of both batches. Sums that 38 digits might not hold are not made: their
// columns then are of Kind::Null.
std::vector<OutputColumn> window_frames(const WindowRuns& runs, const Batch& inputs,
                                        const std::vector<WindowTask>& tasks);

}  // namespace bireme
