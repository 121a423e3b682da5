// Build rows in the order of a value of theirs, so that those within bounds are found and the others never
// looked at.
//
// Rule: rows lie at places, by equal join keys and then by the first range key, so that its bounds leave a run
// of places. Of a second range key each place has a rank, and runs of places the largest rank among them, so
// that from any place the next one with a rank that is large enough is a few steps away. Rows with a NULL among
// their range keys have no place. Once built it never changes, so any number of threads may look up at once.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "arrow/batch.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_text.hpp"

namespace bireme {

// How a build row's range key compares with a value of the stream.
enum class Comparison { Below, UpTo, From, Above };

struct RangeBound {
  int key;
  Comparison comparison;
};

// What is left of a stream row's matches: places from `place` up to `end`, of those whose rank by the second
// range key is `least` or more.
struct RangeSpan {
  uint32_t place;
  uint32_t end;
  uint32_t least;
};

// Values as they are compared, by <: words, wide words, or texts that lie in their column.
using RangeValues = std::variant<Cells<uint64_t>, Cells<int128>, Cells<Text>>;

// The values of a range key in order. The rank of a value is how many come before it.
class RangeScale {
 public:
  RangeScale() = default;
  // `order`: the rows of the column that count, in order.
  RangeScale(const Column& column, const Cells<uint32_t>& order);

  int64_t nbytes() const;
  bool has_texts() const { return std::holds_alternative<Cells<Text>>(values_); }
  // How many values come before each value of `asked`; with `equal_too`, those that equal it as well.
  void count_before(const RangeValues& asked, bool equal_too, uint32_t* counts) const;

 private:
  RangeValues values_;
};

class RangeIndex {
 public:
  // `heads`: of each row the first one with equal join keys, kNoRow for those that match nothing; empty where
  // there are no keys, so that all match. `ranges`: one range key, or two, over all rows. Bounds of the second
  // one come from one side: from above where it `is_bounded_above`.
  RangeIndex(const Cells<uint32_t>& heads, Batch ranges, bool is_bounded_above);

  int64_t nbytes() const;
  // Throws EngineBug for bounds by values of other types, or that this index does not answer.
  void check(std::span<const RangeBound> bounds, std::span<const Column> values) const;
  // Sets the spans of stream rows [begin, begin + rows) to their matches, the first of them ahead. `heads` are the
  // links that their join keys lead to; null without keys.
  void find(std::span<const RangeBound> bounds, std::span<const Column> values, const uint32_t* heads,
            int64_t begin, int64_t rows, RangeSpan* spans) const;
  // Goes on to the next place that counts; to the span's end if there is none.
  void step(RangeSpan& span) const {
    ++span.place;
    if (ranked_ != nullptr && span.place < span.end && ranked_[span.place] < span.least) seek(span);
  }
  // Whether all places of a span count.
  bool has_whole_runs() const { return ranked_ == nullptr; }
  const uint32_t* rows() const { return rows_.data(); }

 private:
  void arrange(const Cells<uint32_t>& heads, const Cells<uint32_t>& order);
  void rank(const Cells<uint32_t>& order, int64_t rows);
  void bound_run(RangeSpan& span, uint32_t head) const;
  void seek(RangeSpan& span) const;

  std::vector<Type> types_;
  bool is_bounded_above_;
  int64_t count_ = 0;         // of places
  Cells<uint32_t> rows_;      // by place
  Cells<uint32_t> group_of_;  // by the first row of a join key; without keys there are no groups
  Cells<uint32_t> starts_;    // by group, its first place; and the end
  Cells<uint32_t> ranks_;     // by place, by the first range key; where there are groups
  std::vector<RangeScale> scales_;
  // By place, the rank by the second range key; then by runs of places, and by runs of those, the largest.
  std::vector<Cells<uint32_t>> largest_;
  const uint32_t* ranked_ = nullptr;  // the first of these; null without a second range key
  Batch texts_;  // where the texts of the scales lie
};

}  // namespace bireme
