// Keys of groups and joins of any types: from rows of key columns to the numbers of distinct keys, and back
// to columns.
//
// Rule: keys are numbered 0, 1, 2 … in the order in which they first come (but NULL in an only column after
// the rest of its vector). NULL equals NULL where the column is nullable; a row with NULL elsewhere has no
// number (kNoEntry). Three forms, chosen by the types alone:
//   packed: fixed-width columns, and beside them strings as numbers of their own, in at most 64 bytes
//   (see `group_packed`);
//   text: one string column;
//   serial: everything else, the columns of a row written behind each other into one byte string.
// Dictionary-encoded strings are looked up once per entry that occurs, not once per row; numbered ones leave
// with a dictionary where they are few.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "kernels/group_packed.hpp"
#include "kernels/group_text.hpp"

namespace bireme {

class KeyIndex {
 public:
  enum class Form { Empty, Packed, Text, Serial };

  KeyIndex(const std::vector<Type>& types, const std::vector<bool>& nullable, bool is_lean = false);

  // Distinct keys; without key columns there is always one.
  uint32_t size() const;
  int64_t nbytes() const;
  // Bytes that finding so many new keys would take beside those.
  int64_t bytes_to_add(int64_t entries) const;
  // Room for so many keys; `reserve_slots`: where they are found by hash.
  void reserve(int64_t entries);
  void reserve_slots(int64_t entries);

  // The key columns of the given entries.
  std::vector<OutputColumn> columns(const uint32_t* entries, int64_t rows) const;
  // The canonical words of one key column of the given entries, and whether it is valid there. Throws
  // EngineBug for columns that are no integers of at most 64 bits.
  void read_words(int column, const uint32_t* entries, int64_t rows, uint64_t* words, uint8_t* valid) const;

 private:
  friend class KeyRows;

  void read_validity(int column, const uint32_t* entries, int64_t rows, uint8_t* valid) const;
  // From now on keys with NULL in one of several columns have room.
  void add_null_bits();
  std::vector<OutputColumn> packed_columns(const uint32_t* entries, int64_t rows) const;
  OutputColumn text_column(size_t column, const uint64_t* numbers, const uint8_t* valid, int64_t rows) const;
  // The same as codes of all texts of the column.
  OutputColumn code_column(size_t column, Buffer numbers, const uint8_t* valid, int64_t rows) const;
  std::vector<OutputColumn> serial_columns(const uint32_t* entries, int64_t rows) const;

  std::vector<Type> types_;
  std::vector<bool> nullable_;
  bool is_lean_;
  KeyLayout layout_;  // with room for NULL; that of `packed_` has it once there was one
  Form form_;
  std::unique_ptr<PackedIndex> packed_;
  std::vector<TextIndex> texts_;    // packed: one per column (empty for others); text, serial: the one
  uint32_t null_entry_ = kNoEntry;  // of NULL in the only column
};

// The rows of one batch, to be looked up vector by vector. Any number may read one index at once.
class KeyRows {
 public:
  // The columns must outlive it. Throws EngineBug for columns of other types than the index has.
  KeyRows(const KeyIndex& index, std::vector<const Column*> columns);

  // Writes the numbers of rows [begin, begin + rows), at most kVectorRows.
  void find(const KeyIndex& index, int64_t begin, int64_t rows, uint32_t* entries);
  void find_or_add(KeyIndex& index, int64_t begin, int64_t rows, uint32_t* entries);
  // Says how many rows `find_or_add` will be called for.
  static void expect(KeyIndex& index, int64_t rows);
  // The same of all rows of the batch, and looks at what ranges their keys have.
  void announce(KeyIndex& index, int64_t rows) const;

 private:
  struct State {
    const Column* column = nullptr;
    std::vector<uint32_t> memo;  // per dictionary entry: its number, or one of the marks in the source
    std::vector<uint8_t> valid;  // of the vector at hand
    bool has_nulls = false;
    std::vector<uint64_t> words[2];
    std::vector<uint32_t> numbers;
  };

  void look_up(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows, uint32_t* entries);
  void number_texts(State& state, const TextIndex& index, TextIndex* add, int64_t begin, int64_t rows,
                    uint32_t* numbers);
  void number_codes(State& state, const TextIndex& index, TextIndex* add, int64_t begin, int64_t rows,
                    uint32_t* numbers);
  void load_packed(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows);
  void find_packed(const KeyIndex& index, KeyIndex* add, int64_t rows, uint32_t* entries);
  void find_serial(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows, uint32_t* entries);
  void serialize(const KeyIndex& index, int64_t begin, int64_t rows, std::vector<Text>& keys);
  void append_value(const KeyColumn& key, State& state, int64_t begin, int64_t row);

  std::vector<State> states_;
  std::vector<uint8_t> absent_;  // rows of the vector that have no number
  bool any_absent_ = false;
  Cells<char> bytes_;  // serialized keys of the vector
};

}  // namespace bireme
