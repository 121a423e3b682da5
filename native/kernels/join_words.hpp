// Join keys as one machine word a row.
//
// Rule: a single column that is a word in canonical form (group_read.hpp) stands for itself. Several columns,
// or one whose NULL is a key, are numbers to mixed bases: each column counts from the smallest value that the
// build side has, and 0 is NULL where NULL is a key. So a key outside of what the build side has has no word,
// and equal words are equal keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrow/column.hpp"
#include "kernels/group_slots.hpp"
#include "kernels/key_filter_loops.hpp"

namespace bireme {

// Whether values of both types are equal exactly if their forms as keys are.
bool same_values(const Type& left, const Type& right);

// The smallest and largest word of a column, as signed numbers; low > high for none.
struct WordBounds {
  int64_t low = INT64_MAX;
  int64_t high = INT64_MIN;
};

class KeyWords {
 public:
  // Whether keys of these types can have words.
  static bool possible(std::span<const Column> keys);

  // NULL is a key in the first `null_equal_count` columns. False where the words of several columns would not
  // fit into 64 bits.
  bool fit(std::span<const Column> keys, int null_equal_count, const std::vector<WordBounds>& bounds);

  // Where the words of keys lie.
  WordRange range() const { return range_; }
  // Whether that is a range of small numbers, not bits of floats.
  bool is_integer_like() const { return integer_like_; }
  bool is_plain() const { return axes_.empty(); }

 private:
  friend class WordReader;
  struct Axis {
    uint64_t base = 0;
    uint64_t reach = 0;  // the largest value is base + reach
    uint64_t stride = 1;
    uint64_t shift = 0;     // 1 where NULL is a key
    bool is_empty = false;  // no value at all
  };

  std::vector<Axis> axes_;
  WordRange range_;
  bool integer_like_ = true;
};

// The words of one batch's keys, vector by vector. The columns must outlive it.
class WordReader {
 public:
  WordReader(const KeyWords& words, std::span<const Column> keys);

  // The words of rows [begin, begin + rows), at most kVectorRows; those of rows without one are anything.
  // `all` says whether every row has a word; if not, keep()[row] is 0 for those that have none.
  const uint64_t* read(int64_t begin, int64_t rows, bool& all);
  const uint8_t* keep() const { return keep_; }

 private:
  const uint64_t* column_words(size_t column, int64_t begin, int64_t rows);
  bool column_validity(const Column& column, int64_t begin, int64_t rows, uint8_t* valid) const;
  void add_axis(const KeyWords::Axis& axis, const uint64_t* words, const uint8_t* valid, bool first,
                int64_t rows);

  const KeyWords& words_;
  std::span<const Column> keys_;
  std::vector<std::vector<uint64_t>> entries_;  // of dictionary-encoded columns
  uint64_t scratch_[kVectorRows];
  uint64_t codes_[kVectorRows];
  uint8_t keep_[kVectorRows];
  uint8_t valid_[kVectorRows];
};

// What a part of the build side tells of its keys, gathered when it comes.
struct KeyFacts {
  std::vector<WordBounds> bounds;  // one per column; only if keys can have words
  int64_t valid = 0;               // rows without a NULL that matches nothing
  bool ascending = false;          // one column, whose words ascend strictly, none of them NULL
};
KeyFacts facts_of(std::span<const Column> keys, int64_t rows, int null_equal_count);

}  // namespace bireme
