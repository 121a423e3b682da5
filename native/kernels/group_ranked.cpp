#include "kernels/group_ranked.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/group_arguments.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

// The values in the order of their groups, of which `ends` says where each begins, and afterwards where it
// ends.
template <typename Value>
void scatter(Cells<Value>& values, const Cells<uint32_t>& groups, Cells<int64_t>& ends) {
  Cells<Value> gathered;
  gathered.resize(values.size());
  Value* out = gathered.data();
  const Value* in = values.data();
  const uint32_t* group = groups.data();
  int64_t* next = ends.data();
  for (int64_t row = 0; row < groups.size(); ++row) out[next[group[row]]++] = in[row];
  std::swap(values, gathered);
}

template <typename Value>
Value selected(Value* values, int64_t count, int64_t place) {
  std::nth_element(values, values + place, values + count);
  return values[place];
}

}  // namespace

int64_t place_of(Rank rank, double fraction, int64_t values) {
  const auto count = static_cast<double>(values);
  const double last = count - 1;
  double place = 0;
  switch (rank) {
    case Rank::Lower:
      place = std::floor(last * fraction);
      break;
    case Rank::Higher:
      place = std::ceil(last * fraction);
      break;
    case Rank::Discrete:
      place = count - std::floor(count - count * fraction) - 1;
      break;
  }
  return static_cast<int64_t>(std::clamp(place, 0.0, last));
}

int64_t RankedValues::nbytes() const {
  return groups_.nbytes() + words_.nbytes() + wides_.nbytes() + ends_.nbytes();
}

void RankedValues::add(const ArgumentRows& valid) {
  const Column& column = *valid.column;
  const int64_t before = groups_.size();
  groups_.resize(before + valid.count);
  std::memcpy(groups_.data() + before, valid.groups, static_cast<size_t>(valid.count) * sizeof(uint32_t));
  if (is_wide()) {
    wides_.resize(before + valid.count);
    for (int64_t index = 0; index < valid.count; ++index) {
      const int64_t row = valid.begin + (valid.has_nulls ? valid.chosen()[index] : index);
      std::memcpy(wides_.data() + before + index, column.as<char>() + 16 * row, 16);
    }
    return;
  }
  words_.resize(before + valid.count);
  uint64_t scratch[kVectorRows];
  const uint64_t* words = words_of(column, valid.begin, valid.rows, scratch);
  uint64_t* out = words_.data() + before;
  for (int64_t index = 0; index < valid.count; ++index) {
    out[index] = order_word(type_.kind, words[valid.has_nulls ? valid.chosen()[index] : index]);
  }
}

void RankedValues::gather(int64_t groups) {
  ends_.resize(groups + 1, 0);
  int64_t* starts = ends_.data();
  for (int64_t row = 0; row < groups_.size(); ++row) ++starts[groups_[row] + 1];
  for (int64_t group = 0; group < groups; ++group) starts[group + 1] += starts[group];
  if (is_wide()) {
    scatter(wides_, groups_, ends_);
  } else {
    scatter(words_, groups_, ends_);
  }
  groups_.clear();
}

OutputColumn RankedValues::pick(Rank rank, double fraction, const uint32_t* groups, int64_t rows) {
  Buffer validity(rows);
  auto* valid = validity.as<uint8_t>();
  Buffer buffer(rows * (is_wide() ? 16 : 8));
  auto* out = buffer.as<uint64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t group = groups[row];
    const int64_t begin = group == 0 ? 0 : ends_[group - 1];
    const int64_t count = ends_[group] - begin;
    valid[row] = count > 0 ? 1 : 0;
    const int64_t place = count > 0 ? place_of(rank, fraction, count) : 0;
    if (is_wide()) {
      const int128 value = count > 0 ? selected(wides_.data() + begin, count, place) : 0;
      std::memcpy(out + 2 * row, &value, 16);
    } else {
      // Order words order as signed integers.
      auto* words = reinterpret_cast<int64_t*>(words_.data()) + begin;
      const auto word = static_cast<uint64_t>(count > 0 ? selected(words, count, place) : 0);
      out[row] = order_word(type_.kind, word);
    }
  }
  return column_of_words(type_, std::move(buffer), valid, rows);
}

}  // namespace bireme
