// Program: a compiled filter and projection. The Python side is backends/native/program.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "arrow/errors.hpp"
#include "capsule.hpp"
#include "kernels/expression/program.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

int add_literal(Program& program, const std::string& format, std::optional<nb::bytes> payload) {
  const Type type = parse_type(format.c_str());
  if (!payload.has_value()) return program.add_literal(type, nullptr, true, "");
  std::string bytes(payload->c_str(), payload->size());
  if (is_string(type.kind)) return program.add_literal(type, nullptr, false, std::move(bytes));
  if (static_cast<int64_t>(bytes.size()) != width_of(physical_of(type.kind))) {
    throw EngineBug("a literal of Arrow format '" + format + "' with " + std::to_string(bytes.size()) +
                    " bytes");
  }
  return program.add_literal(type, bytes.data(), false, "");
}

int add_call(Program& program, const std::string& function, const std::string& format, std::vector<int> args,
             std::string text, const std::vector<int64_t>& numbers, bool safe) {
  Node node;
  node.function = function;
  node.type = parse_type(format.c_str());
  node.args = std::move(args);
  node.text = std::move(text);
  node.safe = safe;
  if (numbers.size() > std::size(node.numbers)) throw EngineBug("a node has at most three numbers");
  std::copy(numbers.begin(), numbers.end(), node.numbers);
  return program.add(std::move(node));
}

// (rows, all, columns or None, selection or None)
nb::tuple run_program(const Program& program, nb::handle source, bool with_columns) {
  const Batch batch = import_arrow(source);
  std::optional<Exported> columns;
  std::optional<Exported> selection;
  int64_t rows = 0;
  bool all = false;
  {
    nb::gil_scoped_release unlocked;
    Program::Result result = program.run(batch.columns(), batch.rows(), with_columns);
    rows = result.rows;
    all = result.all;
    if (with_columns) columns.emplace(std::move(result.columns), rows);
    if (!all) {
      OutputColumn chosen{.type = simple_type(Kind::UInt32), .rows = rows};
      chosen.values = std::move(result.selection);
      selection.emplace(std::move(chosen));
    }
  }
  nb::object columns_out = columns.has_value() ? nb::cast(std::move(*columns)) : nb::none();
  nb::object selection_out = selection.has_value() ? nb::cast(std::move(*selection)) : nb::none();
  return nb::make_tuple(rows, all, columns_out, selection_out);
}

}  // namespace

void bind_program(nb::module_& module) {
  nb::exception<NeedsReference>(module, "NeedsReference");
  nb::class_<Program>(module, "Program", "A list of typed nodes, each after its arguments; see program.hpp.")
      .def(nb::init<>())
      .def(
          "column",
          [](Program& self, int column, const std::string& format) {
            return self.add_column(column, parse_type(format.c_str()));
          },
          nb::arg("column"), nb::arg("format"))
      .def("literal", &add_literal, nb::arg("format"), nb::arg("payload").none())
      .def("call", &add_call, nb::arg("function"), nb::arg("format"), nb::arg("args"), nb::arg("text") = "",
           nb::arg("numbers") = std::vector<int64_t>{}, nb::arg("safe") = false)
      .def("can_raise",
           [](const Program& self, int node) { return self.nodes()[static_cast<size_t>(node)].can_raise; })
      .def("set_predicate", &Program::set_predicate, nb::arg("conjuncts"))
      .def("set_outputs", &Program::set_outputs, nb::arg("outputs"))
      .def("run", &run_program, nb::arg("batch"), nb::arg("with_columns"));
}

}  // namespace bireme
