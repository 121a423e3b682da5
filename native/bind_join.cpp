// JoinTable: see kernels/join_table.hpp. Calls release the GIL while they compute, and may run on many threads at once.
#include <nanobind/nanobind.h>

#include "capsule.hpp"
#include "kernels/join_table.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

JoinTable build(nb::handle source, int null_equal_count) {
  const Batch keys = import_arrow(source);
  nb::gil_scoped_release unlocked;
  return JoinTable(keys, null_equal_count);
}

nb::tuple match(const JoinTable& table, nb::handle source) {
  const Batch keys = import_arrow(source);
  std::vector<OutputColumn> columns;
  {
    nb::gil_scoped_release unlocked;
    columns = table.match(keys);
  }
  return nb::make_tuple(Exported(std::move(columns[0])), Exported(std::move(columns[1])));
}

Exported contains(const JoinTable& table, nb::handle source) {
  const Batch keys = import_arrow(source);
  nb::gil_scoped_release unlocked;
  return Exported(table.contains(keys));
}

}  // namespace

void bind_join(nb::module_& module) {
  nb::class_<JoinTable>(module, "JoinTable", "The keys of a build side; immutable.")
      .def_prop_ro("rows", &JoinTable::rows)
      .def_prop_ro("nbytes", &JoinTable::nbytes)
      .def_prop_ro("has_null_key", &JoinTable::has_null_key)
      .def("match", &match, nb::arg("keys"))
      .def("contains", &contains, nb::arg("keys"));
  module.def("join_table", &build, nb::arg("keys"), nb::arg("null_equal_count"));
}

}  // namespace bireme
