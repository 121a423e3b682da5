// All orders without cross products, by dynamic programming over the connected pairs of the graph (Moerkotte
// and Neumann 2006).
#include <bit>
#include <unordered_map>

#include "orders/orders.hpp"

namespace bireme::orders {

namespace {

constexpr size_t kNone = SIZE_MAX;

// A join of two steps, or a unit, which has neither.
struct Step {
  Units units;
  double rows;
  double cost;
  size_t left = kNone;
  size_t right = kNone;
};

size_t last_unit(Units units) {
  return static_cast<size_t>(std::bit_width(units)) - 1;
}

// Calls `use` with every subset of `units` but the empty one; false when that gives it.
template <class Use>
bool each_subset(Units units, const Use& use) {
  for (Units subset = units & -units; subset != 0; subset = (subset - units) & units) {
    if (!use(subset)) return false;
  }
  return true;
}

// Calls `use` with every unit, the last one first.
template <class Use>
bool each_backward(Units units, const Use& use) {
  while (units != 0) {
    const size_t unit = last_unit(units);
    if (!use(unit)) return false;
    units ^= Units{1} << unit;
  }
  return true;
}

class Search {
 public:
  std::vector<Units> neighbours;
  std::vector<Units> needs;
  std::vector<double> built;
  PyObject* rows = nullptr;
  const Product* product = nullptr;
  long pairs_left = 0;
  double build_cost = 0;
  double probe_cost = 0;

  // False when there are too many pairs, or with an error.
  bool run(Units part) {
    for (Units left = part; left != 0; left &= left - 1) {
      const Units single = left & -left;
      if (needs[last_unit(single)] != 0) continue;
      Step leaf{single, 0, 0};
      if (!ask_rows(single, &leaf.rows)) return false;
      keep(leaf);
    }
    return each_backward(part, [&](size_t unit) {
      const Units single = Units{1} << unit;
      return pair_up(single) && grow(single, single | (single - 1));
    });
  }

  // The best step for these units, made by calls of `make`; None where there is none.
  PyObject* made(Units units, PyObject* make) const {
    const auto found = best_.find(units);
    return found == best_.end() ? Ref::of(Py_None).release() : made_step(found->second, make);
  }

 private:
  bool ask_rows(Units units, double* found) const {
    if (product != nullptr) {
      *found = product->rows(units);
      return true;
    }
    const Ref mask(PyLong_FromUnsignedLongLong(units));
    const Ref answer(mask ? PyObject_CallFunctionObjArgs(rows, mask.get(), nullptr) : nullptr);
    *found = answer ? PyFloat_AsDouble(answer.get()) : 0;
    return PyErr_Occurred() == nullptr;
  }

  size_t keep(const Step& step) {
    steps_.push_back(step);
    best_[step.units] = steps_.size() - 1;
    return steps_.size() - 1;
  }

  // The units that connect to `units`, without these.
  Units around(Units units) const {
    Units found = 0;
    for (Units left = units; left != 0; left &= left - 1) found |= neighbours[last_unit(left & -left)];
    return found & ~units;
  }

  // Meets every connected set that contains `units` and nothing excluded beyond it.
  bool grow(Units units, Units excluded) {
    const Units near = around(units) & ~excluded;
    return each_subset(near, [&](Units subset) { return pair_up(units | subset); }) &&
           each_subset(near, [&](Units subset) { return grow(units | subset, excluded | near); });
  }

  // Meets every connected set that connects to `units` and comes after it.
  bool pair_up(Units units) {
    const Units excluded = units | ((units & -units) - 1);
    const Units near = around(units) & ~excluded;
    return each_backward(near, [&](size_t unit) {
      const Units single = Units{1} << unit;
      return consider(units, single) && extend(units, single, excluded | (near & (single | (single - 1))));
    });
  }

  bool extend(Units units, Units other, Units excluded) {
    const Units near = around(other) & ~excluded;
    return each_subset(near, [&](Units subset) { return consider(units, other | subset); }) &&
           each_subset(near, [&](Units subset) { return extend(units, other | subset, excluded | near); });
  }

  // Compares the join of the two sets with what is known for their union.
  bool consider(Units first, Units second) {
    if (--pairs_left < 0) return false;
    const auto left = best_.find(first), right = best_.find(second);
    if (left == best_.end() && right == best_.end()) return true;
    Step step{first | second, 0, 0};
    if (right == best_.end() || left == best_.end()) {
      const bool is_right = right == best_.end();
      if (!may_attach(is_right ? first : second, is_right ? second : first)) return true;
      return ask_rows(step.units, &step.rows) &&
             attach(step, is_right ? left->second : right->second, is_right ? second : first);
    }
    if (!ask_rows(step.units, &step.rows)) return false;
    const bool keeps_sides = steps_[left->second].rows >= steps_[right->second].rows;
    step.left = keeps_sides ? left->second : right->second;
    step.right = keeps_sides ? right->second : left->second;
    const Step &stream = steps_[step.left], &table = steps_[step.right];
    step.cost = stream.cost + table.cost + step.rows + build_cost * table.rows + probe_cost * stream.rows;
    if (is_better(step)) keep(step);
    return true;
  }

  bool may_attach(Units left, Units attached) const {
    return std::has_single_bit(attached) && (needs[last_unit(attached)] & ~left) == 0;
  }

  // Either side of an attachment can be built.
  bool attach(Step step, size_t left, Units attached) {
    const double own = built[last_unit(attached)], streamed = steps_[left].rows;
    const double small = own < streamed ? own : streamed, big = own < streamed ? streamed : own;
    step.cost = steps_[left].cost + step.rows + build_cost * small + probe_cost * big;
    if (!is_better(step)) return true;
    steps_.push_back({attached, own, 0});
    step.left = left;
    step.right = steps_.size() - 1;
    keep(step);
    return true;
  }

  bool is_better(const Step& step) const {
    const auto known = best_.find(step.units);
    return known == best_.end() || step.cost < steps_[known->second].cost;
  }

  PyObject* made_step(size_t index, PyObject* make) const {
    const Step& step = steps_[index];
    const Ref units(PyLong_FromUnsignedLongLong(step.units)), rows_found(PyFloat_FromDouble(step.rows));
    const Ref cost(PyFloat_FromDouble(step.cost));
    if (!units || !rows_found || !cost) return nullptr;
    const bool is_unit = step.left == kNone;
    const Ref left(is_unit ? Ref::of(Py_None).release() : made_step(step.left, make));
    const Ref right(is_unit || !left ? Ref::of(Py_None).release() : made_step(step.right, make));
    if (!left || !right) return nullptr;
    return PyObject_CallFunctionObjArgs(make, units.get(), rows_found.get(), cost.get(), left.get(),
                                        right.get(), nullptr);
  }

  std::vector<Step> steps_;
  std::unordered_map<Units, size_t> best_;
};

bool read_masks(PyObject* list, std::vector<Units>* masks) {
  for (Py_ssize_t index = 0; index < PyList_Size(list); ++index) {
    masks->push_back(PyLong_AsUnsignedLongLong(PyList_GetItem(list, index)));
  }
  return PyErr_Occurred() == nullptr;
}

bool read_doubles(PyObject* list, std::vector<double>* values) {
  for (Py_ssize_t index = 0; index < PyList_Size(list); ++index) {
    values->push_back(PyFloat_AsDouble(PyList_GetItem(list, index)));
  }
  return PyErr_Occurred() == nullptr;
}

}  // namespace

PyObject* cheapest(PyObject*, PyObject* args) {
  unsigned long long part = 0;
  PyObject *neighbours = nullptr, *needs = nullptr, *built = nullptr, *make = nullptr;
  Search search;
  if (!PyArg_ParseTuple(args, "KO!O!OO!lddO", &part, &PyList_Type, &neighbours, &PyList_Type, &needs,
                        &search.rows, &PyList_Type, &built, &search.pairs_left, &search.build_cost,
                        &search.probe_cost, &make) ||
      !read_masks(neighbours, &search.neighbours) || !read_masks(needs, &search.needs) ||
      !read_doubles(built, &search.built)) {
    return nullptr;
  }
  const size_t count = search.neighbours.size();
  if (search.needs.size() != count || search.built.size() != count || count > kUnitsMax ||
      (count < kUnitsMax && part >> count != 0)) {
    return PyErr_Format(PyExc_ValueError, "at most %zu units, of which all is said", kUnitsMax);
  }
  search.product = product_of(search.rows);
  if (search.run(part)) return search.made(part, make);
  return PyErr_Occurred() == nullptr ? Ref::of(Py_None).release() : nullptr;
}

}  // namespace bireme::orders
