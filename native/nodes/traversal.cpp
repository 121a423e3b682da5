#include "nodes/traversal.hpp"

#include <bit>

#include "nodes/node_map.hpp"

namespace bireme::nodes {

namespace {

PyObject* operands(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  const Ref found(node == nullptr ? nullptr : PyList_New(0));
  if (!found) return nullptr;
  const auto append = [&](Node* part) { return PyList_Append(found.get(), part->object()) == 0; };
  return each_operand(node, append) ? PyList_AsTuple(found.get()) : nullptr;
}

bool append_all(PyObject* list, Node* node) {
  const Depth depth;
  if (!depth || PyList_Append(list, node->object()) != 0) return false;
  return each_operand(node, [&](Node* part) { return append_all(list, part); });
}

PyObject* walk(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  Ref found(node == nullptr ? nullptr : PyList_New(0));
  return found && append_all(found.get(), node) ? found.release() : nullptr;
}

bool calls(Node* node, PyObject* function) {
  return node->cls->role == Role::kCall && PyUnicode_Compare(node->fields()[0], function) == 0;
}

bool append_flattened(PyObject* list, NodeMap<bool>* seen, Node* node, PyObject* function) {
  const Depth depth;
  if (!depth) return false;
  if (calls(node, function)) {
    return each_expression(node->fields()[1],
                           [&](Node* part) { return append_flattened(list, seen, part, function); });
  }
  if (seen->find(node) != nullptr) return true;
  seen->add(node, true);
  return PyList_Append(list, node->object()) == 0;
}

// flattened(node, function): what a call of the function, nested or not, is of.
PyObject* flattened(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* function = nullptr;
  Node* const node = asked_with(args, count, &function);
  if (node == nullptr) return nullptr;
  if (!PyUnicode_Check(function)) return PyErr_Format(PyExc_TypeError, "%R is not a name", function);
  Ref found(PyList_New(0));
  if (found && !calls(node, function)) {
    return PyList_Append(found.get(), node->object()) == 0 ? found.release() : nullptr;
  }
  NodeMap<bool> seen;
  return found && append_flattened(found.get(), &seen, node, function) ? found.release() : nullptr;
}

// ---------------------------------------------------------------------------------------------- columns read

// The mask of a node with a column beyond the machine word, kept as its memo.
PyObject* wide_mask(Node* node) {
  const Depth depth;
  if (!depth) return nullptr;
  if (node->memo == nullptr || !node->cls->is_expression()) {
    Ref mask(PyLong_FromUnsignedLongLong(node->columns));
    if (node->cls->role == Role::kReference) {
      const Ref one(PyLong_FromLong(1));
      mask = Ref(PyNumber_Lshift(one.get(), node->fields()[0]));
    }
    const auto add = [&](Node* part) {
      const Ref inner(part->is_wide ? wide_mask(part) : PyLong_FromUnsignedLongLong(part->columns));
      mask = Ref(inner ? PyNumber_Or(mask.get(), inner.get()) : nullptr);
      return static_cast<bool>(mask);
    };
    if (!mask || !each_operand(node, add)) return nullptr;
    if (!node->cls->is_expression()) return mask.release();
    Py_XDECREF(std::exchange(node->memo, mask.release()));
  }
  return Ref::of(node->memo).release();
}

PyObject* column_mask(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  if (node == nullptr) return nullptr;
  return node->is_wide ? wide_mask(node) : PyLong_FromUnsignedLongLong(node->columns);
}

// mask_of(nodes): the columns that any of them reads.
PyObject* mask_of(PyObject*, PyObject* nodes) {
  const Ref each(PySequence_Fast(nodes, "nodes are asked for"));
  if (!each) return nullptr;
  uint64_t columns = 0;
  Ref wide;
  for (Py_ssize_t index = 0; index < PySequence_Size(each.get()); ++index) {
    const Ref object(PySequence_GetItem(each.get(), index));
    Node* const node = object ? asked(object.get()) : nullptr;
    if (node == nullptr) return nullptr;
    columns |= node->columns;
    if (!node->is_wide) continue;
    Ref mask(wide_mask(node));
    wide = Ref(mask && wide ? PyNumber_Or(wide.get(), mask.get()) : mask.release());
    if (!wide) return nullptr;
  }
  Ref mask(PyLong_FromUnsignedLongLong(columns));
  return mask && wide ? PyNumber_Or(wide.get(), mask.get()) : mask.release();
}

// column_positions(exprs): the positions of those expressions of a tuple that are columns, None for others.
PyObject* column_positions(PyObject*, PyObject* exprs) {
  if (!PyTuple_Check(exprs)) return PyErr_Format(PyExc_TypeError, "%R is not a tuple", exprs);
  const Py_ssize_t size = tuple_size(exprs);
  Ref found(PyTuple_New(size));
  for (Py_ssize_t index = 0; found && index < size; ++index) {
    Node* const node = asked(tuple_item(exprs, index));
    if (node == nullptr) return nullptr;
    PyObject* const position = node->cls->role == Role::kReference ? node->fields()[0] : Py_None;
    PyTuple_SetItem(found.get(), index, Ref::of(position).release());
  }
  return found.release();
}

bool append_positions(PyObject* list, uint64_t mask, size_t first) {
  for (; mask != 0; mask &= mask - 1) {
    const Ref position(PyLong_FromSize_t(first + static_cast<size_t>(std::countr_zero(mask))));
    if (!position || PyList_Append(list, position.get()) != 0) return false;
  }
  return true;
}

// columns_in(mask): the positions of the bits that are set, ascending.
PyObject* columns_in(PyObject*, PyObject* mask) {
  Ref found(PyList_New(0));
  if (!found || !PyLong_Check(mask)) {
    return found ? PyErr_Format(PyExc_TypeError, "%R is not a mask", mask) : nullptr;
  }
  const uint64_t word = PyLong_AsUnsignedLongLong(mask);
  if (PyErr_Occurred() == nullptr) {
    return append_positions(found.get(), word, 0) ? found.release() : nullptr;
  }
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return nullptr;
  PyErr_Clear();
  const Ref bits(PyLong_FromLong(64)), zero(PyLong_FromLong(0));
  Ref left = Ref::of(mask);
  if (PyObject_RichCompareBool(left.get(), zero.get(), Py_LT) != 0) {
    return PyErr_Format(PyExc_ValueError, "%R is not a mask", mask);
  }
  for (size_t first = 0; PyObject_IsTrue(left.get()) == 1; first += 64) {
    if (!append_positions(found.get(), PyLong_AsUnsignedLongLongMask(left.get()), first)) return nullptr;
    left = Ref(PyNumber_Rshift(left.get(), bits.get()));
    if (!left) return nullptr;
  }
  return found.release();
}

template <Holds kWhat>
PyObject* holds(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  return node == nullptr ? nullptr : PyBool_FromLong((node->holds & kWhat) != 0);
}

PyObject* holds_subquery(PyObject*, PyObject* object) {
  Node* const node = asked(object);
  return node == nullptr ? nullptr : PyBool_FromLong(node->holds_subquery);
}

// ------------------------------------------------------------------------------------------------ rebuilding

// map_operands(node, change): the node with `change` applied to each expression directly in it.
PyObject* map_operands(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* callable = nullptr;
  Node* const node = asked_with(args, count, &callable);
  const Depth depth;
  if (node == nullptr || !depth) return nullptr;
  return rebuilt(node,
                 [&](Node* part) { return PyObject_CallFunctionObjArgs(callable, part->object(), nullptr); });
}

PyObject* mapped(Node* node, PyObject* callable) {
  const Depth depth;
  if (!depth) return nullptr;
  const Ref inner(rebuilt(node, [&](Node* part) { return mapped(part, callable); }));
  return inner ? PyObject_CallFunctionObjArgs(callable, inner.get(), nullptr) : nullptr;
}

// map_expr(node, change): the expression rebuilt from the leaves up, `change` applied to every part after its
// operands.
PyObject* map_expr(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* callable = nullptr;
  Node* const node = asked_with(args, count, &callable);
  return node == nullptr ? nullptr : mapped(node, callable);
}

// The node with each reference in it changed; what reads no column is not looked at.
template <class Change>
PyObject* with_references(Node* node, const Change& change) {
  if (node->cls->role == Role::kReference) return change(node);
  if (!node->reads_columns()) return Ref::of(node->object()).release();
  const Depth depth;
  if (!depth) return nullptr;
  return rebuilt(node, [&](Node* part) { return with_references(part, change); });
}

// A node, or a tuple of nodes, with each reference in it changed.
template <class Change>
PyObject* with_all_references(PyObject* part, const Change& change) {
  if (!PyTuple_Check(part) && asked(part) == nullptr) return nullptr;
  return changed(part, [&](Node* node) { return with_references(node, change); });
}

PyObject* moved_to(Node* reference, PyObject* position) {
  if (position == nullptr) return nullptr;
  ChangedFields fields(reference);
  fields.put(0, Ref::of(position));
  return fields.node();
}

// remap(part, positions): with column i moved to positions[i].
PyObject* remap(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  return with_all_references(args[0], [&](Node* reference) {
    const Ref position(PyObject_GetItem(args[1], reference->fields()[0]));
    return moved_to(reference, position.get());
  });
}

// shift(part, by): with every column moved by `by` positions.
PyObject* shift(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  return with_all_references(args[0], [&](Node* reference) {
    const Ref position(PyNumber_Add(reference->fields()[0], args[1]));
    return moved_to(reference, position.get());
  });
}

// substitute(part, replacements): with column i replaced by replacements[i].
PyObject* substitute(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  return with_all_references(
      args[0], [&](Node* reference) { return PyObject_GetItem(args[1], reference->fields()[0]); });
}

PyMethodDef functions[] = {
    {"operands", operands, METH_O, nullptr},
    {"walk", walk, METH_O, nullptr},
    {"column_mask", column_mask, METH_O, nullptr},
    {"flattened", of_two(flattened), METH_FASTCALL, nullptr},
    {"mask_of", mask_of, METH_O, nullptr},
    {"column_positions", column_positions, METH_O, nullptr},
    {"columns_in", columns_in, METH_O, nullptr},
    {"holds_subquery", holds_subquery, METH_O, nullptr},
    {"holds_decimal128", holds<kHoldsDecimal128>, METH_O, nullptr},
    {"holds_join", holds<kHoldsJoin>, METH_O, nullptr},
    {"holds_dependent", holds<kHoldsDependent>, METH_O, nullptr},
    {"holds_outer", holds<kHoldsOuter>, METH_O, nullptr},
    {"holds_nested", holds<kHoldsNested>, METH_O, nullptr},
    {"map_operands", of_two(map_operands), METH_FASTCALL, nullptr},
    {"map_expr", of_two(map_expr), METH_FASTCALL, nullptr},
    {"remap", of_two(remap), METH_FASTCALL, nullptr},
    {"shift", of_two(shift), METH_FASTCALL, nullptr},
    {"substitute", of_two(substitute), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Node* asked(PyObject* object) {
  Node* const node = node_of(object);
  if (node == nullptr) PyErr_Format(PyExc_TypeError, "%R is not a node", object);
  return node;
}

bool are_two(Py_ssize_t count) {
  if (count != 2) PyErr_Format(PyExc_TypeError, "two arguments are needed, and %zd are given", count);
  return count == 2;
}

Node* asked_with(PyObject* const* args, Py_ssize_t count, PyObject** other) {
  if (!are_two(count)) return nullptr;
  *other = args[1];
  return asked(args[0]);
}

bool add_traversals(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace bireme::nodes
