// sort_rows and split_by_ranges: see their headers in kernels/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "arrow/errors.hpp"
#include "bind_keys.hpp"
#include "capsule.hpp"
#include "kernels/ranges.hpp"
#include "kernels/sort_rows.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

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

}  // namespace

void bind_sort(nb::module_& module) {
  module.def("sort_rows", &sort_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("limit"),
             "The positions of the rows in order, as an Exported int64 array; `limit` below 0 is none.");
  module.def("split_by_ranges", &split_batch, nb::arg("batch"), nb::arg("keys"), nb::arg("splitters"),
             nb::arg("descending"), nb::arg("nulls_first"),
             "An Exported batch per range between splitters; dictionary columns leave as their codes.");
}

}  // namespace bireme
