// What aggregates share: the counts, sums, moments and ranked values of one argument column.
//
// Rule: sum(x), avg(x), count(x) and stddev(x) read the same cells, so x is read once a vector. Counts of an
// argument are kept as what they differ by from the rows of the group: nothing at all while the argument has
// no NULLs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arrow/column.hpp"
#include "kernels/group_ranked.hpp"
#include "kernels/group_sums.hpp"

namespace bireme {

// The rows of a vector where an argument is valid.
struct ArgumentRows {
  // Reads rows [begin, begin + rows) of the column, of which row `begin + i` belongs to `groups[i]`.
  void read(const Column& column, int64_t begin, int64_t rows, const uint32_t* groups);

  const Column* column = nullptr;
  int64_t begin = 0;
  int64_t rows = 0;  // in the vector
  bool has_nulls = false;
  int64_t count = 0;                     // valid ones
  const uint32_t* groups = nullptr;      // theirs
  const uint32_t* all_groups = nullptr;  // of all rows

  // Where the valid rows are in the column.
  const int64_t* positions();
  // Which rows of the vector are valid; only if there are NULLs.
  const uint16_t* chosen() const { return chosen_; }

 private:
  uint32_t chosen_groups_[kVectorRows];
  uint16_t chosen_[kVectorRows];
  bool listed_ = false;
  int64_t positions_[kVectorRows];
};

// Valid numbers as they are summed. Which of the pointers is set depends on the type.
struct ArgumentNumbers {
  void read(const ArgumentRows& valid);

  const int64_t* exact = nullptr;
  const uint64_t* unsigned_exact = nullptr;
  const int128* wide = nullptr;
  const double* floats = nullptr;

 private:
  union {
    uint64_t words[kVectorRows];
    int128 wides[kVectorRows];
  } scratch_;
};

class Argument {
 public:
  Argument(int position, Type type) : position_(position), type_(std::move(type)) {}

  int position() const { return position_; }
  const Type& type() const { return type_; }
  void keep_sum();
  void keep_moments() { moments_.emplace(); }
  void keep_ranked();

  void grow(int64_t groups);
  void reserve(int64_t groups);
  int64_t nbytes() const;
  // Takes a vector of rows.
  void add(const ArgumentRows& valid);
  // Takes states. `counts` of each row of the vector, beside `rows_added` which each group's rows grew by
  // (null: none).
  void merge_counts(const int64_t* counts, const int64_t* rows_added, const uint32_t* groups, int64_t rows);
  void merge_sums(const ArgumentRows& sums);
  void merge_moments(const Column* states, int64_t begin, int64_t rows, const uint32_t* groups);

  int64_t count(uint32_t group, int64_t rows) const { return delta_.empty() ? rows : rows + delta_[group]; }
  bool sums_floats() const { return float_sums_.has_value(); }
  const int64_t* narrow_sums() const { return exact_sums_ ? exact_sums_->narrow() : nullptr; }
  int128 exact_sum(uint32_t group) const { return (*exact_sums_)[group]; }
  double float_sum(uint32_t group) const { return (*float_sums_)[group]; }
  const Moments& moments(uint32_t group) const { return (*moments_)[group]; }
  // Null where no quantile is asked for.
  RankedValues* ranked() { return ranked_ ? &*ranked_ : nullptr; }

 private:
  void count_nulls(const ArgumentRows& valid);
  void add_sums(const ArgumentRows& valid);
  void add_moments(const ArgumentRows& valid);
  void need_delta();

  int position_;
  Type type_;
  int64_t groups_ = 0;
  Cells<int64_t> delta_;
  std::optional<ExactSums> exact_sums_;
  std::optional<FloatSums> float_sums_;
  std::optional<MomentSums> moments_;
  std::optional<RankedValues> ranked_;
};

// 10 to the power of `scale`, which is at most 38.
int128 power_of_ten(int scale);

}  // namespace bireme
