// What a group table gives: states, split by the engine's hash of the keys, and results.
#include <algorithm>
#include <cmath>
#include <string>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"
#include "kernels/group_table.hpp"
#include "kernels/hash.hpp"

namespace bireme {

namespace {

int128 limit_of(const Type& type) {
  return power_of_ten(type.precision);
}

}  // namespace

// The groups of each partition, in their order.
std::vector<std::vector<uint32_t>> GroupTable::partition(uint32_t partitions) const {
  std::vector<std::vector<uint32_t>> parts(std::max(partitions, 1u));
  const auto total = static_cast<uint32_t>(groups());
  std::vector<uint32_t> some;
  std::vector<uint64_t> hashes;
  constexpr uint32_t kStep = 64 * kVectorRows;
  for (uint32_t begin = 0; begin < total; begin += kStep) {
    const uint32_t end = std::min(total, begin + kStep);
    some.resize(end - begin);
    for (uint32_t group = begin; group < end; ++group) some[group - begin] = group;
    if (parts.size() == 1) {
      parts[0].insert(parts[0].end(), some.begin(), some.end());
      continue;
    }
    const std::vector<OutputColumn> outputs = keys_->columns(some.data(), end - begin);
    std::vector<Column> views, texts(outputs.size());
    for (size_t index = 0; index < outputs.size(); ++index) {
      Column& view = views.emplace_back(view_of(outputs[index]));
      if (outputs[index].dictionary == nullptr) continue;
      // What partition a key belongs to is told by its text: every table has other codes.
      texts[index] = view_of(*outputs[index].dictionary);
      view.type = texts[index].type;
      view.dictionary = &texts[index];
    }
    std::vector<const Column*> columns;
    for (const Column& view : views) columns.push_back(&view);
    hashes.resize(some.size());
    hash_rows(columns, end - begin, hashes.data());
    for (size_t index = 0; index < some.size(); ++index) {
      parts[partition_of(hashes[index], partitions)].push_back(some[index]);
    }
  }
  return parts;
}

void GroupTable::append_states(const Step& step, const uint32_t* groups, int64_t rows,
                               std::vector<OutputColumn>& out) const {
  using enum AggregateFunction;
  switch (step.aggregate.function) {
    case QuantileLower:
    case QuantileHigher:
    case QuantileDiscrete:
      throw EngineBug("a quantile has no states to hand over");
    case Avg: {
      const Type& type = step.aggregate.argument_type;
      const bool floats = is_float(type.kind);
      out.push_back(sum_column(step, floats ? simple_type(Kind::Float64) : decimal128_type(38, type.scale),
                               groups, rows));
      out.push_back(count_column(step, groups, rows));
      return;
    }
    case First:
    case Last:
      out.push_back(step.picks->column(groups, rows));
      out.push_back(step.picks->positions(groups, rows));
      return;
    case VarSamp:
    case VarPop:
    case StddevSamp:
    case StddevPop: {
      Buffer counts(rows * 8), means(rows * 8), squares(rows * 8);
      for (int64_t row = 0; row < rows; ++row) {
        const Moments& moments = arguments_[static_cast<size_t>(step.argument)].moments(groups[row]);
        counts.as<int64_t>()[row] = moments.count;
        means.as<double>()[row] = moments.mean;
        squares.as<double>()[row] = moments.squares;
      }
      out.push_back(column_of_words(simple_type(Kind::Int64), std::move(counts), nullptr, rows));
      out.push_back(column_of_words(simple_type(Kind::Float64), std::move(means), nullptr, rows));
      out.push_back(column_of_words(simple_type(Kind::Float64), std::move(squares), nullptr, rows));
      return;
    }
    default:
      out.push_back(result(step, groups, rows));
  }
}

OutputColumn GroupTable::result(const Step& step, const uint32_t* groups, int64_t rows) const {
  using enum AggregateFunction;
  switch (step.aggregate.function) {
    case CountStar:
    case Count:
      return count_column(step, groups, rows);
    case Sum:
      return sum_column(step, step.aggregate.type, groups, rows);
    case Avg:
      if (step.aggregate.type.kind == Kind::Timestamp) return mean_time_column(step, groups, rows);
      return average_column(step, groups, rows);
    case Min:
    case Max:
      return step.extremes->column(groups, rows);
    case Any:
    case First:
    case Last:
      return step.picks->column(groups, rows);
    default:
      return deviation_column(step, groups, rows);
  }
}

OutputColumn GroupTable::count_column(const Step& step, const uint32_t* groups, int64_t rows) const {
  Buffer counts(rows * 8);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t count = rows_[groups[row]];
    if (step.argument >= 0) count = arguments_[static_cast<size_t>(step.argument)].count(groups[row], count);
    counts.as<int64_t>()[row] = count;
  }
  return column_of_words(simple_type(Kind::Int64), std::move(counts), nullptr, rows);
}

OutputColumn GroupTable::sum_column(const Step& step, const Type& type, const uint32_t* groups,
                                    int64_t rows) const {
  const Argument& argument = arguments_[static_cast<size_t>(step.argument)];
  Buffer validity(rows);
  auto* valid = validity.as<uint8_t>();
  const bool wide = type.kind == Kind::Decimal128;
  Buffer buffer(rows * (wide ? 16 : 8));
  auto* words = buffer.as<uint64_t>();
  const int128 limit = argument.sums_floats() ? 0 : limit_of(type);
  const int64_t* narrow = argument.narrow_sums();
  if (narrow != nullptr && wide && limit > INT64_MAX) {
    for (int64_t row = 0; row < rows; ++row) {
      valid[row] = argument.count(groups[row], rows_[groups[row]]) > 0 ? 1 : 0;
      const int64_t sum = narrow[groups[row]];
      words[2 * row] = static_cast<uint64_t>(sum);
      words[2 * row + 1] = static_cast<uint64_t>(sum >> 63);
    }
    return column_of_words(type, std::move(buffer), valid, rows);
  }
  for (int64_t row = 0; row < rows; ++row) {
    valid[row] = argument.count(groups[row], rows_[groups[row]]) > 0 ? 1 : 0;
    if (argument.sums_floats()) {
      words[row] = std::bit_cast<uint64_t>(argument.float_sum(groups[row]));
      continue;
    }
    const int128 sum = argument.exact_sum(groups[row]);
    if (sum >= limit || sum <= -limit) {
      throw Overflow("a sum left the range of decimal(" + std::to_string(type.precision) + "," +
                     std::to_string(type.scale) + "); cast its argument to double");
    }
    words[wide ? 2 * row : row] = static_cast<uint64_t>(sum);
    if (wide) words[2 * row + 1] = static_cast<uint64_t>(sum >> 64);
  }
  return column_of_words(type, std::move(buffer), valid, rows);
}

OutputColumn GroupTable::average_column(const Step& step, const uint32_t* groups, int64_t rows) const {
  const Argument& argument = arguments_[static_cast<size_t>(step.argument)];
  Buffer validity(rows);
  auto* valid = validity.as<uint8_t>();
  Buffer buffer(rows * 8);
  auto* words = buffer.as<uint64_t>();
  const auto unit = static_cast<double>(power_of_ten(argument.type().scale));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t values = argument.count(groups[row], rows_[groups[row]]);
    valid[row] = values > 0 ? 1 : 0;
    double average = 0;
    if (argument.sums_floats()) {
      average = argument.float_sum(groups[row]) / static_cast<double>(values);
    } else {
      average = static_cast<double>(argument.exact_sum(groups[row])) / (static_cast<double>(values) * unit);
    }
    words[row] = std::bit_cast<uint64_t>(average);
  }
  return column_of_words(simple_type(Kind::Float64), std::move(buffer), valid, rows);
}

// Points in time are averaged exactly and rounded down.
OutputColumn GroupTable::mean_time_column(const Step& step, const uint32_t* groups, int64_t rows) const {
  const Argument& argument = arguments_[static_cast<size_t>(step.argument)];
  Buffer validity(rows);
  auto* valid = validity.as<uint8_t>();
  Buffer buffer(rows * 8);
  auto* words = buffer.as<uint64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t values = argument.count(groups[row], rows_[groups[row]]);
    valid[row] = values > 0 ? 1 : 0;
    words[row] = 0;
    if (values <= 0) continue;
    const int128 sum = argument.exact_sum(groups[row]);
    const bool down = sum < 0 && sum % values != 0;
    words[row] = static_cast<uint64_t>(sum / values - (down ? 1 : 0));
  }
  return column_of_words(step.aggregate.type, std::move(buffer), valid, rows);
}

OutputColumn GroupTable::deviation_column(const Step& step, const uint32_t* groups, int64_t rows) const {
  using enum AggregateFunction;
  const AggregateFunction function = step.aggregate.function;
  const bool sample = function == VarSamp || function == StddevSamp;
  const bool root = function == StddevSamp || function == StddevPop;
  Buffer validity(rows);
  auto* valid = validity.as<uint8_t>();
  Buffer buffer(rows * 8);
  auto* words = buffer.as<uint64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const Moments& moments = arguments_[static_cast<size_t>(step.argument)].moments(groups[row]);
    const int64_t divisor = moments.count - (sample ? 1 : 0);
    valid[row] = divisor > 0 ? 1 : 0;
    const double variance = divisor > 0 ? moments.squares / static_cast<double>(divisor) : 0;
    words[row] = std::bit_cast<uint64_t>(root ? std::sqrt(variance) : variance);
  }
  return column_of_words(simple_type(Kind::Float64), std::move(buffer), valid, rows);
}

}  // namespace bireme
