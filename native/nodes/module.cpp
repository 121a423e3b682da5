// The Python module bireme.data._nodes: see node.hpp.
#include "nodes/node.hpp"

PyMODINIT_FUNC PyInit__nodes() {
  static PyModuleDef definition{
      PyModuleDef_HEAD_INIT, "_nodes", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
  bireme::nodes::Ref module(PyModule_Create(&definition));
  if (!module || !bireme::nodes::add_node_type(module.get()) ||
      !bireme::nodes::add_traversals(module.get()) || !bireme::nodes::add_relation_traversals(module.get()) ||
      !bireme::nodes::add_choice_type(module.get())) {
    return nullptr;
  }
  return module.release();
}
