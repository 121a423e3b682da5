// One kept value per group: smallest, largest, any, first or last.
//
// Rule: `ValueCells` keeps values of one type, whatever it is; which row's value to keep is decided here too,
// in loops that read only what decides. Values of one word order as signed integers (`order_word`), so min
// and max have one loop for all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_read.hpp"
#include "kernels/group_text.hpp"

namespace bireme {

// Values of one type per group, as words, pairs of words, or strings in an arena.
class ValueCells {
 public:
  explicit ValueCells(Type type) : type_(std::move(type)) {}

  const Type& type() const { return type_; }
  int64_t nbytes() const;
  void grow(int64_t groups);
  // Keeps the value of `rows[i]` of the column for `groups[i]`; of several for one group, the last.
  void keep(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count);
  void keep_text(uint32_t group, const Text& text);

  Cells<uint64_t>& words() { return words_; }
  const Cells<uint64_t>& words() const { return words_; }
  Cells<int128>& wides() { return wides_; }
  const Text& text(uint32_t group) const { return texts_[group]; }

  OutputColumn column(const uint32_t* groups, const uint8_t* valid, int64_t rows) const;

 private:
  struct Place {
    char* bytes = nullptr;
    uint32_t capacity = 0;
  };

  Type type_;
  Cells<uint64_t> words_;
  Cells<int128> wides_;
  Cells<Text> texts_;
  Cells<Place> places_;  // where the long string of a group lies; reused by the next that fits
  TextArena arena_;
};

// The value at a row whatever its encoding; for dictionary columns the row of the dictionary.
inline Text text_of(const Column& column, int64_t row) {
  return column.is_dictionary() ? text_at(*column.dictionary, column.codes()[row]) : text_at(column, row);
}

// Smallest or largest values.
class Extremes {
 public:
  enum class Side { Smallest, Largest };

  Extremes(const Type& type, Side side) : side_(side), values_(type) {}

  void grow(int64_t groups);
  // Says that the columns of `add` are others from now on, of so many rows.
  void begin_batch(int64_t rows) {
    beaten_.clear();
    batch_rows_ = rows;
  }
  // Takes the values of `rows[i]` (all valid) for `groups[i]`.
  void add(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count);
  int64_t nbytes() const { return values_.nbytes() + seen_.nbytes() + beaten_.nbytes(); }
  // `valid` says for which of `groups` there was a value at all.
  OutputColumn column(const uint32_t* groups, int64_t count) const;

 private:
  template <bool Largest>
  void add_words(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count);
  template <bool Largest>
  void add_wides(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count);
  void add_text(const Text& text, uint32_t group);
  void add_texts(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count);
  void add_codes_to_one(const Column& column, const int64_t* rows, int64_t count);

  Side side_;
  ValueCells values_;
  Cells<uint8_t> seen_;
  Cells<uint8_t> beaten_;  // by code, of a batch's dictionary: whether the only group knows it
  int64_t batch_rows_ = 0;
};

// The value at the lowest or highest position, also where it is NULL; or any that is not NULL.
class Picks {
 public:
  enum class Which { First, Last, Any };

  Picks(const Type& type, Which which) : which_(which), values_(type) {}

  void grow(int64_t groups);
  // Row `begin + i` of the column, at `positions[i]`, belongs to `groups[i]`.
  void add(const Column& column, const int64_t* positions, int64_t begin, int64_t rows,
           const uint32_t* groups);
  // The same with positions from a column, where a NULL position says that there is no value.
  void merge(const Column& column, const Column& positions, int64_t begin, int64_t rows,
             const uint32_t* groups);
  int64_t nbytes() const { return values_.nbytes() + seen_.nbytes() + valid_.nbytes() + positions_.nbytes(); }
  OutputColumn column(const uint32_t* groups, int64_t count) const;
  OutputColumn positions(const uint32_t* groups, int64_t count) const;

 private:
  Which which_;
  ValueCells values_;
  Cells<uint8_t> seen_;
  Cells<uint8_t> valid_;
  Cells<int64_t> positions_;
};

}  // namespace bireme
