#include "kernels/range_index.hpp"

#include <algorithm>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"
#include "kernels/join_chain.hpp"
#include "kernels/join_words.hpp"
#include "kernels/sort_rows.hpp"

namespace bireme {

namespace {

constexpr int kRunBits = 4;
constexpr int64_t kRun = int64_t{1} << kRunBits;
constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr uint32_t kNoGroup = 0xFFFFFFFF;

bool comes_before(uint64_t left, uint64_t right) {
  return left < right;
}
bool comes_before(int128 left, int128 right) {
  return left < right;
}
bool comes_before(const Text& left, const Text& right) {
  return text_less(left, right);
}

bool is_there(const Column& column, int64_t row) {
  return column.is_valid(row) &&
         (!column.is_dictionary() || column.dictionary->is_valid(column.codes()[row]));
}

Cells<uint64_t> words_between(const Column& column, int64_t begin, int64_t rows) {
  Cells<uint64_t> words;
  words.resize(rows);
  read_words(column, begin, rows, words.data());
  for (int64_t row = 0; row < rows; ++row)
    words[row] = order_word(column.type.kind, words[row]) ^ kSignBit;
  return words;
}

Cells<int128> wides_between(const Column& column, int64_t begin, int64_t rows) {
  Cells<int128> wides;
  wides.resize(rows);
  const uint64_t* words = column.as<uint64_t>() + 2 * begin;
  for (int64_t row = 0; row < rows; ++row)
    wides[row] = static_cast<int128>(uint128{words[2 * row + 1]} << 64 | words[2 * row]);
  return wides;
}

Cells<Text> texts_between(const Column& column, int64_t begin, int64_t rows) {
  Cells<Text> texts;
  texts.resize(rows, Text{});
  for (int64_t row = 0; row < rows; ++row) {
    if (!is_there(column, begin + row)) continue;
    texts[row] = column.is_dictionary() ? text_at(*column.dictionary, column.codes()[begin + row])
                                        : text_at(column, begin + row);
  }
  return texts;
}

// Of NULL rows anything.
RangeValues values_between(const Column& column, int64_t begin, int64_t rows) {
  const Kind kind = column.type.kind;
  if (is_string(kind)) return texts_between(column, begin, rows);
  if (kind == Kind::Decimal128 && !column.is_dictionary()) return wides_between(column, begin, rows);
  if (is_word(kind) && !column.is_dictionary()) return words_between(column, begin, rows);
  throw Unsupported("no native ranges by Arrow format '" + column.type.format + "'");
}

// How many of the values, which are in order, come before `value`, or with `equal_too` not after it.
template <typename T>
uint32_t count_up_to(const Cells<T>& values, const T& value, bool equal_too) {
  const T* base = values.data();
  int64_t left = values.size();
  const auto counts = [&](const T& other) {
    return equal_too ? !comes_before(value, other) : comes_before(other, value);
  };
  while (left > 1) {
    const int64_t half = left / 2;
    base += counts(base[half - 1]) ? half : 0;
    left -= half;
  }
  const auto before = static_cast<uint32_t>(base - values.data());
  return before + (left == 1 && counts(*base) ? 1 : 0);
}

// The rows that are kept, in the order of the column; rows with equal values keep theirs.
Cells<uint32_t> order_of(const Column& column, const std::vector<uint8_t>& kept) {
  const OutputColumn sorted = sort_rows(Batch::of_columns({column}, column.rows), {SortKey{}}, -1);
  const auto* positions = sorted.values.as<int64_t>();
  Cells<uint32_t> order;
  order.reserve(column.rows);
  for (int64_t place = 0; place < column.rows; ++place) {
    if (kept[static_cast<size_t>(positions[place])] != 0)
      order.append(static_cast<uint32_t>(positions[place]));
  }
  return order;
}

std::vector<uint8_t> kept_rows(const Cells<uint32_t>& heads, const Batch& ranges) {
  std::vector<uint8_t> kept(static_cast<size_t>(ranges.rows()), 1);
  for (int64_t row = 0; row < heads.size(); ++row) {
    if (heads[row] == kNoRow) kept[static_cast<size_t>(row)] = 0;
  }
  for (const Column& column : ranges.columns()) {
    for (int64_t row = 0; row < column.rows; ++row) {
      if (!is_there(column, row)) kept[static_cast<size_t>(row)] = 0;
    }
  }
  return kept;
}

}  // namespace

// ----------------------------------------------------------------------------------------------------- scales

RangeScale::RangeScale(const Column& column, const Cells<uint32_t>& order) {
  RangeValues all = values_between(column, 0, column.rows);
  std::visit(
      [&]<typename T>(const Cells<T>& values) {
        Cells<T> sorted;
        sorted.resize(order.size());
        for (int64_t place = 0; place < order.size(); ++place) sorted[place] = values[order[place]];
        values_ = std::move(sorted);
      },
      all);
}

int64_t RangeScale::nbytes() const {
  return std::visit([](const auto& values) { return values.nbytes(); }, values_);
}

void RangeScale::count_before(const RangeValues& asked, bool equal_too, uint32_t* counts) const {
  std::visit(
      [&]<typename T>(const Cells<T>& values) {
        const auto& wanted = std::get<Cells<T>>(asked);
        for (int64_t row = 0; row < wanted.size(); ++row)
          counts[row] = count_up_to(values, wanted[row], equal_too);
      },
      values_);
}

// ---------------------------------------------------------------------------------------------------- building

RangeIndex::RangeIndex(const Cells<uint32_t>& heads, Batch ranges, bool is_bounded_above)
    : is_bounded_above_(is_bounded_above) {
  for (const Column& column : ranges.columns()) types_.push_back(column.type);
  const std::vector<uint8_t> kept = kept_rows(heads, ranges);
  for (int key = 0; key < ranges.count(); ++key) {
    Cells<uint32_t> order = order_of(ranges[key], kept);
    count_ = order.size();
    scales_.emplace_back(ranges[key], order);
    if (key > 0) {
      rank(order, ranges.rows());
    } else if (heads.empty()) {
      rows_ = std::move(order);
    } else {
      arrange(heads, order);
    }
  }
  if (std::any_of(scales_.begin(), scales_.end(), [](const RangeScale& scale) { return scale.has_texts(); }))
    texts_ = std::move(ranges);
}

// Puts the rows, which come in the order of the first range key, to the others of their join key.
void RangeIndex::arrange(const Cells<uint32_t>& heads, const Cells<uint32_t>& order) {
  group_of_.resize(heads.size(), kNoGroup);
  starts_.push_back(0);
  for (int64_t place = 0; place < count_; ++place) {
    uint32_t& group = group_of_[heads[order[place]]];
    if (group == kNoGroup) {
      group = static_cast<uint32_t>(starts_.size()) - 1;
      starts_.push_back(0);
    }
    ++starts_[group + 1];
  }
  for (int64_t group = 1; group < starts_.size(); ++group) starts_[group] += starts_[group - 1];
  Cells<uint32_t> next;
  next.resize(starts_.size());
  std::copy_n(starts_.data(), starts_.size(), next.data());
  rows_.resize(count_);
  ranks_.resize(count_);
  for (int64_t at = 0; at < count_; ++at) {
    const uint32_t place = next[group_of_[heads[order[at]]]]++;
    rows_[place] = order[at];
    ranks_[place] = static_cast<uint32_t>(at);
  }
}

// Notes the ranks by the second range key, in whose order the rows come. Bounds from above become bounds from
// below by counting from the other end.
void RangeIndex::rank(const Cells<uint32_t>& order, int64_t rows) {
  Cells<uint32_t> ranks;
  ranks.resize(rows);
  for (int64_t place = 0; place < count_; ++place)
    ranks[order[place]] = static_cast<uint32_t>(is_bounded_above_ ? count_ - 1 - place : place);
  Cells<uint32_t> level;
  level.resize(count_);
  for (int64_t place = 0; place < count_; ++place) level[place] = ranks[rows_[place]];
  largest_.push_back(std::move(level));
  while (largest_.back().size() > kRun) {
    const Cells<uint32_t>& below = largest_.back();
    Cells<uint32_t> above;
    above.resize((below.size() + kRun - 1) / kRun, 0);
    for (int64_t at = 0; at < below.size(); ++at) {
      uint32_t& largest = above[at / kRun];
      largest = std::max(largest, below[at]);
    }
    largest_.push_back(std::move(above));
  }
  ranked_ = largest_.front().data();
}

int64_t RangeIndex::nbytes() const {
  int64_t total = rows_.nbytes() + group_of_.nbytes() + starts_.nbytes() + ranks_.nbytes();
  for (const RangeScale& scale : scales_) total += scale.nbytes();
  for (const Cells<uint32_t>& level : largest_) total += level.nbytes();
  return total;
}

// ----------------------------------------------------------------------------------------------------- looking

void RangeIndex::check(std::span<const RangeBound> bounds, std::span<const Column> values) const {
  if (bounds.size() != values.size()) throw EngineBug("a probe got another number of bounds than of values");
  for (size_t index = 0; index < bounds.size(); ++index) {
    const RangeBound& bound = bounds[index];
    if (bound.key < 0 || bound.key >= static_cast<int>(types_.size()) ||
        !same_values(values[index].type, types_[static_cast<size_t>(bound.key)]))
      throw EngineBug("a join table has no ranges of Arrow format '" + values[index].type.format + "'");
    const bool is_above = bound.comparison == Comparison::Below || bound.comparison == Comparison::UpTo;
    if (bound.key == 1 && is_above != is_bounded_above_)
      throw EngineBug("a join table was asked for bounds from the other side");
  }
}

void RangeIndex::find(std::span<const RangeBound> bounds, std::span<const Column> values,
                      const uint32_t* heads, int64_t begin, int64_t rows, RangeSpan* spans) const {
  const auto count = static_cast<uint32_t>(count_);
  std::fill_n(spans, rows, RangeSpan{0, count, 0});
  Cells<uint32_t> counts;
  counts.resize(rows);
  for (size_t index = 0; index < bounds.size(); ++index) {
    const auto [key, comparison] = bounds[index];
    const bool equal_too = comparison == Comparison::UpTo || comparison == Comparison::Above;
    scales_[static_cast<size_t>(key)].count_before(values_between(values[index], begin, rows), equal_too,
                                                   counts.data());
    const bool is_above = comparison == Comparison::Below || comparison == Comparison::UpTo;
    for (int64_t row = 0; row < rows; ++row) {
      RangeSpan& span = spans[row];
      if (!is_there(values[index], begin + row)) {
        span.end = 0;
      } else if (key == 1) {
        span.least = is_above ? count - counts[row] : counts[row];
      } else if (is_above) {
        span.end = std::min(span.end, counts[row]);
      } else {
        span.place = counts[row];
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (heads != nullptr) bound_run(spans[row], heads[row]);
    seek(spans[row]);
  }
}

// From ranks by the first range key to places among the rows of one join key.
void RangeIndex::bound_run(RangeSpan& span, uint32_t head) const {
  const uint32_t group =
      head == kNoRow || span.place >= span.end || group_of_.empty() ? kNoGroup : group_of_[row_of(head)];
  if (group == kNoGroup) {
    span.end = 0;
    return;
  }
  const uint32_t* first = ranks_.data() + starts_[group];
  const uint32_t* last = ranks_.data() + starts_[group + 1];
  const uint32_t* low = std::lower_bound(first, last, span.place);
  const uint32_t* high = std::lower_bound(low, last, span.end);
  span.place = static_cast<uint32_t>(low - ranks_.data());
  span.end = static_cast<uint32_t>(high - ranks_.data());
}

// Goes on to the first place at or after the span's own that counts.
void RangeIndex::seek(RangeSpan& span) const {
  if (largest_.empty() || span.place >= span.end) return;
  size_t level = 0;
  int64_t at = span.place;
  for (;;) {
    // A run that begins here may be passed as a whole.
    while (at % kRun == 0 && level + 1 < largest_.size()) {
      at /= kRun;
      ++level;
    }
    const Cells<uint32_t>& largest = largest_[level];
    const int64_t run_end = std::min(largest.size(), (at / kRun + 1) * kRun);
    while (at < run_end && largest[at] < span.least) ++at;
    if (at < run_end) break;
    if (at == largest.size() || (at << (kRunBits * static_cast<int>(level))) >= span.end) {
      span.place = span.end;
      return;
    }
  }
  for (; level > 0; --level) {
    at *= kRun;
    while (largest_[level - 1][at] < span.least) ++at;
  }
  span.place = static_cast<uint32_t>(std::min<int64_t>(at, span.end));
}

}  // namespace bireme
