// The search for the cheapest order of a join graph of up to 64 units, and the rows of sets of units.
//
// What a set of units gives, and what an order costs, is said in plan/rules/order_joins_sizes.py and
// order_joins_search.py; here it is computed. Sets are masks. Everything runs with the GIL held.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "nodes/reference.hpp"

namespace bireme::orders {

using nodes::Ref;
using Units = uint64_t;

constexpr size_t kUnitsMax = 64;

// The rows of a set: a product of factors, of which each is about the sets that hold its units.
class Product {
 public:
  struct Factor {
    Units units;
    Ref wide;  // the mask as Python has it
    double log;
  };

  // False with an error for arguments of other types.
  bool read(PyObject* single, PyObject* classes, PyObject* factors, double log_max);

  bool is_wide() const { return single_.size() > kUnitsMax; }
  double rows(Units units) const;

  // For any number of units; remembered. nullptr with an error.
  PyObject* rows_of_any(PyObject* units);

 private:
  template <class Within>
  double rows_within(const Within& within) const;

  std::vector<Factor> single_;
  std::vector<std::vector<Factor>> classes_;  // ascending: all members but the first that is there divide
  std::vector<Factor> factors_;
  double log_max_ = 0;
  Ref known_;
};

// The product behind a function made by `product`, or nullptr.
const Product* product_of(PyObject* function);

// product(single, classes, factors, log_max): a function that gives the rows of a mask of units.
PyObject* product(PyObject*, PyObject* args);

// cheapest(part, neighbours, needs, rows, built, pairs_max, build_cost, probe_cost, step): the cheapest
// order, made by calls of `step`; None where more than `pairs_max` pairs would have to be compared.
PyObject* cheapest(PyObject*, PyObject* args);

}  // namespace bireme::orders
