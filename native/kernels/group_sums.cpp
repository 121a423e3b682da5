#include "kernels/group_sums.hpp"

#include "arrow/errors.hpp"
#include "kernels/group_loops.hpp"

namespace bireme {

namespace {

constexpr int kLanes = 4;

// More cells of moments do not stay in the first-level cache.
constexpr int64_t kPrefetchCells = 1024;
constexpr int64_t kRowsAhead = 32;

// Adds value(row) to the lane of its group. Neighbouring rows go to different lanes.
template <typename T, typename Value>
inline void add_in_lanes(const uint32_t* groups, int64_t rows, T (*lanes)[kFewGroups], Value value) {
  int64_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane][groups[row + lane]] += value(row + lane);
  }
  for (; row < rows; ++row) lanes[0][groups[row]] += value(row);
}

// Whether a vector of values within these bits can be added up in 64 bits.
constexpr bool sums_fit(uint64_t bits) {
  return bits < (uint64_t{1} << 52);
}
static_assert(kVectorRows <= 1 << 10);

[[noreturn]] void overflow() {
  throw Overflow("a sum left the range of 38 digits; cast its argument to double");
}

}  // namespace

void Counts::add(const uint32_t* groups, int64_t rows) noexcept {
  int64_t* cells = cells_.data();
  if (cells_.size() == 1) {
    cells[0] += rows;
  } else if (cells_.size() <= kFewGroups) {
    int64_t lanes[kLanes][kFewGroups] = {};
    add_in_lanes(groups, rows, lanes, [](int64_t) { return 1; });
    for (auto& lane : lanes) {
      for (int64_t group = 0; group < cells_.size(); ++group) cells[group] += lane[group];
    }
  } else {
    for (int64_t row = 0; row < rows; ++row) ++cells[groups[row]];
  }
}

void Counts::add(const int64_t* counts, const uint32_t* groups, int64_t rows) noexcept {
  int64_t* cells = cells_.data();
  for (int64_t row = 0; row < rows; ++row) cells[groups[row]] += counts[row];
}

void ExactSums::grow(int64_t groups) {
  if (wide_.empty()) {
    narrow_.resize(groups, 0);
  } else {
    wide_.resize(groups, 0);
  }
  groups_ = groups;
}

void ExactSums::widen() {
  if (!wide_.empty() || groups_ == 0) return;
  Cells<int128> wide;
  wide.resize(groups_);
  for (int64_t group = 0; group < groups_; ++group) wide[group] = narrow_[group];
  std::swap(wide_, wide);
  narrow_.clear();
}

void ExactSums::add_to(uint32_t group, int128 value) {
  int128& cell = wide_[group];
  if (__builtin_add_overflow(cell, value, &cell)) overflow();
}

bool ExactSums::add_few(const int64_t* values, const uint32_t* groups, int64_t rows) {
  if (!sums_fit(group_loops().magnitude_bits(values, rows))) return false;
  int64_t lanes[kLanes][kFewGroups] = {};
  add_in_lanes(groups, rows, lanes, [values](int64_t row) { return values[row]; });
  for (int64_t group = 0; group < groups_; ++group) {
    add_sum(static_cast<uint32_t>(group),
            lanes[0][group] + lanes[1][group] + lanes[2][group] + lanes[3][group]);
  }
  return true;
}

void ExactSums::add_to_one(const int64_t* values, int64_t rows) {
  uint64_t bits = 0;
  const int64_t narrow = group_loops().sum_words(values, rows, &bits);
  if (sums_fit(bits)) return add_sum(0, narrow);
  int128 sum = 0;
  for (int64_t row = 0; row < rows; ++row) sum += values[row];
  add_sum(0, sum);
}

void ExactSums::add_sum(uint32_t group, int128 sum) {
  if (wide_.empty()) {
    const int128 whole = sum + narrow_[group];  // of a vector's rows, so far from the edge of 128 bits
    const auto narrow = static_cast<int64_t>(whole);
    if (narrow == whole) {
      narrow_[group] = narrow;
      return;
    }
    widen();
  }
  add_to(group, sum);
}

void ExactSums::add(const int64_t* values, const uint32_t* groups, int64_t rows) {
  if (groups_ == 1) return add_to_one(values, rows);
  if (groups_ <= kFewGroups && add_few(values, groups, rows)) return;
  int64_t row = 0;
  if (wide_.empty()) {
    int64_t* cells = narrow_.data();
    for (; row < rows; ++row) {
      int64_t sum;
      if (__builtin_add_overflow(cells[groups[row]], values[row], &sum)) [[unlikely]]
        break;
      cells[groups[row]] = sum;
    }
    if (row == rows) return;
    widen();
  }
  for (; row < rows; ++row) add_to(groups[row], values[row]);
}

void ExactSums::add_unsigned(const uint64_t* values, const uint32_t* groups, int64_t rows) {
  uint64_t bits = 0;
  for (int64_t row = 0; row < rows; ++row) bits |= values[row];
  if (bits >> 63 == 0) return add(reinterpret_cast<const int64_t*>(values), groups, rows);
  widen();
  for (int64_t row = 0; row < rows; ++row) add_to(groups[row], int128{values[row]});
}

void ExactSums::add_wide(const int128* values, const uint32_t* groups, int64_t rows) {
  int64_t narrow[kVectorRows];
  int64_t all_fit = 1;
  for (int64_t row = 0; row < rows; ++row) {
    narrow[row] = static_cast<int64_t>(values[row]);
    all_fit &= static_cast<int64_t>(int128{narrow[row]} == values[row]);
  }
  if (all_fit != 0) return add(narrow, groups, rows);
  widen();
  for (int64_t row = 0; row < rows; ++row) add_to(groups[row], values[row]);
}

void FloatSums::add(const double* values, const uint32_t* groups, int64_t rows) noexcept {
  double* cells = cells_.data();
  if (cells_.size() > kFewGroups) {
    for (int64_t row = 0; row < rows; ++row) cells[groups[row]] += values[row];
    return;
  }
  double lanes[kLanes][kFewGroups] = {};
  add_in_lanes(groups, rows, lanes, [values](int64_t row) { return values[row]; });
  for (int64_t group = 0; group < cells_.size(); ++group) {
    cells[group] += (lanes[0][group] + lanes[1][group]) + (lanes[2][group] + lanes[3][group]);
  }
}

void MomentSums::add(const double* values, const uint32_t* groups, int64_t rows) noexcept {
  Moments* cells = cells_.data();
  const bool is_far = cells_.size() > kPrefetchCells;
  for (int64_t row = 0; row < rows; ++row) {
    // A row's chain of additions and divisions is long, so by itself the processor looks few rows ahead.
    if (is_far && row + kRowsAhead < rows) __builtin_prefetch(&cells[groups[row + kRowsAhead]]);
    Moments& cell = cells[groups[row]];
    ++cell.count;
    const double delta = values[row] - cell.mean;
    cell.mean += delta / static_cast<double>(cell.count);
    cell.squares += delta * (values[row] - cell.mean);
  }
}

// Chan, Golub and LeVeque 1983.
void MomentSums::merge(uint32_t group, const Moments& other) noexcept {
  if (other.count == 0) return;
  Moments& cell = cells_[group];
  if (cell.count == 0) {
    cell = other;
    return;
  }
  const auto mine = static_cast<double>(cell.count);
  const auto theirs = static_cast<double>(other.count);
  const double delta = other.mean - cell.mean;
  cell.mean += delta * theirs / (mine + theirs);
  cell.squares += other.squares + delta * delta * mine * theirs / (mine + theirs);
  cell.count += other.count;
}

}  // namespace bireme
