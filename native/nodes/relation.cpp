// Relations as graphs: what they read, and plans rebuilt from their leaves up. What visits relations visits a
// shared one once; the plans of subqueries in their expressions are visited only where that is said.
#include <vector>

#include "nodes/node_map.hpp"
#include "nodes/traversal.hpp"

namespace bireme::nodes {

namespace {

// Calls `see` with each relation that the node reads, in order.
template <class See>
bool each_input(Node* node, const See& see) {
  for (size_t field : node->cls->inputs) {
    PyObject* const value = node->fields()[field];
    if (!PyTuple_Check(value)) {
      if (!see(value)) return false;
      continue;
    }
    const Py_ssize_t size = tuple_size(value);
    for (Py_ssize_t index = 0; index < size; ++index) {
      if (!see(tuple_item(value, index))) return false;
    }
  }
  return true;
}

// Calls `see` with each plan of a subquery in the expressions of a node, or in the expression itself.
template <class See>
bool each_subplan(Node* node, const See& see) {
  if (!node->holds_subquery) return true;
  const Depth depth;
  if (!depth || (node->cls->role == Role::kSubquery && !each_input(node, see))) return false;
  return each_operand(node, [&](Node* part) { return each_subplan(part, see); });
}

PyObject* subplans(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  const Ref found(node == nullptr ? nullptr : PyList_New(0));
  if (!found) return nullptr;
  const auto append = [&](PyObject* plan) { return PyList_Append(found.get(), plan) == 0; };
  return each_subplan(node, append) ? PyList_AsTuple(found.get()) : nullptr;
}

// ------------------------------------------------------------------------------------------------ visiting

// The relations of a plan, each after those it reads.
class Visit {
 public:
  explicit Visit(bool subqueries) : subqueries_(subqueries), found_(PyList_New(0)) {}

  bool visit(PyObject* plan) {
    Node* const node = asked(plan);
    const Depth depth;
    if (node == nullptr || !depth || !found_) return false;
    if (seen_.find(node) != nullptr) return true;
    const auto enter = [&](PyObject* inner) { return visit(inner); };
    if (!each_input(node, enter) || (subqueries_ && !each_subplan(node, enter))) return false;
    seen_.add(node, true);
    return PyList_Append(found_.get(), plan) == 0;
  }

  PyObject* found() { return found_.release(); }

 private:
  bool subqueries_;
  NodeMap<bool> seen_;
  Ref found_;
};

// relations(plan): every relation once, also those in expressions; relations_outside_subqueries(plan):
// without these.
template <bool kSubqueries>
PyObject* relations(PyObject*, PyObject* plan) {
  Visit visit(kSubqueries);
  return visit.visit(plan) ? visit.found() : nullptr;
}

// relations_among(plan, classes): those that are of such a class.
PyObject* relations_among(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Visit visit(true);
  if (!are_two(count) || !visit.visit(args[0])) return nullptr;
  const Ref all(visit.found());
  Ref found(PyList_New(0));
  for (Py_ssize_t index = 0; found && index < PyList_Size(all.get()); ++index) {
    PyObject* const rel = PyList_GetItem(all.get(), index);
    const int is_among = PySequence_Contains(args[1], reinterpret_cast<PyObject*>(Py_TYPE(rel)));
    if (is_among < 0 || (is_among == 1 && PyList_Append(found.get(), rel) != 0)) return nullptr;
  }
  return found.release();
}

// Finds the relations that several others read.
class Readers {
  struct Known {
    int matters;
    bool twice;
  };

 public:
  explicit Readers(PyObject* among) : among_(among), found_(PyList_New(0)) {}

  // 1 where the relation, or one that it reads, is among the classes; 0 where not; -1 with an error.
  int visit(PyObject* plan) {
    Node* const node = asked(plan);
    const Depth depth;
    if (node == nullptr || !depth || !found_) return -1;
    if (Known* const known = known_.find(node)) {
      const bool is_new = !std::exchange(known->twice, true) && known->matters == 1;
      return is_new && PyList_Append(found_.get(), plan) != 0 ? -1 : known->matters;
    }
    int matters = 1;
    if (among_ != Py_None) matters = PySequence_Contains(among_, reinterpret_cast<PyObject*>(Py_TYPE(plan)));
    if (matters < 0) return -1;
    const auto read = [&](PyObject* inner) {
      const int found = visit(inner);
      if (found == 1) matters = 1;
      return found >= 0;
    };
    if (!each_input(node, read) || !each_subplan(node, [&](PyObject* inner) { return visit(inner) >= 0; })) {
      return -1;
    }
    known_.add(node, {matters, false});
    return matters;
  }

  PyObject* found() const { return PyFrozenSet_New(found_.get()); }

 private:
  PyObject* among_;
  Ref found_;
  NodeMap<Known> known_;
};

// read_twice(plan, among=None): the relations that several others read; with `among`, those that are of such
// a class or read one that is.
PyObject* read_twice(PyObject*, PyObject* args) {
  PyObject *plan = nullptr, *among = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &plan, &among)) return nullptr;
  Readers readers(among);
  return readers.visit(plan) >= 0 ? readers.found() : nullptr;
}

// ---------------------------------------------------------------------------------------------- rebuilding

// The items of a tuple, each as `change` gives it; the tuple itself where they are the same.
template <class Change>
Ref each_changed(PyObject* items, const Change& change) {
  const Py_ssize_t size = tuple_size(items);
  Ref fresh(PyTuple_New(size));
  if (!fresh) return fresh;
  bool is_new = false;
  for (Py_ssize_t index = 0; index < size; ++index) {
    PyObject* const old = tuple_item(items, index);
    PyObject* const item = change(old);
    if (item == nullptr) return Ref();
    is_new |= item != old;
    PyTuple_SetItem(fresh.get(), index, item);
  }
  return is_new ? std::move(fresh) : Ref::of(items);
}

// The node over other inputs, which `next` gives in order; the node itself where they are the same.
template <class Next>
PyObject* over_inputs(Node* node, const Next& next) {
  ChangedFields fields(node);
  for (size_t field : node->cls->inputs) {
    PyObject* const old = node->fields()[field];
    if (!fields.put(field, PyTuple_Check(old) ? each_changed(old, next) : Ref(next(old)))) return nullptr;
  }
  return fields.node();
}

// with_inputs(rel, inputs): the relation over other inputs; of a union there may be fewer or more.
PyObject* with_inputs(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* inputs = nullptr;
  Node* const node = asked_with(args, count, &inputs);
  const Ref fresh(node == nullptr ? nullptr : PySequence_Tuple(inputs));
  if (!fresh) return nullptr;
  const std::vector<size_t>& fields = node->cls->inputs;
  std::vector<PyObject*> values(node->fields().begin(), node->fields().end());
  if (fields.size() == 1 && PyTuple_Check(values[fields[0]])) {
    values[fields[0]] = fresh.get();
    return intern(*node->cls, values);
  }
  if (tuple_size(fresh.get()) != static_cast<Py_ssize_t>(fields.size())) {
    return PyErr_Format(PyExc_ValueError, "%R reads %zu relations, and is given %zd", node->object(),
                        fields.size(), tuple_size(fresh.get()));
  }
  for (size_t index = 0; index < fields.size(); ++index) {
    values[fields[index]] = tuple_item(fresh.get(), static_cast<Py_ssize_t>(index));
  }
  return intern(*node->cls, values);
}

// The node with the plans of subqueries in its expressions changed.
template <class Change>
PyObject* with_subplans(Node* node, const Change& change) {
  if (!node->holds_subquery) return Ref::of(node->object()).release();
  const Depth depth;
  if (!depth) return nullptr;
  Ref inner(rebuilt(node, [&](Node* part) { return with_subplans(part, change); }));
  if (!inner || node->cls->role != Role::kSubquery) return inner.release();
  return over_inputs(reinterpret_cast<Node*>(inner.get()), change);
}

// map_subplans(part, change): a node, or each of a tuple, with `change` applied to the plans of subqueries in
// its expressions.
PyObject* map_subplans(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  const auto change = [&](PyObject* plan) { return PyObject_CallFunctionObjArgs(args[1], plan, nullptr); };
  const auto inside = [&](PyObject* item) {
    Node* const node = asked(item);
    return node == nullptr ? nullptr : with_subplans(node, change);
  };
  return PyTuple_Check(args[0]) ? each_changed(args[0], inside).release() : inside(args[0]);
}

// Rebuilds a plan from its leaves up.
class Rebuild {
 public:
  explicit Rebuild(PyObject* change) : change_(change) {}

  PyObject* visit(PyObject* plan) {
    Node* const node = asked(plan);
    const Depth depth;
    if (node == nullptr || !depth) return nullptr;
    if (const Ref* const known = done_.find(node)) return known->shared();
    const auto rebuild = [&](PyObject* inner) { return visit(inner); };
    const Ref over(over_inputs(node, rebuild));
    const Ref whole(over ? with_subplans(reinterpret_cast<Node*>(over.get()), rebuild) : nullptr);
    Ref made(whole ? PyObject_CallFunctionObjArgs(change_, whole.get(), nullptr) : nullptr);
    if (!made) return nullptr;
    return done_.add(node, std::move(made)).shared();
  }

 private:
  PyObject* change_;
  NodeMap<Ref> done_;
};

// map_relations(plan, change): the plan rebuilt, `change` applied once to each relation, also in plans of
// subqueries.
PyObject* map_relations(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* change = nullptr;
  Node* const plan = asked_with(args, count, &change);
  return plan == nullptr ? nullptr : Rebuild(change).visit(plan->object());
}

PyMethodDef functions[] = {
    {"subplans", subplans, METH_O, nullptr},
    {"relations", relations<true>, METH_O, nullptr},
    {"relations_outside_subqueries", relations<false>, METH_O, nullptr},
    {"relations_among", of_two(relations_among), METH_FASTCALL, nullptr},
    {"read_twice", read_twice, METH_VARARGS, nullptr},
    {"with_inputs", of_two(with_inputs), METH_FASTCALL, nullptr},
    {"map_subplans", of_two(map_subplans), METH_FASTCALL, nullptr},
    {"map_relations", of_two(map_relations), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* inputs_of(PyObject* self, void*) {
  auto* const node = reinterpret_cast<Node*>(self);
  const std::vector<size_t>& inputs = node->cls->inputs;
  if (inputs.size() == 1 && PyTuple_Check(node->fields()[inputs[0]])) {
    return Ref::of(node->fields()[inputs[0]]).release();
  }
  Ref found(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
  for (size_t index = 0; found && index < inputs.size(); ++index) {
    PyTuple_SetItem(found.get(), static_cast<Py_ssize_t>(index),
                    Ref::of(node->fields()[inputs[index]]).release());
  }
  return found.release();
}

bool add_relation_traversals(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace bireme::nodes
