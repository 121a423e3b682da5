// sort_rows: see kernels/sort_rows.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "arrow/errors.hpp"
#include "capsule.hpp"
#include "kernels/sort_rows.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

Exported sort_batch(nb::handle source, const std::vector<bool>& descending,
                    const std::vector<bool>& nulls_first, int64_t limit) {
  const Batch batch = import_arrow(source);
  nb::gil_scoped_release unlocked;
  if (descending.size() != nulls_first.size())
    throw EngineBug("a sort has another number of directions than of NULL places");
  std::vector<SortKey> keys;
  for (size_t index = 0; index < descending.size(); ++index)
    keys.push_back({descending[index], nulls_first[index]});
  return Exported(sort_rows(batch, keys, limit));
}

}  // namespace

void bind_sort(nb::module_& module) {
  module.def("sort_rows", &sort_batch, nb::arg("keys"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("limit"),
             "The positions of the rows in order, as an Exported int64 array; `limit` below 0 is none.");
}

}  // namespace bireme
