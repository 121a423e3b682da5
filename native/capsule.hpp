// Arrow PyCapsules in and out (the Arrow PyCapsule interface). The only file, with capsule.cpp and the binds, that knows Python.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"

namespace bireme {

// Takes in any object with `__arrow_c_array__`: a record batch, or an array as a batch of one column. Zero-copy; needs the GIL.
// A Batch may be destroyed without the GIL.
Batch import_arrow(nanobind::handle object);

// Arrays on their way out: has `__arrow_c_array__`, so that `pyarrow.record_batch(x)` or `pyarrow.array(x)` takes it over. One
// consumer only.
class Exported {
 public:
  explicit Exported(std::vector<OutputColumn> columns, int64_t rows, std::span<const std::string> names = {}) {
    export_batch(std::move(columns), rows, &array_, &schema_, names);
  }
  explicit Exported(OutputColumn column) { export_column(std::move(column), &array_, &schema_); }
  Exported(Exported&& other) noexcept : array_(other.array_), schema_(other.schema_) {
    other.array_.release = nullptr;
    other.schema_.release = nullptr;
  }
  Exported& operator=(Exported&&) = delete;
  ~Exported() {
    if (array_.release != nullptr) array_.release(&array_);
    if (schema_.release != nullptr) schema_.release(&schema_);
  }

  // (schema capsule, array capsule)
  nanobind::tuple capsules();

 private:
  ArrowArray array_{};
  ArrowSchema schema_{};
};

void bind_capsule(nanobind::module_& module);

}  // namespace bireme
