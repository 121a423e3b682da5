// hash_rows, partition and partition_positions: the engine's hash of rows, and splitting by it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "capsule.hpp"
#include "kernels/hash.hpp"
#include "kernels/partition.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

std::vector<const Column*> chosen(const Batch& batch, const std::vector<int>& positions) {
  std::vector<const Column*> columns;
  for (int position : positions) columns.push_back(&batch[position]);
  return columns;
}

Exported hash_batch(nb::handle source, const std::vector<int>& positions) {
  const Batch batch = import_arrow(source);
  nb::gil_scoped_release unlocked;
  OutputColumn out{.type = simple_type(Kind::UInt64), .rows = batch.rows()};
  out.values = Buffer(batch.rows() * 8);
  hash_rows(chosen(batch, positions), batch.rows(), out.values.as<uint64_t>());
  return Exported(std::move(out));
}

// One exported batch per partition; dictionary columns leave as codes.
nb::list partition_batch(nb::handle source, const std::vector<int>& keys, uint32_t partitions, uint32_t index,
                         uint32_t total) {
  const Batch batch = import_arrow(source);
  std::vector<Exported> parts;
  {
    nb::gil_scoped_release unlocked;
    const Partitioning partitioning =
        partition_rows(chosen(batch, keys), batch.rows(), partitions, {index, total});
    std::vector<std::vector<OutputColumn>> columns = split(batch.columns(), partitioning);
    parts.reserve(columns.size());
    for (size_t part = 0; part < columns.size(); ++part) {
      parts.emplace_back(std::move(columns[part]),
                         partitioning.offsets[part + 1] - partitioning.offsets[part]);
    }
  }
  nb::list result;
  for (Exported& part : parts) result.append(nb::cast(std::move(part)));
  return result;
}

// (row positions, partition after partition; where each partition begins, and the end)
nb::tuple partition_positions(nb::handle source, const std::vector<int>& keys, uint32_t partitions,
                              uint32_t index, uint32_t total) {
  const Batch batch = import_arrow(source);
  Partitioning partitioning;
  {
    nb::gil_scoped_release unlocked;
    partitioning = partition_rows(chosen(batch, keys), batch.rows(), partitions, {index, total});
  }
  OutputColumn rows{.type = simple_type(Kind::Int32), .rows = batch.rows()};
  rows.values = std::move(partitioning.rows);
  return nb::make_tuple(Exported(std::move(rows)), nb::cast(partitioning.offsets));
}

}  // namespace

void bind_hash(nb::module_& module) {
  module.def("hash_rows", &hash_batch, nb::arg("batch"), nb::arg("columns"),
             "The hash of each row of `batch` over `columns`, as an Exported uint64 array.");
  module.def("partition", &partition_batch, nb::arg("batch"), nb::arg("columns"), nb::arg("partitions"),
             nb::arg("index"), nb::arg("total"),
             "An Exported batch per partition of the hash of `columns`, within part `index` of `total`; "
             "dictionary columns leave as codes.");
  module.def("partition_positions", &partition_positions, nb::arg("batch"), nb::arg("columns"),
             nb::arg("partitions"), nb::arg("index"), nb::arg("total"),
             "Row positions, partition after partition, and where each partition begins.");
}

}  // namespace bireme
