// Groups and their aggregates, incremental: what backends/base.py calls a GroupTable.
//
// Rule: rows come in vectors; each row's group is found first (`group_keys`), then every aggregate takes the
// whole vector in a loop of its own. States are as `state_types` in backends/base.py lays them out. After an
// exception the table must not be used, unless it is for want of memory in `states`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/group_arguments.hpp"
#include "kernels/group_keys.hpp"
#include "kernels/group_values.hpp"

namespace bireme {

enum class AggregateFunction : uint8_t {
  CountStar,
  Count,
  Sum,
  Avg,
  Min,
  Max,
  Any,
  First,
  Last,
  QuantileLower,
  QuantileHigher,
  QuantileDiscrete,
  VarSamp,
  VarPop,
  StddevSamp,
  StddevPop,
};

// The function of a canonical name (bool_and is min, bool_or is max). Throws Unsupported for others.
AggregateFunction aggregate_function(const std::string& name);

struct Aggregate {
  AggregateFunction function = AggregateFunction::CountStar;
  int argument = -1;  // its position in the input
  Type argument_type;
  Type type;            // of the result
  double fraction = 0;  // of quantiles
};

// Both ends belong to it; empty where low > high.
struct KeyInterval {
  int64_t low = 0;
  int64_t high = 0;

  bool has(int64_t value) const { return low <= value && value <= high; }
};

class GroupTable {
 public:
  // One that `is_lean` takes less memory beside what it holds, and may be slower for it. Throws Unsupported
  // for types that have no native group table.
  GroupTable(std::vector<Type> key_types, std::vector<Aggregate> aggregates, bool is_lean = false);

  // Without keys there is one group once there was a row.
  int64_t groups() const { return key_types_.empty() && !has_rows_ ? 0 : keys_->size(); }
  int64_t nbytes() const;
  // Bytes that the look-up of so many new groups would take beside those: it is made anew at twice the size.
  int64_t bytes_to_add(int64_t groups) const { return keys_->bytes_to_add(groups); }
  // Makes room for so many groups; for keys that are not dense, with `reserve_slots`.
  void reserve(int64_t groups);
  void reserve_slots(int64_t groups) { keys_->reserve_slots(groups); }
  // Keys, then arguments; row r is at `position + r` among all rows.
  void update(const Batch& batch, int64_t position);
  void merge(const Batch& states);

  struct Rows {
    std::vector<OutputColumn> columns;
    int64_t rows = 0;
  };
  // One per partition. Leaves the table empty, as do `finish` and `settle`; where it throws, as it was.
  std::vector<Rows> states(uint32_t partitions);
  Rows finish();

  struct Settled {
    Rows finals;          // keys and results
    Rows rest;            // keys and states
    int64_t outside = 0;  // groups whose key is not in `stated`
  };
  // The groups whose key column `key` lies in `final` with their results, all others (NULL among them) as
  // states. Throws EngineBug for a key that is no integer of 64 bits.
  Settled settle(int key, KeyInterval stated, KeyInterval final);

 private:
  // One aggregate and where its cells are: in an argument shared with others, or its own.
  struct Step {
    Aggregate aggregate;
    int argument = -1;  // in `arguments_`
    int state = 0;      // the position of its first state, after the keys
    std::unique_ptr<Extremes> extremes;
    std::unique_ptr<Picks> picks;
    // Whether this step's state is the one from which the argument's shared cells are merged.
    bool merges_count = false;
    bool merges_sum = false;
    bool merges_moments = false;
  };

  void clear();
  void make_step(const Aggregate& aggregate);
  int argument_of(const Aggregate& aggregate);
  void choose_merged_states();
  void grow(int64_t groups);
  void begin_batch(int64_t rows);
  std::vector<const Column*> key_columns(const Batch& batch) const;
  void update_vector(const Batch& batch, int64_t position, int64_t begin, int64_t rows,
                     const uint32_t* groups);
  void merge_vector(const Batch& states, int64_t begin, int64_t rows, const uint32_t* groups);
  void merge_step(Step& step, const Column* state, int64_t begin, int64_t rows, const uint32_t* groups,
                  const int64_t* rows_added);
  std::vector<std::vector<uint32_t>> partition(uint32_t partitions) const;
  Rows results_of(const std::vector<uint32_t>& groups);
  Rows states_of(const std::vector<uint32_t>& groups) const;
  void append_states(const Step& step, const uint32_t* groups, int64_t rows,
                     std::vector<OutputColumn>& out) const;
  OutputColumn result(const Step& step, const uint32_t* groups, int64_t rows) const;
  void gather_ranked();
  OutputColumn sum_column(const Step& step, const Type& type, const uint32_t* groups, int64_t rows) const;
  OutputColumn count_column(const Step& step, const uint32_t* groups, int64_t rows) const;
  OutputColumn mean_time_column(const Step& step, const uint32_t* groups, int64_t rows) const;
  OutputColumn average_column(const Step& step, const uint32_t* groups, int64_t rows) const;
  OutputColumn deviation_column(const Step& step, const uint32_t* groups, int64_t rows) const;

  std::vector<Type> key_types_;
  std::vector<Aggregate> aggregates_;
  bool is_lean_;
  int states_ = 0;  // state columns
  std::unique_ptr<KeyIndex> keys_;
  bool has_rows_ = false;
  Counts rows_;
  std::vector<Argument> arguments_;
  std::vector<Step> steps_;
};

}  // namespace bireme
