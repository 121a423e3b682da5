#include "capsule.hpp"

#include <memory>

#include "arrow/errors.hpp"
#include "arrow/pages.hpp"
#include "arrow/tidy.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

void destroy_array_capsule(PyObject* capsule) {
  auto* array = static_cast<ArrowArray*>(PyCapsule_GetPointer(capsule, "arrow_array"));
  if (array->release != nullptr) array->release(array);
  delete array;
}

void destroy_schema_capsule(PyObject* capsule) {
  auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(capsule, "arrow_schema"));
  if (schema->release != nullptr) schema->release(schema);
  delete schema;
}

template <typename T>
T* pointer_in(nb::handle capsule, const char* name) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (pointer == nullptr) throw nb::python_error();
  return static_cast<T*>(pointer);
}

template <typename T>
nb::object capsule_of(T& source, const char* name, void (*destroy)(PyObject*)) {
  auto moved = std::make_unique<T>(source);
  PyObject* capsule = PyCapsule_New(moved.get(), name, destroy);
  if (capsule == nullptr) throw nb::python_error();
  moved.release();
  source.release = nullptr;
  return nb::steal(capsule);
}

}  // namespace

Batch import_arrow(nb::handle object) {
  nb::object pair = object.attr("__arrow_c_array__")();
  auto* schema = pointer_in<ArrowSchema>(pair[0], "arrow_schema");
  auto* array = pointer_in<ArrowArray>(pair[1], "arrow_array");
  return Batch::take_over(array, schema);
}

nb::tuple Exported::capsules() {
  if (array_.release == nullptr) throw EngineBug("an exported batch was consumed twice");
  nb::object schema = capsule_of(schema_, "arrow_schema", destroy_schema_capsule);
  nb::object array = capsule_of(array_, "arrow_array", destroy_array_capsule);
  return nb::make_tuple(schema, array);
}

void bind_capsule(nb::module_& module) {
  nb::class_<Exported>(module, "Exported", "Arrow data on its way out; pyarrow takes it over once.")
      .def(
          "__arrow_c_array__", [](Exported& self, nb::handle) { return self.capsules(); },
          nb::arg("requested_schema") = nb::none());
  module.def("pool_statistics", [] {
    const PoolStatistics statistics = pool_statistics();
    return nb::make_tuple(statistics.bytes_in_use, statistics.bytes_pooled, statistics.bytes_pooled_max);
  });
  nb::class_<PoolQuota>(module, "PoolQuota", "How much a counter of memory lets the pool keep for reuse.")
      .def(nb::init<>())
      .def("set", &PoolQuota::set, nb::arg("held_max"), nb::arg("kept_max"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("hold_to", &PoolQuota::hold_to, nb::arg("limit"), nb::arg("share"))
      .def("ask_tidy", [](const PoolQuota&) { ask_tidy(); })
      .def("held", [](const PoolQuota&) {
        const PoolStatistics statistics = pool_statistics();
        return nb::make_tuple(statistics.bytes_in_use, statistics.bytes_pooled);
      });
  module.def("trim_pool", &trim_pool);
  module.def("tidy_is_due", &tidy_is_due, nb::call_guard<nb::gil_scoped_release>(),
             "Whether this thread was asked to give back what allocators keep for it.");
  module.def("use_small_pages", &use_small_pages, nb::arg("address"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Has the mapping of an address backed by small pages only, as far as the system can do that.");
  module.def("fail_allocation", &fail_allocation, nb::arg("count"));
  module.def("start_meter", &start_meter, "From here on, what this thread takes is measured.");
  module.def("may_have", &may_have, nb::arg("bytes"), nb::arg("had"),
             "Whether a kernel may take so many more bytes that nobody reserved.");
  module.def("metered_peak", &metered_peak, "How much more it held than at the start, at the peak.");
}

}  // namespace bireme
