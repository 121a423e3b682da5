// Where the build rows of a stream row come from, one after the other: a chain of equal keys, or places within
// bounds.
//
// Rule: both sources have one shape, so that what is done with matches exists once. A Rest is what is left of a
// stream row's matches; it can be kept and gone on with at any time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrow/column.hpp"
#include "kernels/gather.hpp"
#include "kernels/join_loops.hpp"
#include "kernels/join_table.hpp"

namespace bireme {

// Others may mark the same row at the same time.
inline void mark(uint8_t* matched, uint32_t row) {
  std::atomic_ref<uint8_t>(matched[row]).store(1, std::memory_order_relaxed);
}

inline bool is_marked(const uint8_t* matched, uint32_t row) {
  return std::atomic_ref<uint8_t>(const_cast<uint8_t&>(matched[row])).load(std::memory_order_relaxed) != 0;
}

// Build rows with equal keys, in their order.
class ChainMatches {
 public:
  using Rest = uint32_t;  // a link

  ChainMatches(const JoinTable& table, std::span<const Column> keys) : table_(table), reader_(table, keys) {}

  // The matches of rows [begin, begin + rows), at most kVectorRows.
  void find(int64_t begin, int64_t rows, Rest* rests) { reader_.find(begin, rows, rests); }
  static bool has(Rest rest) { return rest != kNoRow; }
  static uint32_t row(Rest rest) { return row_of(rest); }
  void step(Rest& rest) const { rest = has_more(rest) ? table_.next(rest) : kNoRow; }
  bool has_one_each() const { return table_.is_unique(); }

 private:
  const JoinTable& table_;
  JoinHeads reader_;
};

// Build rows with equal keys, if there are keys, and within bounds; in the order of the first range key.
class RangeMatches {
 public:
  using Rest = RangeSpan;

  // `columns`: the keys, then the value of each bound.
  RangeMatches(const JoinTable& table, std::span<const RangeBound> bounds, std::span<const Column> columns)
      : index_(*table.ranges()), bounds_(bounds), values_(columns.last(bounds.size())) {
    index_.check(bounds_, values_);
    const std::span<const Column> keys = columns.first(columns.size() - bounds.size());
    if (keys.empty()) return;
    reader_ = std::make_unique<JoinHeads>(table, keys);
    heads_.resize(kVectorRows);
  }

  void find(int64_t begin, int64_t rows, Rest* rests) {
    if (reader_ != nullptr) reader_->find(begin, rows, heads_.data());
    index_.find(bounds_, values_, reader_ != nullptr ? heads_.data() : nullptr, begin, rows, rests);
  }
  static bool has(const Rest& rest) { return rest.place < rest.end; }
  uint32_t row(const Rest& rest) const { return index_.rows()[rest.place]; }
  void step(Rest& rest) const { index_.step(rest); }
  // Takes up to `room` matches at once where they lie side by side; else none.
  int64_t take(Rest& rest, uint32_t* found, int64_t room) const {
    if (!index_.has_whole_runs()) return 0;
    const int64_t count = std::min<int64_t>(rest.end - rest.place, room);
    std::copy_n(index_.rows() + rest.place, count, found);
    rest.place += static_cast<uint32_t>(count);
    return count;
  }
  static bool has_one_each() { return false; }

 private:
  const RangeIndex& index_;
  std::span<const RangeBound> bounds_;
  std::span<const Column> values_;
  std::unique_ptr<JoinHeads> reader_;
  std::vector<uint32_t> heads_;
};

// Pairs of stream and build rows that match, in order, block by block.
class PairCursor {
 public:
  virtual ~PairCursor() = default;

  // Fills in at most `capacity` pairs and returns how many; fewer than that only at the end. With `missing`,
  // rows without a pair come with kMissingRow. Pairs with a build row for which skip[row] != 0 are left out,
  // unless `skip` is null.
  virtual int64_t fill(uint32_t* positions, uint32_t* found, int64_t capacity, bool missing,
                       const uint8_t* skip) = 0;
  // Rows whose pairs have all been given.
  virtual int64_t rows_done() const = 0;
  virtual bool at_end() const = 0;
};

// The pairs that a source gives.
template <typename Matches>
class MatchCursor final : public PairCursor {
 public:
  MatchCursor(Matches matches, int64_t rows) : matches_(std::move(matches)), rows_(rows) {}

  int64_t rows_done() const override { return begin_ + row_; }
  bool at_end() const override { return rows_done() == rows_; }

  int64_t fill(uint32_t* positions, uint32_t* found, int64_t capacity, bool missing,
               const uint8_t* skip) override {
    int64_t pairs = 0;
    [[maybe_unused]] const bool simple = matches_.has_one_each() && !missing && skip == nullptr;
    for (;;) {
      if (row_ == length_) {
        if (at_end()) return pairs;
        look_up();
      }
      if constexpr (std::is_same_v<Rest, uint32_t>) {
        if (simple && row_ == 0) {
          if (pairs + length_ > capacity) return pairs;
          pairs += join_loops().matches(rests_, length_, static_cast<uint32_t>(begin_), positions + pairs,
                                        found + pairs);
          row_ = length_;
          continue;
        }
      }
      for (; row_ < length_; ++row_) {
        const bool is_new = !is_open_;
        Rest rest = is_new ? rests_[row_] : open_;
        const auto position = static_cast<uint32_t>(begin_ + row_);
        is_open_ = false;
        if (is_new && missing && !matches_.has(rest)) {
          if (pairs == capacity) return pairs;
          positions[pairs] = position;
          found[pairs++] = kMissingRow;
        }
        if constexpr (!std::is_same_v<Rest, uint32_t>) {
          if (skip == nullptr && matches_.has(rest)) {
            const int64_t taken = matches_.take(rest, found + pairs, capacity - pairs);
            std::fill_n(positions + pairs, taken, position);
            pairs += taken;
          }
        }
        for (; matches_.has(rest); matches_.step(rest)) {
          const uint32_t row = matches_.row(rest);
          if (skip != nullptr && is_marked(skip, row)) continue;
          if (pairs == capacity) {
            open_ = rest;
            is_open_ = true;
            return pairs;
          }
          positions[pairs] = position;
          found[pairs++] = row;
        }
      }
    }
  }

 private:
  using Rest = typename Matches::Rest;

  void look_up() {
    begin_ += length_;
    row_ = 0;
    length_ = std::min(kVectorRows, rows_ - begin_);
    matches_.find(begin_, length_, rests_);
  }

  Matches matches_;
  int64_t rows_;
  int64_t begin_ = 0;   // of the vector at hand
  int64_t length_ = 0;  // its rows
  int64_t row_ = 0;     // in the vector
  bool is_open_ = false;
  Rest open_{};  // of the row, where its pairs were interrupted
  Rest rests_[kVectorRows];
};

}  // namespace bireme
