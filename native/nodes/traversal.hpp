// Looking for expressions in nodes, and rebuilding nodes from changed ones; one of which nothing changes
// stays itself.
//
// No traversal of expressions enters the plans of subqueries: these are not among the parts of an expression.
#pragma once

#include "nodes/node.hpp"

namespace bireme::nodes {

// As deep as Python code may nest, and no deeper: a plan nested too deeply is a RecursionError, not the end.
class Depth {
 public:
  Depth() : entered_(Py_EnterRecursiveCall(" in a traversal of a plan") == 0) {}
  ~Depth() {
    if (entered_) Py_LeaveRecursiveCall();
  }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  bool entered_;
};

// ------------------------------------------------------------------------------------------------ collecting

// Calls `see` with each expression that is directly in the part, in order, through tuples and carriers.
template <class See>
bool each_expression(PyObject* part, const See& see) {
  if (PyTuple_Check(part)) {
    const Py_ssize_t size = tuple_size(part);
    for (Py_ssize_t index = 0; index < size; ++index) {
      if (!each_expression(tuple_item(part, index), see)) return false;
    }
    return true;
  }
  Node* const node = node_of(part);
  if (node == nullptr) return true;
  if (node->cls->is_expression()) return see(node);
  for (size_t inner : node->cls->parts) {
    if (!each_expression(node->fields()[inner], see)) return false;
  }
  return true;
}

template <class See>
bool each_operand(Node* node, const See& see) {
  for (size_t part : node->cls->parts) {
    if (!each_expression(node->fields()[part], see)) return false;
  }
  return true;
}

// ------------------------------------------------------------------------------------------------ rebuilding

template <class Change>
PyObject* rebuilt(Node* node, const Change& change);

// The part with each expression in it changed: the same object where all stay.
template <class Change>
PyObject* changed(PyObject* part, const Change& change) {
  if (PyTuple_Check(part)) {
    const Py_ssize_t size = tuple_size(part);
    Ref made;
    for (Py_ssize_t index = 0; index < size; ++index) {
      PyObject* const item = tuple_item(part, index);
      Ref fresh(changed(item, change));
      if (!fresh) return nullptr;
      if (!made) {
        if (fresh.get() == item) continue;
        made = Ref(PyTuple_New(size));
        if (!made) return nullptr;
        for (Py_ssize_t before = 0; before < index; ++before) {
          PyTuple_SetItem(made.get(), before, Ref::of(tuple_item(part, before)).release());
        }
      }
      PyTuple_SetItem(made.get(), index, fresh.release());
    }
    return made ? made.release() : Ref::of(part).release();
  }
  Node* const node = node_of(part);
  if (node == nullptr) return Ref::of(part).release();
  return node->cls->is_expression() ? change(node) : rebuilt(node, change);
}

template <class Change>
PyObject* rebuilt(Node* node, const Change& change) {
  ChangedFields fields(node);
  for (size_t part : node->cls->parts) {
    if (!fields.put(part, Ref(changed(node->fields()[part], change)))) return nullptr;
  }
  return fields.node();
}

}  // namespace bireme::nodes
