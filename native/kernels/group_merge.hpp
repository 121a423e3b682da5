// Merging a partition of groups: all that was put in comes out as groups with results, a part at a time.
//
// Rule: what does not fit into the second-level cache is split by a hash of the keys first, so that the table
// of each part does, and is given its whole size at once. Parts use other bits of the hash than the
// partitions between pipelines. Batches are either states or rows as they came, of which a partial grouping
// had nothing to gain; they are kept until the last part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arrow/batch.hpp"
#include "kernels/group_table.hpp"

namespace bireme {

class GroupMerge {
 public:
  GroupMerge(std::vector<Type> key_types, std::vector<Aggregate> aggregates);

  void add_states(Batch states);
  // Keys, then arguments. Their order among other batches is not known, so no aggregate may ask for the first
  // or last of them.
  void add_rows(Batch rows);

  // The groups of the next part; none after the last.
  std::optional<GroupTable::Rows> next();

 private:
  struct Input {
    Input(Batch source, bool states) : batch(std::move(source)), is_states(states) {}

    Batch batch;
    bool is_states;
    // With several parts: the rows in the order of their parts, and where each part begins.
    std::vector<OutputColumn> owned;
    std::vector<Column> columns;
    std::vector<int64_t> offsets;
  };

  void choose_parts();
  void order_by_part(Input& input) const;
  void take_part(const Input& input);

  size_t keys_;
  GroupTable table_;
  std::vector<Input> inputs_;
  int64_t rows_ = 0;
  uint32_t parts_ = 0;  // 0 until they are chosen
  uint32_t part_ = 0;   // the next one
};

}  // namespace bireme
