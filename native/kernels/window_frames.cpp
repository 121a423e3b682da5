#include "kernels/window_frames.hpp"

#include <cmath>
#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/decimal.hpp"
#include "kernels/group_read.hpp"
#include "kernels/window_walk.hpp"

namespace bireme {

namespace windows {

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

}  // namespace windows

using namespace windows;

namespace {

// Sums below it are exact in 128 bits, whatever is added before something is taken back.
constexpr double kSumMax = 9e37;

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
