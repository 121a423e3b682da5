// All values of an argument, to be picked by their rank among those of their group: what quantiles are made
// of.
//
// Rule: values are kept as they come, in words that order as integers, beside the group of each. Only when
// results are wanted are they brought together by group (a counting sort), and in each group the wanted one
// is selected. So there are no states of bounded size, and nothing to merge: rows meet in the table of their
// partition.
#pragma once

#include <cstdint>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "kernels/group_cells.hpp"

namespace bireme {

struct ArgumentRows;

// Which value of n stands for the fraction f of them.
enum class Rank {
  Lower,     // at floor(f * (n - 1)), counted from 0
  Higher,    // at ceil(f * (n - 1))
  Discrete,  // the first that at least f of all values do not exceed
};

int64_t place_of(Rank rank, double fraction, int64_t values);

class RankedValues {
 public:
  explicit RankedValues(Type type) : type_(std::move(type)) {}

  void add(const ArgumentRows& valid);
  int64_t nbytes() const;
  // Brings the values together by group; nothing can be added afterwards.
  void gather(int64_t groups);
  // The value at a rank for each of `groups`; NULL where the group has none.
  OutputColumn pick(Rank rank, double fraction, const uint32_t* groups, int64_t rows);

 private:
  bool is_wide() const { return type_.kind == Kind::Decimal128; }

  Type type_;
  Cells<uint32_t> groups_;
  Cells<uint64_t> words_;
  Cells<int128> wides_;
  Cells<int64_t> ends_;  // once gathered: where the values of a group end
};

}  // namespace bireme
