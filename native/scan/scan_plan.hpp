// What a scan does with the rows of a table: steps that drop rows, and the columns it gives of those that are
// left.
//
// Rule: made once per pipeline, then shared by all its tasks. Only what steps have kept so far changes while
// they run, and it decides in which order later tasks take the steps, never what they give. A step that can
// fail comes after all that cannot, in the order of the query. How a task goes about it is in scan_task.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrow/type.hpp"
#include "kernels/expression/program.hpp"
#include "kernels/key_filter.hpp"

namespace bireme::scan {

// Drops rows by some of the scanned columns: where `condition` is not TRUE, whose keys `filter` does not
// know, or which come after a bound that is a condition of each task's own.
class Step {
 public:
  Step(Program condition, std::vector<int> columns, bool can_raise, double kept_guess);
  Step(std::shared_ptr<const KeyFilter> filter, std::vector<int> columns);
  // A bound.
  explicit Step(std::vector<int> columns);

  const std::vector<int>& columns() const { return columns_; }
  const Program& condition() const { return condition_; }
  const KeyFilter* filter() const { return filter_.get(); }
  bool can_raise() const { return can_raise_; }
  bool is_bound() const { return is_bound_; }

  // Nanoseconds a row, roughly, beside decoding its columns.
  double ask_cost() const;
  // A task found whether entries of a dictionary can be asked instead of rows.
  void record_by_codes(bool by_codes) const { by_codes_.store(by_codes, std::memory_order_relaxed); }
  // The share of rows it is expected to keep, from what it has kept so far.
  double kept_share() const;
  // A task asked it about `rows` rows and `kept` are left.
  void record(int64_t rows, int64_t kept) const;
  // Whether a task should ask at all: a filter that drops little is asked only now and then, to see whether
  // it still does.
  bool is_worth_asking() const;
  // Whether it ever was not.
  bool was_switched_off() const;

 private:
  Program condition_;
  std::shared_ptr<const KeyFilter> filter_;
  std::vector<int> columns_;
  bool can_raise_ = false;
  bool is_bound_ = false;
  mutable std::atomic<bool> by_codes_{false};

  mutable std::mutex mutex_;
  mutable double rows_;  // recent ones, older ones count less
  mutable double kept_;
  mutable int64_t seen_ = 0;
  mutable int64_t skipped_ = 0;
  mutable bool switched_off_ = false;
};

class ScanPlan {
 public:
  // `types` are those of the scanned columns.
  explicit ScanPlan(std::vector<Type> types) : types_(std::move(types)) {}
  ScanPlan(const ScanPlan&) = delete;
  ScanPlan& operator=(const ScanPlan&) = delete;

  void add_condition(Program condition, std::vector<int> columns, bool can_raise, double kept_guess);
  void add_filter(std::shared_ptr<const KeyFilter> filter, std::vector<int> columns);
  // Tasks may have a condition of their own over these columns. At most one such step.
  void add_bound(std::vector<int> columns);
  // The columns to give, under `names`: where `passed` is a scanned column, that column; where it is -1, the
  // next output of `program`. No scanned column is passed twice.
  void set_outputs(Program program, std::vector<int> passed, std::vector<std::string> names);

  const std::vector<Type>& types() const { return types_; }
  const Program& program() const { return program_; }
  const std::vector<int>& passed() const { return passed_; }
  const std::vector<std::string>& names() const { return names_; }
  bool is_output(int column) const { return is_output_[static_cast<size_t>(column)]; }

  // The steps to take, cheapest way to few rows first, where the columns are stored in so many bytes a row;
  // the bound only where the task `has_bound`.
  std::vector<const Step*> order(std::span<const double> row_bytes, bool has_bound) const;
  // Which filters, in the order they were added, were found to drop too little.
  std::vector<bool> switched_off() const;
  bool bound_was_switched_off() const;

 private:
  double cost(const Step& step, std::span<const double> row_bytes, const std::vector<bool>& is_decoded) const;

  std::vector<Type> types_;
  std::vector<std::unique_ptr<Step>> steps_;
  Program program_;
  std::vector<int> passed_;
  std::vector<std::string> names_;
  std::vector<bool> is_output_;
};

}  // namespace bireme::scan
