// Nodes: immutable objects of named fields of which equal ones are the same object (hash-consed).
//
// A class of nodes is declared in Python (data/node.py) and made here, so that its objects have one layout:
// what is known of the node, then its fields in the order in which the class is called with them. Nodes hold
// only values and other nodes, which were there before them: they are in no cycle, and the garbage collector
// need not know of them.
//
// Everything here runs with the GIL held. The limited API is kept to, so that one binary serves later
// versions of Python.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nodes/reference.hpp"

namespace bireme::nodes {

// What a class of nodes is, to those that look for expressions in nodes.
enum class Role {
  kOther,
  kExpression,
  kReference,  // an expression that stands for the input's column at the position that is its first field
  kSubquery,   // an expression over a plan
  kCarrier,    // holds expressions, and is none
  kType,       // a type of columns: its second field is the digits of a decimal, its last what it is made of
  kCall,       // an expression of a function, whose name is the first field, of the second
  kJoin,       // a relation of pairs of rows
  kDependent,  // a relation of pairs of rows, of which the second is read anew for each of the first
  kOuter,      // an expression that stands for a column of a row around a subquery
};

// What is somewhere in a node or in what it reads, plans of subqueries included.
enum Holds : uint8_t {
  kHoldsNothing = 0,
  kHoldsDecimal128 = 1,  // a type that 64 bits do not hold
  kHoldsJoin = 2,
  kHoldsDependent = 4,  // a dependent join, or any subquery
  kHoldsOuter = 8,      // a column of a row around a subquery
  kHoldsNested = 16,    // a type that is made of others
};

// A class of nodes; such classes live as long as the process.
struct NodeClass {
  PyTypeObject* type = nullptr;
  Role role = Role::kOther;
  std::vector<PyObject*> names;
  std::vector<PyObject*> defaults;  // of the last fields, of which alone there are any
  std::vector<size_t> parts;        // the fields that hold expressions or carriers, or tuples of them
  std::vector<size_t> inputs;  // the fields that hold relations (of a subquery: its plan), or tuples of them

  bool is_expression() const {
    return role == Role::kExpression || role == Role::kReference || role == Role::kSubquery ||
           role == Role::kCall || role == Role::kOuter;
  }
};

struct Node {
  // clang-format off
  PyObject_HEAD
      // clang-format on
      const NodeClass* cls;
  PyObject* weakrefs;
  PyObject* facts;  // what is derived from the node once and for all
  PyObject* memo;
  uint64_t columns;     // those that its parts read, where all are below kWideColumn
  bool is_wide;         // some column is not
  bool holds_subquery;  // in its parts
  uint8_t holds;        // of `Holds`

  std::span<PyObject*> fields() {
    return {reinterpret_cast<PyObject**>(reinterpret_cast<char*>(this) + sizeof(Node)), cls->names.size()};
  }
  bool reads_columns() const { return columns != 0 || is_wide; }
  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
};

constexpr size_t kFieldsMax = 16;
constexpr uint64_t kWideColumn = 63;
constexpr long kDecimal64Digits = 18;

// The node, or nullptr (without an error) for an object that is none.
Node* node_of(PyObject* object);

// The node of a class with these fields: the one that exists, or a new one. A new reference, or nullptr with
// an error.
PyObject* intern(const NodeClass& cls, std::span<PyObject* const> values);

// The node, or nullptr with a TypeError.
Node* asked(PyObject* object);

// Whether there are two arguments; false with an error.
bool are_two(Py_ssize_t count);

// The node that is the first of two arguments, and the other one; or nullptr with an error.
Node* asked_with(PyObject* const* args, Py_ssize_t count, PyObject** other);

// How functions of the module that take arguments in an array are listed.
using Two = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
inline PyCFunction of_two(Two function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// The fields of a node, some of which are changed.
class ChangedFields {
 public:
  explicit ChangedFields(Node* node) : node_(node) { std::ranges::copy(node->fields(), values_.begin()); }
  ~ChangedFields() {
    for (size_t index = 0; index < owned_count_; ++index) Py_DECREF(owned_[index]);
  }
  ChangedFields(const ChangedFields&) = delete;
  ChangedFields& operator=(const ChangedFields&) = delete;

  // Puts another value into a field, each at most once; false for none, which is an error.
  bool put(size_t field, Ref value) {
    if (!value) return false;
    is_changed_ |= value.get() != values_[field];
    values_[field] = owned_[owned_count_++] = value.release();
    return true;
  }

  // The node of these fields: the one they are from, where all are as they were.
  PyObject* node() const {
    if (!is_changed_) return Ref::of(node_->object()).release();
    return intern(*node_->cls, {values_.data(), node_->fields().size()});
  }

 private:
  Node* node_;
  std::array<PyObject*, kFieldsMax> values_;
  std::array<PyObject*, kFieldsMax> owned_;
  size_t owned_count_ = 0;
  bool is_changed_ = false;
};

// Adds the base class, and the function that makes classes, to the module.
bool add_node_type(PyObject* module);

// Adds what looks at the expressions in nodes, and what rebuilds them; and the same for relations.
bool add_traversals(PyObject* module);
bool add_relation_traversals(PyObject* module);

// Adds the class of enumerations (data/choice.py).
bool add_choice_type(PyObject* module);

// The relations that a node reads, as a tuple: a property of nodes.
PyObject* inputs_of(PyObject* self, void*);

inline Py_ssize_t tuple_size(PyObject* tuple) {
#ifdef Py_LIMITED_API
  return PyTuple_Size(tuple);
#else
  return PyTuple_GET_SIZE(tuple);
#endif
}

inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t index) {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, index);
#else
  return PyTuple_GET_ITEM(tuple, index);
#endif
}

}  // namespace bireme::nodes
