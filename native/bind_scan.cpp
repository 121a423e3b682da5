// ScanPlan: see scan/scan_plan.hpp and scan/scan_task.hpp. The Python side is backends/native/scan.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bind_parquet.hpp"
#include "capsule.hpp"
#include "key_filter_handle.hpp"
#include "scan/scan_plan.hpp"
#include "scan/scan_task.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

using scan::RowRange;
using scan::ScanPlan;
using scan::ScanTask;

// (offset, bytes, first row)
using Page = std::tuple<int64_t, int32_t, int64_t>;
// Of a part of a chunk: (row of its first page, address and bytes of the dictionary page)
using Part = std::tuple<int64_t, uintptr_t, int64_t>;
// (physical type, length of fixed ones, codec, whether it may be NULL, rows, address, bytes, pages, part)
using Chunk =
    std::tuple<int, int32_t, int, bool, int64_t, uintptr_t, int64_t, std::vector<Page>, std::optional<Part>>;
// (first row, rows)
using Range = std::tuple<int64_t, int64_t>;

std::span<const uint8_t> bytes_at(uintptr_t address, int64_t nbytes) {
  return {reinterpret_cast<const uint8_t*>(address), static_cast<size_t>(nbytes)};
}

parquet::ChunkSpec spec_of(const Chunk& chunk) {
  const auto& [physical, length, codec, is_optional, rows, address, nbytes, pages, part] = chunk;
  parquet::ChunkSpec spec;
  spec.physical = static_cast<parquet::Physical>(physical);
  spec.type_length = length;
  spec.codec = static_cast<parquet::Codec>(codec);
  spec.is_optional = is_optional;
  spec.rows = rows;
  spec.bytes = bytes_at(address, nbytes);
  if (part.has_value()) {
    const auto& [first_row, dictionary, dictionary_bytes] = *part;
    spec.part = {first_row, bytes_at(dictionary, dictionary_bytes)};
  }
  for (const auto& [offset, page_bytes, first_row] : pages)
    spec.pages.push_back({offset, page_bytes, first_row});
  return spec;
}

// The inputs of a task, and what keeps them alive.
struct Inputs {
  std::vector<Batch> batches;
  std::vector<scan::ColumnInput> columns;
};

// Of a column that is decoded, (array of some rows, the first of them, rows in all).
using Decoded = std::tuple<nb::object, int64_t, int64_t>;

// Each is a Chunk, or Decoded, or an Arrow array that has all rows decoded. Needs the GIL.
Inputs inputs_of(const nb::list& given) {
  Inputs inputs;
  inputs.batches.reserve(given.size());
  for (nb::handle each : given) {
    if (nb::isinstance<nb::tuple>(each) && nb::len(each) == std::tuple_size_v<Chunk>) {
      inputs.columns.push_back({.chunk = spec_of(nb::cast<Chunk>(each))});
    } else if (nb::isinstance<nb::tuple>(each)) {
      const auto& [array, first, rows] = nb::cast<Decoded>(each);
      inputs.batches.push_back(import_arrow(array));
      inputs.columns.push_back({.memory = &inputs.batches.back()[0], .first = first, .rows_in_all = rows});
    } else {
      inputs.batches.push_back(import_arrow(each));
      const Column& column = inputs.batches.back()[0];
      inputs.columns.push_back({.memory = &column, .rows_in_all = column.rows});
    }
  }
  return inputs;
}

// ([(rows, batch, [(output, column)] that are as they came in)], (rows in, dropped by conditions, dropped by
// filters, by the bound, pages skipped, bytes decompressed, bytes held))
nb::tuple run_plan(const ScanPlan& plan, const nb::list& columns, const std::vector<Range>& given,
                   int64_t rows_max, bool late, nb::object decompress, const Program* bound) {
  Inputs inputs = inputs_of(columns);
  std::vector<RowRange> ranges;
  for (const auto& [first, count] : given) ranges.push_back({first, count});
  PythonDecompressor decompressor(std::move(decompress));
  std::vector<std::pair<scan::ScanBatch, Exported>> made;
  scan::ScanCounts counts;
  {
    nb::gil_scoped_release unlocked;
    ScanTask task(plan, std::move(inputs.columns), &decompressor, late, bound);
    for (scan::ScanBatch& batch : task.run(ranges, rows_max)) {
      Exported exported(std::move(batch.columns), batch.rows, plan.names());
      made.emplace_back(std::move(batch), std::move(exported));
    }
    counts = task.counts();
  }
  nb::list batches;
  for (auto& [batch, exported] : made)
    batches.append(nb::make_tuple(batch.rows, nb::cast(std::move(exported)), nb::cast(batch.as_they_are)));
  return nb::make_tuple(
      batches, nb::make_tuple(counts.rows_in, counts.dropped_by_conditions, counts.dropped_by_filters,
                              counts.dropped_by_bound, counts.pages_skipped, counts.bytes_decompressed,
                              counts.bytes_held_max));
}

void raise_for_column(const char* name, int column, const char* story) {
  nb::object type = nb::module_::import_("bireme.backends.native._kernels").attr(name);
  PyErr_SetObject(type.ptr(), nb::make_tuple(column, story).ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const scan::DamagedColumn& error) {
    raise_for_column("DamagedColumn", error.column, error.what());
  } catch (const scan::UnreadColumn& error) {
    raise_for_column("UnreadColumn", error.column, error.what());
  }
}

// An exception of Python whose arguments are the position of a column and what is wrong with it.
void add_exception(nb::module_& module, const char* name) {
  const std::string qualified = std::string("bireme.backends.native._kernels.") + name;
  module.attr(name) = nb::steal(PyErr_NewException(qualified.c_str(), PyExc_Exception, nullptr));
}

}  // namespace

void bind_scan(nb::module_& module) {
  add_exception(module, "DamagedColumn");
  add_exception(module, "UnreadColumn");
  nb::register_exception_translator(translate);
  nb::class_<ScanPlan>(module, "ScanPlan", "What a scan does with the rows of a table; see scan_plan.hpp.")
      .def(
          "__init__",
          [](ScanPlan* self, const std::vector<std::string>& formats) {
            std::vector<Type> types;
            for (const std::string& format : formats) types.push_back(parse_type(format.c_str()));
            new (self) ScanPlan(std::move(types));
          },
          nb::arg("formats"))
      .def("condition", &ScanPlan::add_condition, nb::arg("program"), nb::arg("columns"),
           nb::arg("can_raise"), nb::arg("kept_guess"))
      .def(
          "filter",
          [](ScanPlan& self, const KeyFilterHandle& handle, std::vector<int> columns) {
            self.add_filter(handle.filter, std::move(columns));
          },
          nb::arg("filter"), nb::arg("columns"))
      .def("bound", &ScanPlan::add_bound, nb::arg("columns"))
      .def("outputs", &ScanPlan::set_outputs, nb::arg("program"), nb::arg("passed"), nb::arg("names"))
      .def("switched_off", &ScanPlan::switched_off)
      .def("bound_was_switched_off", &ScanPlan::bound_was_switched_off)
      .def("run", &run_plan, nb::arg("columns"), nb::arg("ranges"), nb::arg("rows_max"), nb::arg("late"),
           nb::arg("decompress"), nb::arg("bound").none() = nb::none());
}

}  // namespace bireme
