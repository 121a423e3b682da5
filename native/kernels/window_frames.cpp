#include "kernels/window_frames.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/decimal.hpp"
#include "kernels/group_read.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
// Sums below it are exact in 128 bits, whatever is added before something is taken back.
constexpr double kSumMax = 9e37;

int64_t edge_at(const FrameEnd& end, int64_t partition, int64_t peers, int64_t own) {
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

FrameEnd within(FrameEnd end, int64_t rows) {
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
Cells<uint8_t> counted_positions(const WindowRuns& runs, const Batch& inputs, const WindowTask& task) {
  Cells<uint8_t> counted;
  const int64_t rows = runs.order.size();
  const auto keep = [&](auto is_kept) {
    if (counted.empty()) counted.resize(rows, 1);
    for (int64_t position = 0; position < rows; ++position)
      counted[position] &= static_cast<uint8_t>(is_kept(runs.order[position].row));
  };
  if (task.argument >= 0) {
    const Column& column = inputs[task.argument];
    const Column* dictionary = column.dictionary;
    if (column.type.kind == Kind::Null) {
      keep([](int64_t) { return false; });
    } else if (dictionary != nullptr && dictionary->may_have_nulls()) {
      keep([&](int64_t row) { return column.is_valid(row) && dictionary->is_valid(column.codes()[row]); });
    } else if (column.may_have_nulls()) {
      keep([&](int64_t row) { return column.is_valid(row); });
    }
  }
  if (task.filter >= 0) {
    const Column& filter = inputs[task.filter];
    if (filter.type.kind != Kind::Bool) throw EngineBug("the filter of a window function is not boolean");
    keep([&](int64_t row) { return filter.is_valid(row) && filter.bool_at(row); });
  }
  return counted;
}

bool counts(const Cells<uint8_t>& counted, int64_t position) {
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

Output rows_output(int64_t rows) {
  return Output(simple_type(Kind::Int64), 8, rows);
}

// ---------------------------------------------------------------- counts and exact sums

OutputColumn count_rows(const WindowRuns& runs, const Batch& inputs, const WindowTask& task) {
  const Cells<uint8_t> counted = counted_positions(runs, inputs, task);
  Output output = rows_output(runs.order.size());
  int64_t first = 0, next = 0, count = 0;
  each_frame(
      runs, task,
      [&](int64_t begin, int64_t) {
        first = next = begin;
        count = 0;
      },
      [&](int64_t position, int64_t low, int64_t high) {
        for (; next < high; ++next) count += counts(counted, next);
        for (; first < low; ++first) count -= counts(counted, first);
        output.put(runs.order[position].row, count);
      });
  return output.take();
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

template <typename T>
OutputColumn sum_exactly(const WindowRuns& runs, const WindowTask& task, const Cells<uint8_t>& counted,
                         const Cells<T>& values, int scale) {
  const bool is_mean = task.function == WindowFunction::Mean;
  const auto unit = static_cast<double>(power_of_ten(scale));
  Output output = is_mean ? Output(simple_type(Kind::Float64), 8, runs.order.size())
                          : Output(decimal128_type(38, scale), 16, runs.order.size());
  int64_t first = 0, next = 0, count = 0;
  int128 sum = 0;
  each_frame(
      runs, task,
      [&](int64_t begin, int64_t) {
        first = next = begin;
        count = 0;
        sum = 0;
      },
      [&](int64_t position, int64_t low, int64_t high) {
        for (; next < high; ++next) {
          sum += values[next];
          count += counts(counted, next);
        }
        for (; first < low; ++first) {
          sum -= values[first];
          count -= counts(counted, first);
        }
        if (count == 0) return;
        const int64_t row = runs.order[position].row;
        if (is_mean) {
          output.put(row, static_cast<double>(sum) / (static_cast<double>(count) * unit));
        } else {
          output.put(row, sum);
        }
      });
  return output.take();
}

bool may_overflow(const Cells<int128>& values) {
  double largest = 0;
  for (int64_t position = 0; position < values.size(); ++position)
    largest = std::max(largest, std::fabs(static_cast<double>(values[position])));
  return largest * static_cast<double>(values.size()) > kSumMax;
}

// ---------------------------------------------------------------- folds that cannot be undone

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

bool rows_go(const WindowTask& task) {
  return task.start.edge != FrameEdge::Partition;
}

OutputColumn sum_floats(const WindowRuns& runs, const Batch& inputs, const WindowTask& task) {
  const Column& column = inputs[task.argument];
  const Cells<uint8_t> counted = counted_positions(runs, inputs, task);
  const Cells<double> values = gathered<double>(runs, counted, [&](int64_t row) {
    return column.type.kind == Kind::Float32 ? static_cast<double>(column.as<float>()[row])
                                             : column.as<double>()[row];
  });
  Output output(simple_type(Kind::Float64), 8, runs.order.size());
  const bool is_mean = task.function == WindowFunction::Mean;
  const auto add = [](double left, double right) { return left + right; };
  Queue<double, decltype(add)> queue(0.0, add, runs.order.size(), rows_go(task));
  int64_t first = 0, next = 0, count = 0;
  each_frame(
      runs, task,
      [&](int64_t begin, int64_t) {
        queue.start(begin);
        first = next = begin;
        count = 0;
      },
      [&](int64_t position, int64_t low, int64_t high) {
        const double sum = queue.over(low, high, [&](int64_t at) { return values[at]; });
        for (; next < high; ++next) count += counts(counted, next);
        for (; first < low; ++first) count -= counts(counted, first);
        if (count == 0) return;
        output.put(runs.order[position].row, is_mean ? sum / static_cast<double>(count) : sum);
      });
  return output.take();
}

OutputColumn sum_values(const WindowRuns& runs, const Batch& inputs, const WindowTask& task) {
  const Column& column = inputs[task.argument];
  const Kind kind = column.type.kind;
  if (kind == Kind::Float32 || kind == Kind::Float64) return sum_floats(runs, inputs, task);
  const Cells<uint8_t> counted = counted_positions(runs, inputs, task);
  if (kind == Kind::Decimal128) {
    const int128* wide = column.as<int128>();
    const Cells<int128> values = gathered<int128>(runs, counted, [&](int64_t row) {
      int128 value;
      std::memcpy(&value, wide + row, sizeof value);
      return value;
    });
    if (may_overflow(values)) return null_column(runs.order.size());
    return sum_exactly(runs, task, counted, values, column.type.scale);
  }
  if (!is_word(kind)) throw EngineBug("a window cannot sum Arrow format '" + column.type.format + "'");
  Cells<uint64_t> words;
  words.resize(column.rows);
  read_words(column, 0, column.rows, words.data());
  const int scale = kind == Kind::Decimal64 ? column.type.scale : 0;
  if (kind == Kind::UInt64) {
    const auto values = gathered<uint64_t>(runs, counted, [&](int64_t row) { return words[row]; });
    return sum_exactly(runs, task, counted, values, scale);
  }
  const auto values =
      gathered<int64_t>(runs, counted, [&](int64_t row) { return static_cast<int64_t>(words[row]); });
  return sum_exactly(runs, task, counted, values, scale);
}

// Whether the value of a row comes before that of another, in the order that the pieces were made for.
class ValueBefore {
 public:
  explicit ValueBefore(const std::vector<SortPiece>& pieces) : pieces_(pieces) {}

  bool operator()(int64_t left, int64_t right) const {
    for (const SortPiece& piece : pieces_) {
      if (piece.codes[left] != piece.codes[right]) return piece.codes[left] < piece.codes[right];
      if (piece.text == nullptr) continue;
      const int order = piece.text->string_at(left).compare(piece.text->string_at(right));
      if (order != 0) return (order < 0) != piece.descending;
    }
    return false;
  }

 private:
  const std::vector<SortPiece>& pieces_;
};

// `before` compares two positions; a state is a position, or none.
template <typename Before>
OutputColumn pick_first(const WindowRuns& runs, const WindowTask& task, const Cells<uint8_t>& counted,
                        const Before& before) {
  const auto fold = [&](uint32_t left, uint32_t right) {
    if (left == kNone) return right;
    return right != kNone && before(right, left) ? right : left;
  };
  Output output = rows_output(runs.order.size());
  Queue<uint32_t, decltype(fold)> queue(kNone, fold, runs.order.size(), rows_go(task));
  const auto at = [&](int64_t position) {
    return counts(counted, position) ? static_cast<uint32_t>(position) : kNone;
  };
  each_frame(
      runs, task, [&](int64_t begin, int64_t) { queue.start(begin); },
      [&](int64_t position, int64_t low, int64_t high) {
        const uint32_t found = queue.over(low, high, at);
        if (found != kNone) output.put(runs.order[position].row, int64_t{runs.order[found].row});
      });
  return output.take();
}

OutputColumn pick_extreme(const WindowRuns& runs, const Batch& inputs, const WindowTask& task) {
  const Column& column = inputs[task.argument];
  const Cells<uint8_t> counted = counted_positions(runs, inputs, task);
  // Only rows with a value are compared, so it does not matter which have none.
  Column values = column;
  if (!column.is_dictionary()) values.validity = nullptr;
  std::vector<SortPiece> pieces;
  append_sort_pieces(values, {task.function == WindowFunction::Largest, false}, false, pieces);
  if (column.is_dictionary() && pieces.size() == 2) pieces.erase(pieces.begin());
  if (pieces.size() == 1 && pieces[0].text == nullptr) {
    const auto codes = gathered<uint64_t>(runs, counted, [&](int64_t row) { return pieces[0].codes[row]; });
    pieces.clear();
    return pick_first(runs, task, counted,
                      [&](uint32_t left, uint32_t right) { return codes[left] < codes[right]; });
  }
  const ValueBefore before(pieces);
  return pick_first(runs, task, counted, [&](uint32_t left, uint32_t right) {
    return before(runs.order[left].row, runs.order[right].row);
  });
}

// ---------------------------------------------------------------- rows at a place

OutputColumn pick_nth(const WindowRuns& runs, const WindowTask& task) {
  Output output = rows_output(runs.order.size());
  const int64_t number = std::min(task.number, runs.order.size() + 1);
  each_frame(
      runs, task, [](int64_t, int64_t) {},
      [&](int64_t position, int64_t low, int64_t high) {
        const int64_t at = number > 0 ? low + number - 1 : high - 1;
        if (at >= low && at < high) output.put(runs.order[position].row, int64_t{runs.order[at].row});
      });
  return output.take();
}

OutputColumn pick_shifted(const WindowRuns& runs, const WindowTask& task) {
  const int64_t rows = runs.order.size();
  const int64_t moved = std::clamp(task.number, -rows, rows);
  Output output = rows_output(rows);
  int64_t first = 0, last = 0;
  each_frame(
      runs, task,
      [&](int64_t begin, int64_t end) {
        first = begin;
        last = end;
      },
      [&](int64_t position, int64_t, int64_t) {
        const int64_t row = runs.order[position].row;
        const int64_t at = position + moved;
        if (at >= first && at < last) {
          output.put(row, int64_t{runs.order[at].row});
        } else if (task.is_own_outside) {
          output.put(row, rows + row);
        }
      });
  return output.take();
}

}  // namespace

std::vector<OutputColumn> window_frames(const WindowRuns& runs, const Batch& inputs,
                                        const std::vector<WindowTask>& tasks) {
  std::vector<OutputColumn> columns;
  for (const WindowTask& task : tasks) {
    switch (task.function) {
      case WindowFunction::Count:
        columns.push_back(count_rows(runs, inputs, task));
        break;
      case WindowFunction::Sum:
      case WindowFunction::Mean:
        columns.push_back(sum_values(runs, inputs, task));
        break;
      case WindowFunction::Smallest:
      case WindowFunction::Largest:
        columns.push_back(pick_extreme(runs, inputs, task));
        break;
      case WindowFunction::Nth:
        columns.push_back(pick_nth(runs, task));
        break;
      case WindowFunction::Shift:
        columns.push_back(pick_shifted(runs, task));
        break;
    }
  }
  return columns;
}

}  // namespace bireme
