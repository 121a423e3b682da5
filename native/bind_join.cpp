// JoinTable and KeyFilter: see kernels/join_table.hpp and key_filter.hpp. Calls release the GIL while they compute, and may run on many threads at once.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "capsule.hpp"
#include "key_filter_handle.hpp"
#include "kernels/join_table.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

std::unique_ptr<JoinTable> build(nb::handle source, int null_equal_count) {
  Batch keys = import_arrow(source);
  nb::gil_scoped_release unlocked;
  return std::make_unique<JoinTable>(std::move(keys), null_equal_count);
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

nb::object key_filter(const JoinTable& table) {
  KeyFilterHandle handle;
  {
    nb::gil_scoped_release unlocked;
    handle.filter = table.key_filter();
  }
  return handle.filter == nullptr ? nb::none() : nb::cast(std::move(handle));
}

nb::object range_of(const KeyFilterHandle& handle) {
  int64_t low = 0;
  int64_t high = 0;
  if (!handle.filter->range(low, high)) return nb::none();
  return nb::make_tuple(low, high);
}

Exported select_keys(const KeyFilterHandle& handle, nb::handle source) {
  const Batch keys = import_arrow(source);
  nb::gil_scoped_release unlocked;
  OutputColumn out{.type = simple_type(Kind::UInt32)};
  out.values = Buffer(keys.rows() * 4);
  out.rows = handle.filter->select(keys.columns(), keys.rows(), out.values.as<uint32_t>());
  out.values.shrink(out.rows * 4);
  return Exported(std::move(out));
}

}  // namespace

void bind_join(nb::module_& module) {
  nb::class_<KeyFilterHandle>(module, "KeyFilter", "Which keys a build side may hold; immutable.")
      .def_prop_ro("kind", [](const KeyFilterHandle& handle) { return handle.filter->kind(); })
      .def_prop_ro("is_exact", [](const KeyFilterHandle& handle) { return handle.filter->is_exact(); })
      .def_prop_ro("nbytes", [](const KeyFilterHandle& handle) { return handle.filter->nbytes(); })
      .def("range", &range_of)
      .def("select", &select_keys, nb::arg("keys"));
  nb::class_<JoinTable>(module, "JoinTable", "The keys of a build side; immutable.")
      .def_prop_ro("rows", &JoinTable::rows)
      .def_prop_ro("nbytes", &JoinTable::nbytes)
      .def_prop_ro("has_null_key", &JoinTable::has_null_key)
      .def("match", &match, nb::arg("keys"))
      .def("contains", &contains, nb::arg("keys"))
      .def("key_filter", &key_filter);
  module.def("join_table", &build, nb::arg("keys"), nb::arg("null_equal_count"));
}

}  // namespace bireme
