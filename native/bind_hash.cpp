// hash_rows: the engine's hash of each row.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "capsule.hpp"
#include "kernels/hash.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

Exported hash_batch(nb::handle source, const std::vector<int>& positions) {
  const Batch batch = import_arrow(source);
  nb::gil_scoped_release unlocked;
  std::vector<const Column*> columns;
  for (int position : positions) columns.push_back(&batch[position]);
  OutputColumn out{.type = simple_type(Kind::UInt64), .rows = batch.rows()};
  out.values = Buffer(batch.rows() * 8);
  hash_rows(columns, batch.rows(), out.values.as<uint64_t>());
  return Exported(std::move(out));
}

}  // namespace

void bind_hash(nb::module_& module) {
  module.def("hash_rows", &hash_batch, nb::arg("batch"), nb::arg("columns"),
             "The hash of each row of `batch` over `columns`, as an Exported uint64 array.");
}

}  // namespace bireme
