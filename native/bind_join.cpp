// Join tables, their builds and probes, and key filters: see kernels/join_table.hpp, join_build.hpp,
// join_probe.hpp and key_filter.hpp. Calls release the GIL while they compute, and may run on many threads at
// once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrow/errors.hpp"
#include "capsule.hpp"
#include "kernels/expression/program.hpp"
#include "kernels/join_build.hpp"
#include "kernels/join_probe.hpp"
#include "kernels/join_table.hpp"
#include "key_filter_handle.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

using Marks = nb::ndarray<bool, nb::numpy, nb::ndim<1>, nb::c_contig>;

std::unique_ptr<JoinTable> build(nb::handle source, int null_equal_count) {
  const Batch keys = import_arrow(source);
  nb::gil_scoped_release unlocked;
  return std::make_unique<JoinTable>(keys, null_equal_count);
}

void index_ranges(JoinTable& table, nb::handle keys_source, nb::handle ranges_source, bool is_bounded_above) {
  const Batch keys = import_arrow(keys_source);
  Batch ranges = import_arrow(ranges_source);
  nb::gil_scoped_release unlocked;
  table.index_ranges(keys, std::move(ranges), is_bounded_above);
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

// What `make` gives, made without the GIL; None for none.
template <typename Make>
nb::object made_filter(Make make) {
  KeyFilterHandle handle;
  {
    nb::gil_scoped_release unlocked;
    handle.filter = make();
  }
  return handle.filter == nullptr ? nb::none() : nb::cast(std::move(handle));
}

void bind_table(nb::module_& module) {
  nb::class_<JoinTable>(module, "JoinTable", "The keys of a build side; immutable.")
      .def_prop_ro("rows", &JoinTable::rows)
      .def_prop_ro("nbytes", &JoinTable::nbytes)
      .def_prop_ro("has_null_key", &JoinTable::has_null_key)
      .def_prop_ro("is_unique", &JoinTable::is_unique)
      .def_prop_ro("form", &JoinTable::form)
      .def("match", &match, nb::arg("keys"))
      .def("contains", &contains, nb::arg("keys"))
      .def("key_filter",
           [](const JoinTable& table) { return made_filter([&] { return table.key_filter(); }); })
      .def(
          "set_payload", [](JoinTable& table, nb::handle batch) { table.set_payload(import_arrow(batch)); },
          nb::arg("batch"), "The build side's columns, before the first probe.")
      .def_prop_ro("has_ranges", [](const JoinTable& table) { return table.ranges() != nullptr; })
      .def("index_ranges", &index_ranges, nb::arg("keys"), nb::arg("ranges"), nb::arg("is_bounded_above"),
           "Has rows be found by bounds, too; before the first probe.");
  module.def("join_table", &build, nb::arg("keys"), nb::arg("null_equal_count"));
}

// --------------------------------------------------------------------------------------------------- filters

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

void bind_filter(nb::module_& module) {
  nb::class_<KeyFilterHandle>(module, "KeyFilter", "Which keys a build side may hold; immutable.")
      .def_prop_ro("kind", [](const KeyFilterHandle& handle) { return handle.filter->kind(); })
      .def_prop_ro("is_exact", [](const KeyFilterHandle& handle) { return handle.filter->is_exact(); })
      .def_prop_ro("nbytes", [](const KeyFilterHandle& handle) { return handle.filter->nbytes(); })
      .def("range", &range_of)
      .def("select", &select_keys, nb::arg("keys"));
  nb::class_<KeyFilterBuild>(module, "KeyFilterBuild",
                             "A filter of keys that come bit by bit, on any threads.")
      .def(nb::init<int64_t>(), nb::arg("bytes"))
      .def_prop_ro("nbytes", &KeyFilterBuild::nbytes)
      .def(
          "add",
          [](KeyFilterBuild& self, nb::handle source) {
            const Batch keys = import_arrow(source);
            nb::gil_scoped_release unlocked;
            self.add(keys);
          },
          nb::arg("keys"))
      .def("finish", [](KeyFilterBuild& self) { return made_filter([&] { return self.finish(); }); });
}

// ---------------------------------------------------------------------------------------------------- builds

std::vector<Batch> import_all(nb::sequence sources) {
  std::vector<Batch> batches;
  for (nb::handle source : sources) batches.push_back(import_arrow(source));
  return batches;
}

void add_chunks(JoinBuild& self, int64_t sequence, nb::sequence keys_sources, nb::sequence columns_sources) {
  std::vector<Batch> keys = import_all(keys_sources);
  std::vector<Batch> columns = import_all(columns_sources);
  nb::gil_scoped_release unlocked;
  self.add(sequence, std::move(keys), std::move(columns));
}

// (columns, [(position, entries of its dictionary)])
nb::object exported(JoinedChunks::Result joined) {
  nb::list dictionaries;
  for (auto& [position, entries] : joined.dictionaries) {
    dictionaries.append(nb::make_tuple(position, nb::cast(Exported(std::move(entries)))));
  }
  return nb::make_tuple(Exported(std::move(joined.columns), joined.rows), dictionaries);
}

nb::object take_payload(JoinBuild& self) {
  return self.has_payload() ? exported(self.take_payload()) : nb::none();
}

nb::object concat(nb::sequence sources) {
  const std::vector<Batch> batches = import_all(sources);
  std::vector<const Batch*> chunks;
  for (const Batch& batch : batches) chunks.push_back(&batch);
  if (chunks.empty() || !JoinedChunks::possible(chunks)) return nb::none();
  JoinedChunks::Result result;
  {
    nb::gil_scoped_release unlocked;
    JoinedChunks joined(chunks);
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) joined.copy(chunk);
    result = joined.take();
  }
  return exported(std::move(result));
}

void bind_build(nb::module_& module) {
  nb::class_<JoinBuild>(module, "JoinBuild", "A join table under construction, on many threads.")
      .def(nb::init<int>(), nb::arg("null_equal_count"))
      .def_prop_ro("rows", &JoinBuild::rows)
      .def("add", &add_chunks, nb::arg("sequence"), nb::arg("keys"), nb::arg("columns"))
      .def("start", &JoinBuild::start, nb::arg("threads"), "How many calls of `work` are of use.")
      .def("work", &JoinBuild::work, nb::call_guard<nb::gil_scoped_release>(),
           "True for the one call that ends all work; then the results may be taken, once.")
      .def("take_table", &JoinBuild::take_table)
      .def("take_payload", &take_payload);
  module.def("concat", &concat, nb::arg("batches"),
             "The rows of all batches, as from `take_payload`; None where it cannot be done here.");
}

// ---------------------------------------------------------------------------------------------------- probes

ProbeKind kind_of(const std::string& name) {
  if (name == "inner") return ProbeKind::Inner;
  if (name == "left") return ProbeKind::Left;
  if (name == "single") return ProbeKind::Single;
  if (name == "semi") return ProbeKind::Semi;
  if (name == "anti") return ProbeKind::Anti;
  if (name == "mark") return ProbeKind::Mark;
  throw EngineBug("no probe of kind '" + name + "'");
}

Comparison comparison_of(const std::string& name) {
  if (name == "lt") return Comparison::Below;
  if (name == "le") return Comparison::UpTo;
  if (name == "ge") return Comparison::From;
  if (name == "gt") return Comparison::Above;
  throw EngineBug("no bound of a range by '" + name + "'");
}

struct Prober {
  ProbePlan plan;
  std::optional<Marks> matched;
};

std::unique_ptr<Prober> make_prober(const JoinTable& table, const std::string& kind,
                                    std::vector<int> left_output, std::vector<int> right_output,
                                    bool null_aware, const Program* residual, int stream_columns,
                                    std::optional<Marks> matched,
                                    const std::vector<std::tuple<int, std::string>>& bounds) {
  auto prober = std::make_unique<Prober>();
  prober->plan = {&table,     kind_of(kind), std::move(left_output), std::move(right_output),
                  null_aware, residual,      stream_columns,         nullptr,
                  {}};
  for (const auto& [key, comparison] : bounds)
    prober->plan.bounds.push_back({key, comparison_of(comparison)});
  if (!bounds.empty() && table.ranges() == nullptr) throw EngineBug("bounds for a join table without ranges");
  if (matched.has_value()) {
    if (static_cast<int64_t>(matched->shape(0)) != table.rows())
      throw EngineBug("marks for another number of rows");
    prober->plan.matched = reinterpret_cast<uint8_t*>(matched->data());
    prober->matched = std::move(matched);
  }
  return prober;
}

std::unique_ptr<ProbeRun> begin_run(const Prober& prober, nb::handle stream, nb::handle keys) {
  return std::make_unique<ProbeRun>(prober.plan, import_arrow(stream), import_arrow(keys));
}

nb::object exported(std::vector<OutputColumn> columns, int64_t rows) {
  if (columns.empty()) return nb::none();
  return nb::cast(Exported(std::move(columns), rows));
}

// (rows, all, the stream's columns or None, the build's or None), or None
nb::object next_piece(ProbeRun& run) {
  std::optional<JoinPiece> piece;
  {
    nb::gil_scoped_release unlocked;
    piece = run.next();
  }
  if (!piece.has_value()) return nb::none();
  return nb::make_tuple(piece->rows, piece->all, exported(std::move(piece->left), piece->rows),
                        exported(std::move(piece->right), piece->rows));
}

void mark_matches(const Prober& prober, nb::handle stream, nb::handle keys) {
  ProbeRun run(prober.plan, import_arrow(stream), import_arrow(keys));
  nb::gil_scoped_release unlocked;
  run.mark_matches();
}

void bind_probe(nb::module_& module) {
  nb::class_<ProbeRun>(module, "ProbeRun", "One batch on its way through a join; for one thread.")
      .def("next", &next_piece);
  nb::class_<Prober>(module, "Prober", "How a stream meets a join table; immutable.")
      .def("run", &begin_run, nb::arg("stream"), nb::arg("keys"), nb::keep_alive<0, 1>())
      .def("mark_matches", &mark_matches, nb::arg("stream"), nb::arg("keys"));
  module.def("prober", &make_prober, nb::arg("table"), nb::arg("kind"), nb::arg("left_output"),
             nb::arg("right_output"), nb::arg("null_aware"), nb::arg("residual").none(),
             nb::arg("stream_columns"), nb::arg("matched").none(), nb::arg("bounds"), nb::keep_alive<0, 1>(),
             nb::keep_alive<0, 6>());
}

}  // namespace

void bind_join(nb::module_& module) {
  bind_table(module);
  bind_filter(module);
  bind_build(module);
  bind_probe(module);
}

}  // namespace bireme
