// sort_rows, split_by_ranges and window_places: see their headers in kernels/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "arrow/errors.hpp"
#include "capsule.hpp"
#include "kernels/ranges.hpp"
#include "kernels/sort_rows.hpp"
#include "kernels/window_places.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

std::vector<SortKey> sort_keys(const std::vector<bool>& descending, const std::vector<bool>& nulls_first) {
  if (descending.size() != nulls_first.size())
    throw EngineBug("a sort has another number of directions than of NULL places");
  std::vector<SortKey> keys;
  for (size_t index = 0; index < descending.size(); ++index)
    keys.push_back({descending[index], nulls_first[index]});
  return keys;
}

Exported sort_batch(nb::handle source, const std::vector<bool>& descending,
                    const std::vector<bool>& nulls_first, int64_t limit) {
  const Batch batch = import_arrow(source);
  nb::gil_scoped_release unlocked;
  return Exported(sort_rows(batch, sort_keys(descending, nulls_first), limit));
}

// One exported batch per range; dictionary columns leave as codes.
nb::list split_batch(nb::handle source, nb::handle key_source, nb::handle splitter_source,
                     const std::vector<bool>& descending, const std::vector<bool>& nulls_first) {
  const Batch batch = import_arrow(source);
  const Batch keys = import_arrow(key_source);
  const Batch splitters = import_arrow(splitter_source);
  std::vector<Exported> parts;
  {
    nb::gil_scoped_release unlocked;
    const Partitioning ranges = partition_by_ranges(keys, splitters, sort_keys(descending, nulls_first));
    std::vector<std::vector<OutputColumn>> columns = split(batch.columns(), ranges);
    for (size_t part = 0; part < columns.size(); ++part)
      parts.emplace_back(std::move(columns[part]), ranges.offsets[part + 1] - ranges.offsets[part]);
  }
  nb::list result;
  for (Exported& part : parts) result.append(nb::cast(std::move(part)));
  return result;
}

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

}  // namespace

void bind_sort(nb::module_& module) {
  module.def("sort_rows", &sort_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("limit"),
             "The positions of the rows in order, as an Exported int64 array; `limit` below 0 is none.");
  module.def("split_by_ranges", &split_batch, nb::arg("batch"), nb::arg("keys"), nb::arg("splitters"),
             nb::arg("descending"), nb::arg("nulls_first"),
             "An Exported batch per range between splitters; dictionary columns leave as their codes.");
  module.def("window_places", &place_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("partition_keys"), nb::arg("places"), nb::arg("are_in_order"),
             "An int64 column a place (number, rank, dense_rank, partition_rows, rows_up_to_peers), in the "
             "order of the rows. Rows that are in order are not sorted.");
}

}  // namespace bireme
