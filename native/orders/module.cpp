// The Python module bireme.plan.rules._orders: see orders.hpp.
#include "orders/orders.hpp"

PyMODINIT_FUNC PyInit__orders() {
  static PyMethodDef functions[] = {
      {"product", bireme::orders::product, METH_VARARGS, nullptr},
      {"cheapest", bireme::orders::cheapest, METH_VARARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyModuleDef definition{
      PyModuleDef_HEAD_INIT, "_orders", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
  bireme::nodes::Ref module(PyModule_Create(&definition));
  constexpr long kUnitsMax = bireme::orders::kUnitsMax;
  return module && PyModule_AddIntConstant(module.get(), "UNITS_MAX", kUnitsMax) == 0 ? module.release()
                                                                                      : nullptr;
}
