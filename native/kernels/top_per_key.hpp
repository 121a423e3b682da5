// Which rows can still be among the first of their key: what the top-n of each key drops before it sorts.
//
// Rule: for each key the first `limit` values of the order's leading key are remembered. A row that comes
// after all of these is dropped; one that stands beside the last of them stays, since further keys, or the
// order in which rows came, may tell them apart. So what is kept is more than what is wanted, and who sorts
// it has the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_keys.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

class TopPerKey {
 public:
  // With `distinct` the first values count, however many rows have one. Throws Unsupported for an order by
  // what is no machine word.
  TopPerKey(const std::vector<Type>& key_types, const Type& order_type, SortKey order, int64_t limit,
            bool distinct);

  int64_t keys() const { return keys_->size(); }
  int64_t nbytes() const { return keys_->nbytes() + firsts_.nbytes(); }
  // The positions of the rows that stay, of a batch of the keys and then the leading key of the order.
  OutputColumn keep(const Batch& batch);

 private:
  void read_codes(const Column& column, int64_t begin, int64_t rows, uint64_t* codes) const;
  void remember(uint64_t* firsts, uint64_t code) const;

  SortKey order_;
  Type order_type_;
  int64_t limit_;
  bool distinct_;
  std::unique_ptr<KeyIndex> keys_;
  Cells<uint64_t> firsts_;  // `limit` for each key, in order
};

}  // namespace bireme
