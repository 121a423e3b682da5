#include "kernels/group_arguments.hpp"

#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

int128 power_of_ten(int scale) {
  int128 power = 1;
  for (int digit = 0; digit < scale; ++digit) power *= 10;
  return power;
}

void ArgumentRows::read(const Column& source, int64_t first, int64_t length, const uint32_t* groups_of_rows) {
  column = &source;
  begin = first;
  rows = length;
  listed_ = false;
  all_groups = groups_of_rows;
  uint8_t valid[kVectorRows];
  has_nulls = read_validity(source, first, length, valid);
  if (source.is_dictionary() && source.dictionary->may_have_nulls()) {
    if (!has_nulls) std::memset(valid, 1, static_cast<size_t>(length));
    for (int64_t row = 0; row < length; ++row) {
      if (valid[row] != 0 && !source.dictionary->is_valid(source.codes()[first + row])) valid[row] = 0;
    }
    has_nulls = true;
  }
  if (!has_nulls) {
    count = length;
    groups = groups_of_rows;
    return;
  }
  count = 0;
  for (int64_t row = 0; row < length; ++row) {
    chosen_[count] = static_cast<uint16_t>(row);
    chosen_groups_[count] = groups_of_rows[row];
    count += valid[row];
  }
  groups = chosen_groups_;
}

const int64_t* ArgumentRows::positions() {
  if (!listed_) {
    for (int64_t index = 0; index < count; ++index)
      positions_[index] = begin + (has_nulls ? chosen_[index] : index);
    listed_ = true;
  }
  return positions_;
}

void ArgumentNumbers::read(const ArgumentRows& valid) {
  const Column& column = *valid.column;
  const Kind kind = column.type.kind;
  if (column.is_dictionary() || !(is_word(kind) || kind == Kind::Decimal128)) {
    throw EngineBug("a sum of Arrow format '" + column.type.format + "' was asked for");
  }
  if (kind == Kind::Decimal128) {
    for (int64_t index = 0; index < valid.count; ++index) {
      const int64_t row = valid.begin + (valid.has_nulls ? valid.chosen()[index] : index);
      std::memcpy(&scratch_.wides[index], column.as<char>() + 16 * row, 16);
    }
    wide = scratch_.wides;
    return;
  }
  const uint64_t* words = nullptr;
  if (kind == Kind::Float64) {
    words = column.as<uint64_t>() + valid.begin;
  } else {
    words = words_of(column, valid.begin, valid.rows, scratch_.words);
  }
  if (valid.has_nulls) {
    // In place is fine: the n-th valid row is never before the n-th place.
    for (int64_t index = 0; index < valid.count; ++index) {
      scratch_.words[index] = words[valid.chosen()[index]];
    }
    words = scratch_.words;
  }
  if (is_float(kind)) {
    floats = reinterpret_cast<const double*>(words);
  } else if (kind == Kind::UInt64) {
    unsigned_exact = words;
  } else {
    exact = reinterpret_cast<const int64_t*>(words);
  }
}

// -------------------------------------------------------------------------------------------------- Argument

void Argument::keep_sum() {
  if (is_float(type_.kind)) {
    float_sums_.emplace();
  } else {
    exact_sums_.emplace();
  }
}

void Argument::keep_ranked() {
  if (!ranked_) ranked_.emplace(type_);
}

void Argument::grow(int64_t groups) {
  if (groups == groups_) return;
  groups_ = groups;
  if (!delta_.empty()) delta_.resize(groups, 0);
  if (exact_sums_) exact_sums_->grow(groups);
  if (float_sums_) float_sums_->grow(groups);
  if (moments_) moments_->grow(groups);
}

void Argument::reserve(int64_t groups) {
  if (exact_sums_) exact_sums_->reserve(groups);
  if (float_sums_) float_sums_->reserve(groups);
}

int64_t Argument::nbytes() const {
  return delta_.nbytes() + (exact_sums_ ? exact_sums_->nbytes() : 0) +
         (float_sums_ ? float_sums_->nbytes() : 0) + (moments_ ? moments_->nbytes() : 0) +
         (ranked_ ? ranked_->nbytes() : 0);
}

void Argument::need_delta() {
  if (delta_.empty()) delta_.resize(groups_, 0);
}

void Argument::count_nulls(const ArgumentRows& valid) {
  if (!valid.has_nulls) return;
  need_delta();
  for (int64_t row = 0; row < valid.rows; ++row) --delta_[valid.all_groups[row]];
  for (int64_t index = 0; index < valid.count; ++index) ++delta_[valid.groups[index]];
}

void Argument::add(const ArgumentRows& valid) {
  count_nulls(valid);
  if (exact_sums_ || float_sums_) add_sums(valid);
  if (moments_) add_moments(valid);
  if (ranked_) ranked_->add(valid);
}

void Argument::add_sums(const ArgumentRows& valid) {
  ArgumentNumbers numbers;
  numbers.read(valid);
  if (float_sums_ && numbers.floats != nullptr) {
    float_sums_->add(numbers.floats, valid.groups, valid.count);
  } else if (exact_sums_ && numbers.exact != nullptr) {
    exact_sums_->add(numbers.exact, valid.groups, valid.count);
  } else if (exact_sums_ && numbers.unsigned_exact != nullptr) {
    exact_sums_->add_unsigned(numbers.unsigned_exact, valid.groups, valid.count);
  } else if (exact_sums_ && numbers.wide != nullptr) {
    exact_sums_->add_wide(numbers.wide, valid.groups, valid.count);
  } else {
    throw EngineBug("an aggregate got an argument of Arrow format '" + valid.column->type.format +
                    "', its plan says '" + type_.format + "'");
  }
}

void Argument::add_moments(const ArgumentRows& valid) {
  ArgumentNumbers numbers;
  numbers.read(valid);
  double values[kVectorRows];
  const double unit = static_cast<double>(power_of_ten(valid.column->type.scale));
  for (int64_t index = 0; index < valid.count; ++index) {
    if (numbers.floats != nullptr) {
      values[index] = numbers.floats[index];
    } else if (numbers.wide != nullptr) {
      values[index] = static_cast<double>(numbers.wide[index]) / unit;
    } else if (numbers.unsigned_exact != nullptr) {
      values[index] = static_cast<double>(numbers.unsigned_exact[index]);
    } else {
      values[index] = static_cast<double>(numbers.exact[index]) / unit;
    }
  }
  moments_->add(values, valid.groups, valid.count);
}

void Argument::merge_counts(const int64_t* counts, const int64_t* rows_added, const uint32_t* groups,
                            int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t difference = counts[row] - (rows_added != nullptr ? rows_added[row] : 0);
    if (difference == 0) continue;
    need_delta();
    delta_[groups[row]] += difference;
  }
}

void Argument::merge_sums(const ArgumentRows& sums) {
  add_sums(sums);
}

void Argument::merge_moments(const Column* states, int64_t begin, int64_t rows, const uint32_t* groups) {
  for (int64_t row = 0; row < rows; ++row) {
    Moments other;
    if (states[0].is_valid(begin + row)) other.count = states[0].as<int64_t>()[begin + row];
    if (other.count == 0) continue;
    other.mean = states[1].as<double>()[begin + row];
    other.squares = states[2].as<double>()[begin + row];
    moments_->merge(groups[row], other);
  }
}

}  // namespace bireme
