#include <limits>

#include "kernels/sort_codes.hpp"
#include "kernels/window_walk.hpp"

namespace bireme::windows {

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

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

}  // namespace

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

}  // namespace bireme::windows
