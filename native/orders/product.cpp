#include <algorithm>
#include <cmath>
#include <memory>

#include "orders/orders.hpp"

namespace bireme::orders {

namespace {

constexpr const char* kCapsule = "bireme.plan.rules._orders.Product";

bool read_double(PyObject* object, double* value) {
  *value = PyFloat_AsDouble(object);
  return *value != -1.0 || PyErr_Occurred() == nullptr;
}

// A list of pairs of a mask and a logarithm.
bool read_factors(PyObject* list, bool is_wide, std::vector<Product::Factor>* factors) {
  const Py_ssize_t size = PyList_Size(list);
  for (Py_ssize_t index = 0; index < size; ++index) {
    PyObject* const pair = PyList_GetItem(list, index);
    PyObject *mask = nullptr, *log = nullptr;
    Product::Factor factor{};
    if (!PyArg_ParseTuple(pair, "OO", &mask, &log) || !read_double(log, &factor.log)) return false;
    factor.units = is_wide ? 0 : PyLong_AsUnsignedLongLong(mask);
    factor.wide = Ref::of(mask);
    factors->push_back(std::move(factor));
  }
  return PyErr_Occurred() == nullptr;
}

bool read_single(PyObject* list, std::vector<Product::Factor>* single) {
  const Py_ssize_t size = PyList_Size(list);
  const Ref one(PyLong_FromLong(1));
  for (Py_ssize_t index = 0; index < size; ++index) {
    const Ref place(PyLong_FromSsize_t(index));
    Product::Factor factor{Units{1} << (static_cast<size_t>(index) % kUnitsMax),
                           Ref(PyNumber_Lshift(one.get(), place.get())), 0};
    if (!factor.wide || !read_double(PyList_GetItem(list, index), &factor.log)) return false;
    single->push_back(std::move(factor));
  }
  return PyErr_Occurred() == nullptr;
}

void end_product(PyObject* capsule) {
  delete static_cast<Product*>(PyCapsule_GetPointer(capsule, kCapsule));
}

PyObject* rows_of(PyObject* capsule, PyObject* units) {
  auto* const product = static_cast<Product*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (product == nullptr || product->is_wide()) return product ? product->rows_of_any(units) : nullptr;
  const Units mask = PyLong_AsUnsignedLongLong(units);
  return PyErr_Occurred() == nullptr ? PyFloat_FromDouble(product->rows(mask)) : nullptr;
}

PyMethodDef rows_method{"rows", rows_of, METH_O, "The rows of the joined units, at least one."};

}  // namespace

template <class Within>
double Product::rows_within(const Within& within) const {
  double rows = 0;
  for (const Factor& factor : single_) {
    if (within(factor)) rows += factor.log;
  }
  for (const std::vector<Factor>& members : classes_) {
    bool is_first = true;
    for (const Factor& member : members) {
      if (!within(member)) continue;
      if (!is_first) rows -= member.log;
      is_first = false;
    }
  }
  for (const Factor& factor : factors_) {
    if (within(factor)) rows += factor.log;
  }
  return std::exp(std::min(std::max(0.0, rows), log_max_));
}

double Product::rows(Units units) const {
  return rows_within([=](const Factor& factor) { return (factor.units & ~units) == 0; });
}

PyObject* Product::rows_of_any(PyObject* units) {
  if (PyObject* const found = PyDict_GetItemWithError(known_.get(), units)) return Ref::of(found).release();
  const double rows = rows_within([=](const Factor& factor) {
    const Ref common(PyNumber_And(factor.wide.get(), units));
    return common && PyObject_RichCompareBool(common.get(), factor.wide.get(), Py_EQ) == 1;
  });
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref found(PyFloat_FromDouble(rows));
  return found && PyDict_SetItem(known_.get(), units, found.get()) == 0 ? found.release() : nullptr;
}

bool Product::read(PyObject* single, PyObject* classes, PyObject* factors, double log_max) {
  log_max_ = log_max;
  known_ = Ref(PyDict_New());
  if (!known_ || !read_single(single, &single_) || !read_factors(factors, is_wide(), &factors_)) return false;
  const Py_ssize_t size = PyList_Size(classes);
  for (Py_ssize_t index = 0; index < size; ++index) {
    if (!read_factors(PyList_GetItem(classes, index), is_wide(), &classes_.emplace_back())) return false;
  }
  return PyErr_Occurred() == nullptr;
}

const Product* product_of(PyObject* function) {
  PyObject* const self = PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : nullptr;
  if (self == nullptr || PyCapsule_IsValid(self, kCapsule) == 0) return nullptr;
  return static_cast<const Product*>(PyCapsule_GetPointer(self, kCapsule));
}

PyObject* product(PyObject*, PyObject* args) {
  PyObject *single = nullptr, *classes = nullptr, *factors = nullptr;
  double log_max = 0;
  if (!PyArg_ParseTuple(args, "O!O!O!d", &PyList_Type, &single, &PyList_Type, &classes, &PyList_Type,
                        &factors, &log_max)) {
    return nullptr;
  }
  auto made = std::make_unique<Product>();
  if (!made->read(single, classes, factors, log_max)) return nullptr;
  const Ref capsule(PyCapsule_New(made.get(), kCapsule, end_product));
  if (!capsule) return nullptr;
  static_cast<void>(made.release());  // the capsule's now
  return PyCFunction_New(&rows_method, capsule.get());
}

}  // namespace bireme::orders
