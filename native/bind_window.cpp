// window_places and window_frames: see their headers in kernels/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>

#include "arrow/errors.hpp"
#include "bind_keys.hpp"
#include "capsule.hpp"
#include "kernels/window_frames.hpp"
#include "kernels/window_places.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

Place place_from(const std::string& name) {
  if (name == "number") return Place::Number;
  if (name == "rank") return Place::Rank;
  if (name == "dense_rank") return Place::DenseRank;
  if (name == "partition_rows") return Place::PartitionRows;
  if (name == "rows_up_to_peers") return Place::RowsUpToPeers;
  throw EngineBug("rows of a window have no place called " + name);
}

Exported place_batch(nb::handle source, const std::vector<bool>& descending,
                     const std::vector<bool>& nulls_first, int64_t partition_keys,
                     const std::vector<std::string>& names, bool are_in_order) {
  const Batch batch = import_arrow(source);
  nb::gil_scoped_release unlocked;
  std::vector<Place> places;
  for (const std::string& name : names) places.push_back(place_from(name));
  auto columns = window_places(batch, sort_keys(descending, nulls_first), static_cast<size_t>(partition_keys),
                               places, are_in_order);
  return Exported(std::move(columns), batch.rows());
}

WindowFunction function_from(const std::string& name) {
  if (name == "count") return WindowFunction::Count;
  if (name == "sum") return WindowFunction::Sum;
  if (name == "mean") return WindowFunction::Mean;
  if (name == "smallest") return WindowFunction::Smallest;
  if (name == "largest") return WindowFunction::Largest;
  if (name == "nth") return WindowFunction::Nth;
  if (name == "shift") return WindowFunction::Shift;
  throw EngineBug("frames have no function called " + name);
}

using EdgeText = std::tuple<std::string, int64_t>;

FrameEnd end_from(const EdgeText& text) {
  const auto& [edge, offset] = text;
  if (edge == "partition") return {FrameEdge::Partition, 0};
  if (edge == "peers") return {FrameEdge::Peers, 0};
  if (edge == "offset") return {FrameEdge::Offset, offset};
  throw EngineBug("frames have no end called " + edge);
}

// Function, argument, filter, the ends of the frame, number, whether the row itself stands for rows outside.
using TaskText = std::tuple<std::string, int, int, EdgeText, EdgeText, int64_t, bool>;

WindowTask task_from(const TaskText& text, int columns) {
  const auto& [function, argument, filter, start, end, number, is_own_outside] = text;
  if (argument >= columns || filter >= columns) throw EngineBug("a window function has no such argument");
  return {function_from(function), argument, filter, end_from(start), end_from(end), number, is_own_outside};
}

Exported frame_batch(nb::handle key_source, const std::vector<bool>& descending,
                     const std::vector<bool>& nulls_first, int64_t partition_keys, nb::handle source,
                     const std::vector<TaskText>& texts) {
  const Batch keys = import_arrow(key_source);
  const Batch inputs = import_arrow(source);
  nb::gil_scoped_release unlocked;
  if (keys.count() > 0 && keys.rows() != inputs.rows())
    throw EngineBug("the keys of a window are not those of its rows");
  std::vector<WindowTask> tasks;
  for (const TaskText& text : texts) tasks.push_back(task_from(text, inputs.count()));
  const WindowRuns runs = window_runs(keys.count() > 0 ? keys : inputs, sort_keys(descending, nulls_first),
                                      static_cast<size_t>(partition_keys), false);
  return Exported(window_frames(runs, inputs, tasks), inputs.rows());
}

}  // namespace

void bind_window(nb::module_& module) {
  module.def("window_places", &place_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("partition_keys"), nb::arg("places"), nb::arg("are_in_order"),
             "An int64 column a place (number, rank, dense_rank, partition_rows, rows_up_to_peers), in the "
             "order of the rows. Rows that are in order are not sorted.");
  module.def("window_frames", &frame_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("partition_keys"), nb::arg("inputs"), nb::arg("tasks"),
             "A column a task, in the order of the rows: see kernels/window_frames.hpp.");
}

}  // namespace bireme
