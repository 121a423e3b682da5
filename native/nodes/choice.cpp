// The class of enumerations whose members are looked up like attributes of any other class.
//
// Up to Python 3.11, EnumType has a `__getattr__`, so that every `Kind.DECIMAL` goes through the slow way of
// looking up an attribute, ten times as long as another one; planning does so a thousand times for each
// query. Members are ordinary attributes of their class, so the plain way finds them.
#include "nodes/node.hpp"

namespace bireme::nodes {

bool add_choice_type(PyObject* module) {
  const Ref enums(PyImport_ImportModule("enum"));
  const Ref base(enums ? PyObject_GetAttrString(enums.get(), "EnumType") : nullptr);
  const Ref bases(base ? PyTuple_Pack(1, base.get()) : nullptr);
  if (!bases) return false;
  PyType_Slot slots[] = {{Py_tp_getattro, PyType_GetSlot(&PyType_Type, Py_tp_getattro)}, {0, nullptr}};
  PyType_Spec spec{"bireme.data._nodes.ChoiceType", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Ref type(PyType_FromSpecWithBases(&spec, bases.get()));
  return type && PyModule_AddObjectRef(module, "ChoiceType", type.get()) == 0;
}

}  // namespace bireme::nodes
