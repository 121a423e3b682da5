// Counts, exact and floating sums, and moments per group.
//
// Rule: an accumulator has a cell per group. It takes a vector of dense arguments (NULLs are gone) and of the
// group of each. Exact sums start as 64 bits and become 128 bits where a cell overflows; what leaves 128 bits
// is an Overflow. Few groups are added up in lanes first, because adding again and again to one cell waits
// for the previous store.
#pragma once

#include <cstdint>

#include "arrow/type.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_slots.hpp"

namespace bireme {

inline constexpr int64_t kFewGroups = 32;

class Counts {
 public:
  void reserve(int64_t groups) { cells_.reserve(groups); }
  void grow(int64_t groups) { cells_.resize(groups, 0); }
  // Adds one per row.
  void add(const uint32_t* groups, int64_t rows) noexcept;
  void add(const int64_t* counts, const uint32_t* groups, int64_t rows) noexcept;
  int64_t operator[](uint32_t group) const { return cells_[group]; }
  int64_t* data() { return cells_.data(); }
  bool empty() const { return cells_.empty(); }
  int64_t nbytes() const { return cells_.nbytes(); }

 private:
  Cells<int64_t> cells_;
};

class ExactSums {
 public:
  void reserve(int64_t groups) { narrow_.reserve(groups); }
  void grow(int64_t groups);
  void add(const int64_t* values, const uint32_t* groups, int64_t rows);
  void add_unsigned(const uint64_t* values, const uint32_t* groups, int64_t rows);
  void add_wide(const int128* values, const uint32_t* groups, int64_t rows);
  // The sums, if all fit into 64 bits; else null.
  const int64_t* narrow() const { return wide_.empty() ? narrow_.data() : nullptr; }
  int128 operator[](uint32_t group) const { return wide_.empty() ? int128{narrow_[group]} : wide_[group]; }
  int64_t nbytes() const { return narrow_.nbytes() + wide_.nbytes(); }

 private:
  void widen();
  bool add_few(const int64_t* values, const uint32_t* groups, int64_t rows);
  void add_to_one(const int64_t* values, int64_t rows);
  void add_sum(uint32_t group, int128 sum);
  void add_to(uint32_t group, int128 value);

  int64_t groups_ = 0;
  Cells<int64_t> narrow_;
  Cells<int128> wide_;  // once in use, instead of `narrow_`
};

class FloatSums {
 public:
  void reserve(int64_t groups) { cells_.reserve(groups); }
  void grow(int64_t groups) { cells_.resize(groups, 0.0); }
  void add(const double* values, const uint32_t* groups, int64_t rows) noexcept;
  double operator[](uint32_t group) const { return cells_[group]; }
  int64_t nbytes() const { return cells_.nbytes(); }

 private:
  Cells<double> cells_;
};

// Count, mean and sum of squared deviations.
struct Moments {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;
};

class MomentSums {
 public:
  void grow(int64_t groups) { cells_.resize(groups, Moments{}); }
  void add(const double* values, const uint32_t* groups, int64_t rows) noexcept;
  void merge(uint32_t group, const Moments& other) noexcept;
  const Moments& operator[](uint32_t group) const { return cells_[group]; }
  int64_t nbytes() const { return cells_.nbytes(); }

 private:
  Cells<Moments> cells_;
};

}  // namespace bireme
