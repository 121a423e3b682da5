#include "kernels/group_table.hpp"

#include <algorithm>
#include <numeric>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

bool is_summed(AggregateFunction function) {
  return function == AggregateFunction::Sum || function == AggregateFunction::Avg;
}

bool has_moments(AggregateFunction function) {
  return function >= AggregateFunction::VarSamp;
}

bool is_picked(AggregateFunction function) {
  return function >= AggregateFunction::Any && function <= AggregateFunction::Last;
}

// Aggregates of all values of a group at once; they have no states.
bool is_ranked(AggregateFunction function) {
  return function >= AggregateFunction::QuantileLower && function <= AggregateFunction::QuantileDiscrete;
}

Rank rank_of(AggregateFunction function) {
  if (function == AggregateFunction::QuantileLower) return Rank::Lower;
  return function == AggregateFunction::QuantileHigher ? Rank::Higher : Rank::Discrete;
}

int state_count(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::Avg:
    case AggregateFunction::First:
    case AggregateFunction::Last:
      return 2;
    case AggregateFunction::VarSamp:
    case AggregateFunction::VarPop:
    case AggregateFunction::StddevSamp:
    case AggregateFunction::StddevPop:
      return 3;
    default:
      return 1;
  }
}

void check_supported(const Aggregate& aggregate) {
  const AggregateFunction function = aggregate.function;
  const Kind kind = aggregate.argument_type.kind;
  const bool number = is_word(kind) || kind == Kind::Decimal128;
  bool ok = true;
  if (is_summed(function) || has_moments(function)) ok = number;
  if (function == AggregateFunction::Sum) {
    const Kind result = aggregate.type.kind;
    ok = ok &&
         (is_float(kind) ? result == Kind::Float64 : result == Kind::Decimal64 || result == Kind::Decimal128);
  }
  if (function == AggregateFunction::Avg) {
    ok = ok && (aggregate.type.kind == Kind::Float64 ||
                (aggregate.type.kind == Kind::Timestamp && kind == Kind::Timestamp));
  }
  if (has_moments(function)) ok = ok && aggregate.type.kind == Kind::Float64;
  if (function == AggregateFunction::Min || function == AggregateFunction::Max || is_picked(function)) {
    ok = is_canonical(kind) && aggregate.type.kind == kind;
  }
  if (is_ranked(function)) ok = number && aggregate.type.kind == kind;
  if (!ok) {
    throw Unsupported("no native aggregate from Arrow format '" + aggregate.argument_type.format + "' to '" +
                      aggregate.type.format + "'");
  }
}

void check_column(const Column& column, const Type& expected, const char* what) {
  if (column.type.kind == expected.kind && column.type.scale == expected.scale) return;
  throw EngineBug(std::string(what) + " has Arrow format '" + column.type.format + "', its plan says '" +
                  expected.format + "'");
}

}  // namespace

AggregateFunction aggregate_function(const std::string& name) {
  constexpr std::pair<const char*, AggregateFunction> names[] = {
      {"count_star", AggregateFunction::CountStar},
      {"count", AggregateFunction::Count},
      {"sum", AggregateFunction::Sum},
      {"avg", AggregateFunction::Avg},
      {"min", AggregateFunction::Min},
      {"max", AggregateFunction::Max},
      {"bool_and", AggregateFunction::Min},
      {"bool_or", AggregateFunction::Max},
      {"any_value", AggregateFunction::Any},
      {"first", AggregateFunction::First},
      {"last", AggregateFunction::Last},
      {"quantile_lower", AggregateFunction::QuantileLower},
      {"quantile_higher", AggregateFunction::QuantileHigher},
      {"quantile_discrete", AggregateFunction::QuantileDiscrete},
      {"var_samp", AggregateFunction::VarSamp},
      {"var_pop", AggregateFunction::VarPop},
      {"stddev_samp", AggregateFunction::StddevSamp},
      {"stddev_pop", AggregateFunction::StddevPop},
  };
  for (const auto& [known, function] : names) {
    if (name == known) return function;
  }
  throw Unsupported("no native aggregate '" + name + "'");
}

GroupTable::GroupTable(std::vector<Type> key_types, std::vector<Aggregate> aggregates, bool is_lean)
    : key_types_(std::move(key_types)), aggregates_(std::move(aggregates)), is_lean_(is_lean) {
  for (const Aggregate& aggregate : aggregates_) check_supported(aggregate);
  clear();
}

void GroupTable::clear() {
  keys_ = std::make_unique<KeyIndex>(key_types_, std::vector<bool>(key_types_.size(), true), is_lean_);
  has_rows_ = false;
  rows_ = Counts();
  arguments_.clear();
  steps_.clear();
  states_ = 0;
  for (const Aggregate& aggregate : aggregates_) make_step(aggregate);
  choose_merged_states();
  grow(keys_->size());
}

int GroupTable::argument_of(const Aggregate& aggregate) {
  for (size_t index = 0; index < arguments_.size(); ++index) {
    if (arguments_[index].position() == aggregate.argument) return static_cast<int>(index);
  }
  arguments_.emplace_back(aggregate.argument, aggregate.argument_type);
  return static_cast<int>(arguments_.size()) - 1;
}

void GroupTable::make_step(const Aggregate& aggregate) {
  Step step;
  step.aggregate = aggregate;
  step.state = states_;
  states_ += state_count(aggregate.function);
  const AggregateFunction function = aggregate.function;
  if (function != AggregateFunction::CountStar) step.argument = argument_of(aggregate);
  if (is_ranked(function)) arguments_[static_cast<size_t>(step.argument)].keep_ranked();
  if (is_summed(function)) arguments_[static_cast<size_t>(step.argument)].keep_sum();
  if (has_moments(function)) arguments_[static_cast<size_t>(step.argument)].keep_moments();
  if (function == AggregateFunction::Min || function == AggregateFunction::Max) {
    const auto side = function == AggregateFunction::Min ? Extremes::Side::Smallest : Extremes::Side::Largest;
    step.extremes = std::make_unique<Extremes>(aggregate.type, side);
  }
  if (is_picked(function)) {
    const auto which = function == AggregateFunction::First  ? Picks::Which::First
                       : function == AggregateFunction::Last ? Picks::Which::Last
                                                             : Picks::Which::Any;
    step.picks = std::make_unique<Picks>(aggregate.type, which);
  }
  steps_.push_back(std::move(step));
}

// Several steps may hold the same count or sum of an argument in their states; it is merged from one of them.
void GroupTable::choose_merged_states() {
  using enum AggregateFunction;
  for (size_t argument = 0; argument < arguments_.size(); ++argument) {
    Step* count = nullptr;
    Step* sum = nullptr;
    Step* moments = nullptr;
    for (Step& step : steps_) {
      if (step.argument != static_cast<int>(argument)) continue;
      const AggregateFunction function = step.aggregate.function;
      if (function == Count || function == Avg) count = &step;
      if (is_summed(function) && (sum == nullptr || function == Avg)) sum = &step;
      if (has_moments(function) && moments == nullptr) moments = &step;
    }
    if (count == nullptr) count = sum;  // then only whether there was a value at all is known, and needed
    if (count != nullptr) count->merges_count = true;
    if (sum != nullptr) sum->merges_sum = true;
    if (moments != nullptr) moments->merges_moments = true;
  }
}

void GroupTable::grow(int64_t groups) {
  rows_.grow(groups);
  for (Argument& argument : arguments_) argument.grow(groups);
  for (Step& step : steps_) {
    if (step.extremes) step.extremes->grow(groups);
    if (step.picks) step.picks->grow(groups);
  }
}

void GroupTable::reserve(int64_t groups) {
  keys_->reserve(groups + kVectorRows);
  rows_.reserve(groups);
  for (Argument& argument : arguments_) argument.reserve(groups);
}

int64_t GroupTable::nbytes() const {
  int64_t total = keys_->nbytes() + rows_.nbytes();
  for (const Argument& argument : arguments_) total += argument.nbytes();
  for (const Step& step : steps_) {
    if (step.extremes) total += step.extremes->nbytes();
    if (step.picks) total += step.picks->nbytes();
  }
  return total;
}

std::vector<const Column*> GroupTable::key_columns(const Batch& batch) const {
  if (batch.count() < static_cast<int>(key_types_.size()))
    throw EngineBug("a batch to be grouped lacks key columns");
  std::vector<const Column*> columns;
  for (size_t index = 0; index < key_types_.size(); ++index)
    columns.push_back(&batch[static_cast<int>(index)]);
  return columns;
}

void GroupTable::begin_batch(int64_t rows) {
  for (Step& step : steps_) {
    if (step.extremes) step.extremes->begin_batch(rows);
  }
}

// ---------------------------------------------------------------------------------------------------- update

void GroupTable::update(const Batch& batch, int64_t position) {
  for (const Argument& argument : arguments_) {
    if (argument.position() >= batch.count()) throw EngineBug("a batch to be grouped lacks an argument");
    check_column(batch[argument.position()], argument.type(), "the argument of an aggregate");
  }
  begin_batch(batch.rows());
  KeyRows keys(*keys_, key_columns(batch));
  keys.announce(*keys_, batch.rows());
  has_rows_ |= batch.rows() > 0;
  uint32_t groups[kVectorRows];
  for (int64_t begin = 0; begin < batch.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, batch.rows() - begin);
    keys.find_or_add(*keys_, begin, rows, groups);
    grow(keys_->size());
    update_vector(batch, position, begin, rows, groups);
  }
}

void GroupTable::update_vector(const Batch& batch, int64_t position, int64_t begin, int64_t rows,
                               const uint32_t* groups) {
  rows_.add(groups, rows);
  ArgumentRows valid;
  for (size_t index = 0; index < arguments_.size(); ++index) {
    Argument& argument = arguments_[index];
    valid.read(batch[argument.position()], begin, rows, groups);
    argument.add(valid);
    for (Step& step : steps_) {
      if (step.argument != static_cast<int>(index) || !step.extremes) continue;
      step.extremes->add(*valid.column, valid.positions(), valid.groups, valid.count);
    }
  }
  int64_t positions[kVectorRows];
  for (Step& step : steps_) {
    if (!step.picks) continue;
    for (int64_t row = 0; row < rows; ++row) positions[row] = position + begin + row;
    step.picks->add(batch[step.aggregate.argument], positions, begin, rows, groups);
  }
}

// ----------------------------------------------------------------------------------------------------- merge

void GroupTable::merge(const Batch& states) {
  for (const Aggregate& aggregate : aggregates_) {
    if (is_ranked(aggregate.function)) throw EngineBug("a quantile has no states that could be merged");
  }
  if (states.count() != static_cast<int>(key_types_.size()) + states_) {
    throw EngineBug("a batch of group states has " + std::to_string(states.count()) + " columns, not " +
                    std::to_string(key_types_.size() + static_cast<size_t>(states_)));
  }
  begin_batch(states.rows());
  KeyRows keys(*keys_, key_columns(states));
  keys.announce(*keys_, states.rows());
  has_rows_ |= states.rows() > 0;
  uint32_t groups[kVectorRows];
  for (int64_t begin = 0; begin < states.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, states.rows() - begin);
    keys.find_or_add(*keys_, begin, rows, groups);
    grow(keys_->size());
    merge_vector(states, begin, rows, groups);
  }
}

void GroupTable::merge_vector(const Batch& states, int64_t begin, int64_t rows, const uint32_t* groups) {
  const int64_t* rows_added = nullptr;
  const Column* columns = states.columns().data() + key_types_.size();
  for (const Step& step : steps_) {
    if (step.aggregate.function != AggregateFunction::CountStar) continue;
    check_column(columns[step.state], simple_type(Kind::Int64), "the state of a count");
    rows_added = columns[step.state].as<int64_t>() + begin;
    rows_.add(rows_added, groups, rows);
    break;
  }
  for (Step& step : steps_) merge_step(step, columns + step.state, begin, rows, groups, rows_added);
}

void GroupTable::merge_step(Step& step, const Column* state, int64_t begin, int64_t rows,
                            const uint32_t* groups, const int64_t* rows_added) {
  using enum AggregateFunction;
  const AggregateFunction function = step.aggregate.function;
  if (step.merges_moments) {
    for (int part = 0; part < 3; ++part) {
      check_column(state[part], simple_type(part == 0 ? Kind::Int64 : Kind::Float64),
                   "the state of a deviation");
    }
    arguments_[static_cast<size_t>(step.argument)].merge_moments(state, begin, rows, groups);
  }
  ArgumentRows valid;
  if (step.merges_sum || step.extremes) valid.read(state[0], begin, rows, groups);
  if (step.extremes) {
    check_column(state[0], step.aggregate.type, "the state of an aggregate");
    step.extremes->add(state[0], valid.positions(), valid.groups, valid.count);
  }
  if (step.merges_sum) arguments_[static_cast<size_t>(step.argument)].merge_sums(valid);
  if (step.merges_count) {
    int64_t counts[kVectorRows];
    const Column* given = function == Count ? &state[0] : function == Avg ? &state[1] : nullptr;
    if (given != nullptr) check_column(*given, simple_type(Kind::Int64), "the state of a count");
    for (int64_t row = 0; row < rows; ++row) {
      counts[row] =
          given != nullptr ? given->as<int64_t>()[begin + row] : int64_t{state[0].is_valid(begin + row)};
    }
    arguments_[static_cast<size_t>(step.argument)].merge_counts(counts, rows_added, groups, rows);
  }
  if (!step.picks) return;
  check_column(state[0], step.aggregate.type, "the state of an aggregate");
  if (function == Any) {
    step.picks->add(state[0], nullptr, begin, rows, groups);
  } else {
    check_column(state[1], simple_type(Kind::Int64), "the position in a state");
    step.picks->merge(state[0], state[1], begin, rows, groups);
  }
}

// --------------------------------------------------------------------------------------------------- results

void GroupTable::gather_ranked() {
  for (Argument& argument : arguments_) {
    if (RankedValues* values = argument.ranked()) values->gather(keys_->size());
  }
}

GroupTable::Rows GroupTable::results_of(const std::vector<uint32_t>& groups) {
  Rows out;
  out.rows = static_cast<int64_t>(groups.size());
  out.columns = keys_->columns(groups.data(), out.rows);
  for (const Step& step : steps_) {
    const Aggregate& aggregate = step.aggregate;
    if (is_ranked(aggregate.function)) {
      RankedValues* values = arguments_[static_cast<size_t>(step.argument)].ranked();
      out.columns.push_back(
          values->pick(rank_of(aggregate.function), aggregate.fraction, groups.data(), out.rows));
    } else {
      out.columns.push_back(result(step, groups.data(), out.rows));
    }
  }
  return out;
}

GroupTable::Rows GroupTable::states_of(const std::vector<uint32_t>& groups) const {
  Rows out;
  out.rows = static_cast<int64_t>(groups.size());
  out.columns = keys_->columns(groups.data(), out.rows);
  for (const Step& step : steps_) append_states(step, groups.data(), out.rows, out.columns);
  return out;
}

GroupTable::Rows GroupTable::finish() {
  // Without keys also the group of no rows at all has a result.
  std::vector<uint32_t> all(keys_->size());
  std::iota(all.begin(), all.end(), 0u);
  gather_ranked();
  Rows out = results_of(all);
  clear();
  return out;
}

std::vector<GroupTable::Rows> GroupTable::states(uint32_t partitions) {
  // The empty table comes first: a call that finds no memory has changed nothing.
  GroupTable empty(key_types_, aggregates_, is_lean_);
  std::vector<Rows> all;
  for (const auto& groups : partition(partitions)) all.push_back(states_of(groups));
  *this = std::move(empty);
  return all;
}

GroupTable::Settled GroupTable::settle(int key, KeyInterval stated, KeyInterval final) {
  if (key < 0 || key >= static_cast<int>(key_types_.size()))
    throw EngineBug("a group table is settled by a key it lacks");
  gather_ranked();
  const auto total = static_cast<int64_t>(groups());
  std::vector<uint32_t> finals, rest;
  finals.reserve(static_cast<size_t>(total));
  Settled settled;
  uint64_t words[kVectorRows];
  uint8_t valid[kVectorRows];
  uint32_t some[kVectorRows];
  for (int64_t begin = 0; begin < total; begin += kVectorRows) {
    const int64_t count = std::min(kVectorRows, total - begin);
    std::iota(some, some + count, static_cast<uint32_t>(begin));
    keys_->read_words(key, some, count, words, valid);
    for (int64_t at = 0; at < count; ++at) {
      const auto value = static_cast<int64_t>(words[at]);
      const bool null = valid[at] == 0;
      settled.outside += !null && !stated.has(value) ? 1 : 0;
      (!null && final.has(value) ? finals : rest).push_back(some[at]);
    }
  }
  settled.finals = results_of(finals);
  settled.rest = states_of(rest);
  clear();
  reserve(total);  // the next rows will hardly differ in number
  return settled;
}

}  // namespace bireme
