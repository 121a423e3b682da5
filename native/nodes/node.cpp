#include "nodes/node.hpp"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "nodes/table.hpp"

namespace bireme::nodes {

namespace {

PyTypeObject* node_type = nullptr;

std::unordered_map<PyObject*, NodeClass*>& classes() {
  static auto* const all = new std::unordered_map<PyObject*, NodeClass*>;
  return *all;
}

const NodeClass* class_of(PyObject* type) {
  const auto found = classes().find(type);
  return found == classes().end() ? nullptr : found->second;
}

// --------------------------------------------------------------------------------------------- making a node

void learn_from(PyObject* part, Node* node) {
  if (PyTuple_Check(part)) {
    const Py_ssize_t size = tuple_size(part);
    for (Py_ssize_t index = 0; index < size; ++index) learn_from(tuple_item(part, index), node);
  } else if (const Node* const inner = node_of(part)) {
    node->columns |= inner->columns;
    node->is_wide |= inner->is_wide;
    node->holds_subquery |= inner->holds_subquery;
  }
}

uint8_t held_by(PyObject* value) {
  if (PyTuple_Check(value)) {
    uint8_t held = kHoldsNothing;
    const Py_ssize_t size = tuple_size(value);
    for (Py_ssize_t index = 0; index < size; ++index) held |= held_by(tuple_item(value, index));
    return held;
  }
  const Node* const node = node_of(value);
  return node == nullptr ? uint8_t{kHoldsNothing} : node->holds;
}

// What the node is itself.
uint8_t held_itself(Node* node) {
  switch (node->cls->role) {
    case Role::kType: {
      const bool is_long = PyLong_AsLong(node->fields()[1]) > kDecimal64Digits;
      PyErr_Clear();  // as below
      PyObject* const children = node->fields().back();
      const bool is_nested = PyTuple_Check(children) && tuple_size(children) != 0;
      return (is_long ? kHoldsDecimal128 : kHoldsNothing) | (is_nested ? kHoldsNested : kHoldsNothing);
    }
    case Role::kJoin:
      return kHoldsJoin;
    case Role::kDependent:
    case Role::kSubquery:
      return kHoldsDependent;
    case Role::kOuter:
      return kHoldsOuter;
    default:
      return kHoldsNothing;
  }
}

// Which columns the node reads, and what it holds.
void learn(Node* node) {
  const std::span<PyObject*> fields = node->fields();
  node->holds = held_itself(node);
  for (PyObject* field : fields) node->holds |= held_by(field);
  node->holds_subquery = node->cls->role == Role::kSubquery;
  if (node->cls->role == Role::kReference) {
    const size_t column = PyLong_AsSize_t(fields[0]);
    PyErr_Clear();  // a position that is none is for others to complain of
    node->is_wide = column >= kWideColumn;
    node->columns = node->is_wide ? 0 : uint64_t{1} << column;
  }
  for (size_t part : node->cls->parts) learn_from(fields[part], node);
}

Ref allocate(const NodeClass& cls, std::span<PyObject* const> values) {
  const size_t bytes = sizeof(Node) + values.size() * sizeof(PyObject*);
  auto* const memory = static_cast<PyObject*>(PyObject_Malloc(bytes));
  if (memory == nullptr) return Ref(PyErr_NoMemory());
  auto* const node = reinterpret_cast<Node*>(PyObject_Init(memory, cls.type));
  node->cls = &cls;
  node->weakrefs = node->facts = node->memo = nullptr;
  node->columns = 0;
  node->is_wide = node->holds_subquery = false;
  node->holds = kHoldsNothing;
  for (size_t index = 0; index < values.size(); ++index) {
    Py_INCREF(values[index]);
    node->fields()[index] = values[index];
  }
  return Ref(node->object());
}

void weigh(std::span<PyObject* const> values) {
  for (PyObject* value : values) {
    if (PyUnicode_Check(value)) table().weigh(PyUnicode_GetLength(value));
    if (PyBytes_Check(value)) table().weigh(PyBytes_Size(value));
  }
}

// ------------------------------------------------------------------------------------------- calling a class

PyObject* refuse_call(const NodeClass& cls) {
  std::string names;
  for (PyObject* name : cls.names)
    names += (names.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8AndSize(name, nullptr));
  const Ref called(PyObject_GetAttrString(reinterpret_cast<PyObject*>(cls.type), "__name__"));
  return called ? PyErr_Format(PyExc_TypeError, "%U takes %s", called.get(), names.c_str()) : nullptr;
}

// Where the class has the field, -1 where it has none.
int place_of(const NodeClass& cls, PyObject* name) {
  for (size_t index = 0; index < cls.names.size(); ++index) {
    if (cls.names[index] == name) return static_cast<int>(index);
  }
  for (size_t index = 0; index < cls.names.size(); ++index) {
    if (PyUnicode_Compare(cls.names[index], name) == 0) return static_cast<int>(index);
  }
  return -1;
}

// Puts the values of named arguments in their places; false where one has none or is given twice.
bool place_named(const NodeClass& cls, PyObject* names, PyObject* const* given, size_t first,
                 std::span<PyObject*> values) {
  const Py_ssize_t count = names == nullptr ? 0 : tuple_size(names);
  for (Py_ssize_t at = 0; at < count; ++at) {
    const int place = place_of(cls, tuple_item(names, at));
    if (place < static_cast<int>(first)) return false;
    values[static_cast<size_t>(place)] = given[at];
  }
  return true;
}

// The node that a call with these arguments gives: first those by place, then those by name.
PyObject* called(const NodeClass& cls, PyObject* const* given, size_t by_place, PyObject* names) {
  const size_t count = cls.names.size();
  if (by_place > count) return refuse_call(cls);
  if (by_place == count && names == nullptr) return intern(cls, {given, count});
  std::array<PyObject*, kFieldsMax> places{};
  const std::span<PyObject*> values(places.data(), count);
  std::copy_n(given, by_place, places.begin());
  if (!place_named(cls, names, given + by_place, by_place, values)) return refuse_call(cls);
  const size_t required = count - cls.defaults.size();
  for (size_t index = by_place; index < count; ++index) {
    if (values[index] != nullptr) continue;
    if (index < required) return refuse_call(cls);
    values[index] = cls.defaults[index - required];
  }
  return intern(cls, values);
}

const NodeClass* asked_class(PyObject* type) {
  const NodeClass* const cls = class_of(type);
  if (cls == nullptr) PyErr_Format(PyExc_TypeError, "%R has no nodes of its own", type);
  return cls;
}

// Node classes are called this way where a version of Python lets us say so, else as below.
[[maybe_unused]] PyObject* call_at_once(PyObject* type, PyObject* const* args, size_t count,
                                        PyObject* names) {
  const NodeClass* const cls = asked_class(type);
  return cls == nullptr ? nullptr : called(*cls, args, static_cast<size_t>(PyVectorcall_NARGS(count)), names);
}

PyObject* call_node(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const NodeClass* const cls = asked_class(reinterpret_cast<PyObject*>(type));
  if (cls == nullptr) return nullptr;
  std::vector<PyObject*> given;
  for (Py_ssize_t index = 0; index < tuple_size(args); ++index) given.push_back(tuple_item(args, index));
  const size_t by_place = given.size();
  if (kwargs == nullptr) return called(*cls, given.data(), by_place, nullptr);
  const Ref names(PySequence_Tuple(kwargs));
  if (!names) return nullptr;
  for (Py_ssize_t index = 0; index < tuple_size(names.get()); ++index) {
    given.push_back(PyDict_GetItemWithError(kwargs, tuple_item(names.get(), index)));
  }
  return called(*cls, given.data(), by_place, names.get());
}

// replaced(node, **fields): the node with some fields changed.
PyObject* replaced(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  Node* const node = count == 1 ? node_of(args[0]) : nullptr;
  if (node == nullptr) return PyErr_Format(PyExc_TypeError, "replaced takes a node, and fields by name");
  const std::span<PyObject*> fields = node->fields();
  std::array<PyObject*, kFieldsMax> places{};
  std::copy(fields.begin(), fields.end(), places.begin());
  const std::span<PyObject*> values(places.data(), fields.size());
  if (!place_named(*node->cls, names, args + 1, 0, values)) return refuse_call(*node->cls);
  return intern(*node->cls, values);
}

void end_node(PyObject* self) {
  auto* const node = reinterpret_cast<Node*>(self);
  if (node->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  for (PyObject* field : node->fields()) Py_XDECREF(field);
  Py_XDECREF(node->facts);
  Py_XDECREF(node->memo);
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

int refuse_change(PyObject* self, PyObject* name, PyObject* value) {
  const Ref called(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__name__"));
  if (called) {
    PyErr_Format(PyExc_AttributeError, "%U is immutable: %R cannot be %s", called.get(), name,
                 value == nullptr ? "deleted" : "set");
  }
  return -1;
}

// `Rel.schema` and the like: what `_derive` gives, asked for once.
PyObject* derived(PyObject* self, void*) {
  auto* const node = reinterpret_cast<Node*>(self);
  if (node->memo == nullptr) {
    PyObject* const found = PyObject_CallMethod(self, "_derive", nullptr);
    if (found == nullptr) return nullptr;
    Py_XDECREF(std::exchange(node->memo, found));
  }
  Py_INCREF(node->memo);
  return node->memo;
}

// ----------------------------------------------------------------------------------------- declaring a class

std::vector<PyObject*> held_items(PyObject* tuple) {
  std::vector<PyObject*> items;
  for (Py_ssize_t index = 0; index < tuple_size(tuple); ++index) {
    items.push_back(tuple_item(tuple, index));
    Py_INCREF(items.back());
  }
  return items;
}

bool read_positions(PyObject* tuple, std::vector<size_t>* positions) {
  for (Py_ssize_t index = 0; index < tuple_size(tuple); ++index) {
    positions->push_back(PyLong_AsSize_t(tuple_item(tuple, index)));
  }
  return PyErr_Occurred() == nullptr;
}

PyObject* made_type(const char* name, PyObject* bases, const NodeClass& cls) {
  std::vector<PyMemberDef> members;
  for (size_t index = 0; index < cls.names.size(); ++index) {
    const auto offset = static_cast<Py_ssize_t>(sizeof(Node) + index * sizeof(PyObject*));
    const char* const field = PyUnicode_AsUTF8AndSize(cls.names[index], nullptr);
    if (field == nullptr) return nullptr;
    members.push_back({field, T_OBJECT_EX, offset, READONLY, nullptr});
  }
  members.push_back({nullptr, 0, 0, 0, nullptr});
  std::array slots{PyType_Slot{Py_tp_members, members.data()},
                   PyType_Slot{Py_tp_new, reinterpret_cast<void*>(&call_node)},
                   PyType_Slot{Py_tp_dealloc, reinterpret_cast<void*>(&end_node)}, PyType_Slot{0, nullptr}};
  const auto size = static_cast<int>(sizeof(Node) + cls.names.size() * sizeof(PyObject*));
  PyType_Spec spec{name, size, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  return PyType_FromSpecWithBases(&spec, bases);
}

// make_class(name, bases, names, defaults, role, parts, inputs, is_base): a class of nodes without methods;
// one that is a base has no nodes of its own. (Classes that Python makes are known to the garbage collector,
// and so all below them.)
PyObject* make_class(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject *bases = nullptr, *names = nullptr, *defaults = nullptr, *parts = nullptr, *inputs = nullptr;
  int role = 0, is_base = 0;
  if (!PyArg_ParseTuple(args, "sO!O!O!iO!O!p", &name, &PyTuple_Type, &bases, &PyTuple_Type, &names,
                        &PyTuple_Type, &defaults, &role, &PyTuple_Type, &parts, &PyTuple_Type, &inputs,
                        &is_base)) {
    return nullptr;
  }
  if (tuple_size(names) > static_cast<Py_ssize_t>(kFieldsMax)) {
    return PyErr_Format(PyExc_TypeError, "%s has more than %d fields", name, static_cast<int>(kFieldsMax));
  }
  auto* const cls = new NodeClass;
  cls->role = static_cast<Role>(role);
  cls->names = held_items(names);
  cls->defaults = held_items(defaults);
  if (!read_positions(parts, &cls->parts) || !read_positions(inputs, &cls->inputs)) return nullptr;
  PyObject* const type = made_type(name, bases, *cls);
  if (type == nullptr) return nullptr;
  cls->type = reinterpret_cast<PyTypeObject*>(type);
#ifndef Py_LIMITED_API
  cls->type->tp_vectorcall = &call_at_once;
#endif
  if (is_base == 0) {
    Py_INCREF(type);
    classes()[type] = cls;
  }
  return type;
}

// ---------------------------------------------------------------------------------------- what is remembered

// remember(node, value) keeps `value` as the node's `_memo`, note(node, value) as its `_facts`.
template <PyObject* Node::* kPlace>
PyObject* keep(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* value = nullptr;
  Node* const node = asked_with(args, count, &value);
  if (node == nullptr) return nullptr;
  Py_INCREF(value);
  Py_XDECREF(std::exchange(node->*kPlace, value));
  Py_RETURN_NONE;
}

PyObject* drop_unused(PyObject*, PyObject*) {
  table().drop_unused();
  Py_RETURN_NONE;
}

PyObject* node_count(PyObject*, PyObject*) {
  return PyLong_FromLongLong(table().size());
}

PyMethodDef functions[] = {
    {"make_class", make_class, METH_VARARGS, nullptr},
    {"replaced", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&replaced)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"remember", of_two(&keep<&Node::memo>), METH_FASTCALL, nullptr},
    {"note", of_two(&keep<&Node::facts>), METH_FASTCALL, nullptr},
    {"drop_unused", drop_unused, METH_NOARGS, nullptr},
    {"node_count", node_count, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Node* node_of(PyObject* object) {
#ifndef Py_LIMITED_API
  // Nearly all that are asked about are of our own classes, or of built-in ones.
  const PyTypeObject* const type = Py_TYPE(object);
  if (type->tp_dealloc == &end_node) return reinterpret_cast<Node*>(object);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return nullptr;
#endif
  return PyType_IsSubtype(Py_TYPE(object), node_type) ? reinterpret_cast<Node*>(object) : nullptr;
}

PyObject* intern(const NodeClass& cls, std::span<PyObject* const> values) {
  uint64_t hash = reinterpret_cast<uintptr_t>(&cls) >> 4;
  for (PyObject* value : values) {
    uint64_t more = 0;
    if (!hash_of(value, &more)) return nullptr;
    hash = mixed(hash, more);
  }
  Node* const found = table().find(cls, values, hash);
  if (found != nullptr) return Ref::of(found->object()).release();
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref made = allocate(cls, values);
  if (!made) return nullptr;
  auto* const node = reinterpret_cast<Node*>(made.get());
  learn(node);
  table().add(node, hash);
  weigh(values);
  table().drop_when_grown();
  return made.release();
}

bool add_node_type(PyObject* module) {
  static PyMemberDef members[] = {
      {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, nullptr},
      {"_facts", T_OBJECT_EX, offsetof(Node, facts), READONLY, nullptr},
      {"_memo", T_OBJECT_EX, offsetof(Node, memo), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyGetSetDef properties[] = {
      {"derived", derived, nullptr, "What `_derive` gives, asked for once.", nullptr},
      {"inputs", inputs_of, nullptr, "The relations that a node reads, in order.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {Py_tp_new, reinterpret_cast<void*>(&call_node)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&end_node)},
      {Py_tp_setattro, reinterpret_cast<void*>(&refuse_change)},
      {0, nullptr},
  };
  static PyType_Spec spec{"bireme.data._nodes.Node", sizeof(Node), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  node_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "Node", type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace bireme::nodes
