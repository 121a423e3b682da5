// GroupTable, GroupMerge and TopPerKey: see their headers in kernels/. Calls release the GIL while they
// compute.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>

#include "arrow/errors.hpp"
#include "capsule.hpp"
#include "kernels/group_merge.hpp"
#include "kernels/group_table.hpp"
#include "kernels/top_per_key.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

// The types of the fields of a pyarrow schema.
std::vector<Type> types_of(nb::handle schema) {
  nb::object capsule = schema.attr("__arrow_c_schema__")();
  const auto* top = static_cast<const ArrowSchema*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_schema"));
  if (top == nullptr) throw nb::python_error();
  std::vector<Type> types;
  for (int64_t index = 0; index < top->n_children; ++index)
    types.push_back(parse_type(top->children[index]->format));
  return types;
}

// (function, position of the argument or -1, fraction of a quantile)
using AggregateCall = std::tuple<std::string, int, double>;

std::vector<Aggregate> aggregates_of(const std::vector<AggregateCall>& calls, nb::handle arguments,
                                     nb::handle results) {
  const std::vector<Type> argument_types = types_of(arguments);
  const std::vector<Type> result_types = types_of(results);
  if (argument_types.size() != calls.size() || result_types.size() != calls.size()) {
    throw EngineBug("a group table got another number of types than of aggregates");
  }
  std::vector<Aggregate> aggregates;
  for (size_t index = 0; index < calls.size(); ++index) {
    const auto& [name, position, fraction] = calls[index];
    aggregates.push_back(
        {aggregate_function(name), position, argument_types[index], result_types[index], fraction});
  }
  return aggregates;
}

GroupTable make_table(nb::handle keys, const std::vector<AggregateCall>& calls, nb::handle arguments,
                      nb::handle results, bool is_lean) {
  return GroupTable(types_of(keys), aggregates_of(calls, arguments, results), is_lean);
}

GroupMerge make_merge(nb::handle keys, const std::vector<AggregateCall>& calls, nb::handle arguments,
                      nb::handle results) {
  return GroupMerge(types_of(keys), aggregates_of(calls, arguments, results));
}

Exported exported(GroupTable::Rows rows) {
  return Exported(std::move(rows.columns), rows.rows);
}

TopPerKey make_top(nb::handle types, bool descending, bool nulls_first, int64_t limit, bool distinct) {
  std::vector<Type> key_types = types_of(types);
  if (key_types.empty()) throw EngineBug("the first rows of keys need an order");
  const Type order_type = key_types.back();
  key_types.pop_back();
  return TopPerKey(key_types, order_type, {descending, nulls_first}, limit, distinct);
}

}  // namespace

void bind_group(nb::module_& module) {
  nb::class_<GroupTable>(
      module, "GroupTable",
      "Groups and their aggregates; after an error it must not be used, but for one in `states`.")
      .def_prop_ro("groups", &GroupTable::groups)
      .def_prop_ro("nbytes", &GroupTable::nbytes)
      .def("bytes_to_add", &GroupTable::bytes_to_add, nb::arg("groups"))
      .def(
          "update",
          [](GroupTable& table, nb::handle source, int64_t position) {
            const Batch batch = import_arrow(source);
            nb::gil_scoped_release unlocked;
            table.update(batch, position);
          },
          nb::arg("batch"), nb::arg("position"))
      .def(
          "merge",
          [](GroupTable& table, nb::handle source) {
            const Batch batch = import_arrow(source);
            nb::gil_scoped_release unlocked;
            table.merge(batch);
          },
          nb::arg("states"))
      .def(
          "states",
          [](GroupTable& table, uint32_t partitions) {
            std::vector<Exported> out;
            {
              nb::gil_scoped_release unlocked;
              for (GroupTable::Rows& rows : table.states(partitions))
                out.push_back(exported(std::move(rows)));
            }
            nb::list list;
            for (Exported& batch : out) list.append(nb::cast(std::move(batch)));
            return list;
          },
          nb::arg("partitions"))
      .def(
          "settle",
          [](GroupTable& table, int key, std::pair<int64_t, int64_t> stated,
             std::pair<int64_t, int64_t> final) {
            std::optional<Exported> finals, rest;
            int64_t outside = 0;
            {
              nb::gil_scoped_release unlocked;
              GroupTable::Settled settled =
                  table.settle(key, {stated.first, stated.second}, {final.first, final.second});
              finals.emplace(exported(std::move(settled.finals)));
              rest.emplace(exported(std::move(settled.rest)));
              outside = settled.outside;
            }
            return nb::make_tuple(nb::cast(std::move(*finals)), nb::cast(std::move(*rest)), outside);
          },
          nb::arg("key"), nb::arg("stated"), nb::arg("final"))
      .def("finish", [](GroupTable& table) {
        nb::gil_scoped_release unlocked;
        return exported(table.finish());
      });
  nb::class_<GroupMerge>(module, "GroupMerge", "Groups from states and rows, a part at a time.")
      .def(
          "add_states", [](GroupMerge& merge, nb::handle source) { merge.add_states(import_arrow(source)); },
          nb::arg("states"))
      .def(
          "add_rows", [](GroupMerge& merge, nb::handle source) { merge.add_rows(import_arrow(source)); },
          nb::arg("rows"))
      .def("next", [](GroupMerge& merge) -> std::optional<Exported> {
        nb::gil_scoped_release unlocked;
        std::optional<GroupTable::Rows> rows = merge.next();
        if (!rows) return std::nullopt;
        return exported(std::move(*rows));
      });
  nb::class_<TopPerKey>(module, "TopPerKey", "Which rows can be among the first of their key.")
      .def_prop_ro("keys", &TopPerKey::keys)
      .def_prop_ro("nbytes", &TopPerKey::nbytes)
      .def(
          "keep",
          [](TopPerKey& top, nb::handle source) {
            const Batch batch = import_arrow(source);
            nb::gil_scoped_release unlocked;
            return Exported(top.keep(batch));
          },
          nb::arg("batch"), "The positions of the rows that stay, as an Exported int32 array.");
  module.def("top_per_key", &make_top, nb::arg("types"), nb::arg("descending"), nb::arg("nulls_first"),
             nb::arg("limit"), nb::arg("distinct"),
             "`types` is a schema that gives the types of the keys and, last, of the order's leading key.");
  module.def("group_merge", &make_merge, nb::arg("keys"), nb::arg("calls"), nb::arg("arguments"),
             nb::arg("results"), "An empty merge; arguments are those of `group_table`.");
  module.def(
      "group_table", &make_table, nb::arg("keys"), nb::arg("calls"), nb::arg("arguments"), nb::arg("results"),
      nb::arg("is_lean"),
      "An empty table. `keys`, `arguments` and `results` are schemas that give the types of the keys, "
      "and of each "
      "call's argument and result; a call is its canonical name, the position of its argument, and of a "
      "quantile the fraction.");
}

}  // namespace bireme
