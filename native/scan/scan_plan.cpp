#include "scan/scan_plan.hpp"

#include <algorithm>
#include <utility>

#include "arrow/errors.hpp"

namespace bireme::scan {

namespace {

// A filter that keeps more than this share costs more than it saves.
constexpr double kUsefulShare = 0.9;
// How many rows tell whether it does.
constexpr int64_t kJudgedRows = 100'000;
// What was seen this many rows ago counts half: tables may be ordered, and what is true at their start need
// not stay so.
constexpr double kHalfLifeRows = 1'000'000;
// A filter that was switched off is asked by one task in this many.
constexpr int64_t kAskAgainEvery = 16;
// Filters usually stand for a selective build side; the first rows tell.
constexpr double kFilterGuess = 0.3;
// A bound is learnt from the first of many rows, so few of the others are within it.
constexpr double kBoundGuess = 0.1;
// How many rows a guess weighs.
constexpr double kGuessRows = 1000;

// Nanoseconds, as measured: what matters is which is larger. A byte that is stored is decompressed and
// unpacked.
constexpr double kByteCost = 1.0;
constexpr double kValueCost = 1.0;
constexpr double kFilterCost = 1.5;
constexpr double kTextCost = 10.0;
constexpr double kConditionCost = 0.5;

}  // namespace

Step::Step(Program condition, std::vector<int> columns, bool can_raise, double kept_guess)
    : condition_(std::move(condition)),
      columns_(std::move(columns)),
      can_raise_(can_raise),
      rows_(kGuessRows),
      kept_(kGuessRows * kept_guess) {
  // Columns that conditions are about mostly have few distinct values.
  by_codes_ = columns_.size() == 1 && !can_raise;
}

Step::Step(std::shared_ptr<const KeyFilter> filter, std::vector<int> columns)
    : filter_(std::move(filter)),
      columns_(std::move(columns)),
      rows_(kGuessRows),
      kept_(kGuessRows * kFilterGuess) {}

Step::Step(std::vector<int> columns)
    : columns_(std::move(columns)), is_bound_(true), rows_(kGuessRows), kept_(kGuessRows * kBoundGuess) {}

double Step::ask_cost() const {
  if (by_codes_.load(std::memory_order_relaxed)) return 0;
  if (filter_ != nullptr) return kFilterCost;
  const bool is_costly = std::any_of(condition_.nodes().begin(), condition_.nodes().end(),
                                     [](const Node& node) { return node.costly; });
  return is_costly ? kTextCost : kConditionCost;
}

double Step::kept_share() const {
  std::lock_guard lock(mutex_);
  return kept_ / rows_;
}

void Step::record(int64_t rows, int64_t kept) const {
  std::lock_guard lock(mutex_);
  seen_ += rows;
  rows_ += static_cast<double>(rows);
  kept_ += static_cast<double>(kept);
  if (rows_ > kHalfLifeRows) {
    rows_ /= 2;
    kept_ /= 2;
  }
}

bool Step::is_worth_asking() const {
  if (filter_ == nullptr && !is_bound_) return true;
  std::lock_guard lock(mutex_);
  if (seen_ < kJudgedRows || kept_ <= kUsefulShare * rows_) return true;
  switched_off_ = true;
  return ++skipped_ % kAskAgainEvery == 0;
}

bool Step::was_switched_off() const {
  std::lock_guard lock(mutex_);
  return switched_off_;
}

void ScanPlan::add_condition(Program condition, std::vector<int> columns, bool can_raise, double kept_guess) {
  steps_.push_back(std::make_unique<Step>(std::move(condition), std::move(columns), can_raise, kept_guess));
}

void ScanPlan::add_filter(std::shared_ptr<const KeyFilter> filter, std::vector<int> columns) {
  if (filter == nullptr) throw EngineBug("a scan was given no filter where one was announced");
  steps_.push_back(std::make_unique<Step>(std::move(filter), std::move(columns)));
}

void ScanPlan::add_bound(std::vector<int> columns) {
  for (const auto& step : steps_) {
    if (step->is_bound()) throw EngineBug("a scan was given two bounds");
  }
  steps_.push_back(std::make_unique<Step>(std::move(columns)));
}

void ScanPlan::set_outputs(Program program, std::vector<int> passed, std::vector<std::string> names) {
  program_ = std::move(program);
  passed_ = std::move(passed);
  names_ = std::move(names);
  is_output_.assign(types_.size(), false);
  for (int column : passed_) {
    if (column >= 0) is_output_[static_cast<size_t>(column)] = true;
  }
  for (const Node& node : program_.nodes()) {
    if (node.node_class == NodeClass::Column) is_output_[static_cast<size_t>(node.column)] = true;
  }
}

// What is decoded in the end is decompressed whatever the order: its pages seldom have no row that is left.
double ScanPlan::cost(const Step& step, std::span<const double> row_bytes,
                      const std::vector<bool>& is_decoded) const {
  double total = step.ask_cost();
  for (int column : step.columns()) {
    const auto index = static_cast<size_t>(column);
    if (!is_decoded[index]) total += kValueCost + (is_output(column) ? 0 : kByteCost * row_bytes[index]);
  }
  return total;
}

std::vector<const Step*> ScanPlan::order(std::span<const double> row_bytes, bool has_bound) const {
  std::vector<const Step*> left;
  std::vector<const Step*> raising;
  for (const auto& step : steps_) {
    if (step->is_bound() && !has_bound) continue;
    if (step->is_worth_asking()) (step->can_raise() ? raising : left).push_back(step.get());
  }
  std::vector<const Step*> ordered;
  std::vector<bool> is_decoded(types_.size(), false);
  while (!left.empty()) {
    // The rows dropped for what it costs; steps that drop nothing come last.
    const auto worth = [&](const Step* step) {
      return (1.001 - step->kept_share()) / cost(*step, row_bytes, is_decoded);
    };
    const auto best = std::max_element(left.begin(), left.end(),
                                       [&](const Step* a, const Step* b) { return worth(a) < worth(b); });
    for (int column : (*best)->columns()) is_decoded[static_cast<size_t>(column)] = true;
    ordered.push_back(*best);
    left.erase(best);
  }
  ordered.insert(ordered.end(), raising.begin(), raising.end());
  return ordered;
}

std::vector<bool> ScanPlan::switched_off() const {
  std::vector<bool> off;
  for (const auto& step : steps_) {
    if (step->filter() != nullptr) off.push_back(step->was_switched_off());
  }
  return off;
}

bool ScanPlan::bound_was_switched_off() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const std::unique_ptr<Step>& step) {
    return step->is_bound() && step->was_switched_off();
  });
}

}  // namespace bireme::scan
