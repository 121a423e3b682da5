// take: see kernels/take.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "capsule.hpp"
#include "kernels/take.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

Exported take_batch(nb::handle source, const std::vector<int>& columns, nb::handle rows) {
  const Batch batch = import_arrow(source);
  const Batch positions = import_arrow(rows);
  nb::gil_scoped_release unlocked;
  check_positions(positions[0], batch.rows());
  std::vector<OutputColumn> out;
  for (int column : columns) out.push_back(take(batch[column], positions[0]));
  return Exported(std::move(out), positions.rows());
}

}  // namespace

void bind_take(nb::module_& module) {
  module.def("take", &take_batch, nb::arg("batch"), nb::arg("columns"), nb::arg("rows"),
             "The given columns of a batch at the positions `rows`, as an Exported batch. Dictionary columns give codes.");
}

}  // namespace bireme
