// Looking rows up in a KeyIndex, vector by vector.
#include <algorithm>
#include <cstring>
#include <string>

#include "arrow/errors.hpp"
#include "kernels/group_keys.hpp"
#include "kernels/group_loops.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

// Marks in a dictionary's memo, beside kNoEntry: looked up, and not there.
constexpr uint32_t kNotSeen = kNoEntry - 1;
constexpr uint32_t kIsNull = kNoEntry - 2;

bool same_values(const Type& left, const Type& right) {
  return left.kind == right.kind && left.scale == right.scale && left.unit == right.unit;
}

}  // namespace

KeyRows::KeyRows(const KeyIndex& index, std::vector<const Column*> columns) {
  const auto& keys = index.layout_.columns;
  if (columns.size() != keys.size())
    throw EngineBug("a batch of keys has another number of columns than its table");
  states_.resize(columns.size());
  absent_.resize(kVectorRows);
  for (size_t position = 0; position < columns.size(); ++position) {
    const Column& column = *columns[position];
    if (!same_values(column.type, keys[position].type)) {
      throw EngineBug("key column " + std::to_string(position) + " has Arrow format '" + column.type.format +
                      "', its table '" + keys[position].type.format + "'");
    }
    State& state = states_[position];
    state.column = &column;
    state.valid.resize(kVectorRows);
    if (column.is_dictionary()) {
      if (!is_string(column.type.kind)) throw Unsupported("only strings may be dictionary-encoded in keys");
      state.memo.assign(static_cast<size_t>(column.dictionary->rows), kNotSeen);
    }
    for (auto& words : state.words) words.resize(kVectorRows);
    state.numbers.resize(kVectorRows);
  }
}

void KeyRows::expect(KeyIndex& index, int64_t rows) {
  if (index.packed_ != nullptr) index.packed_->expect(rows);
}

void KeyRows::announce(KeyIndex& index, int64_t rows) const {
  expect(index, rows);
  if (index.packed_ == nullptr || rows == 0) return;
  if (!index.packed_->wants_ranges()) return;
  std::vector<KeyDomain::Range> ranges;
  for (const State& state : states_) {
    const Column& column = *state.column;
    if (!is_word(column.type.kind) || column.may_have_nulls()) return;
    KeyDomain::Range& range = ranges.emplace_back();
    for (int64_t begin = 0; begin < rows; begin += kVectorRows) {
      const int64_t count = std::min(kVectorRows, rows - begin);
      uint64_t scratch[kVectorRows];
      const auto* words = reinterpret_cast<const int64_t*>(words_of(column, begin, count, scratch));
      group_loops().extend_range(words, count, &range.low, &range.high);
    }
  }
  index.packed_->foresee(ranges);
}

void KeyRows::find(const KeyIndex& index, int64_t begin, int64_t rows, uint32_t* entries) {
  look_up(index, nullptr, begin, rows, entries);
}

void KeyRows::find_or_add(KeyIndex& index, int64_t begin, int64_t rows, uint32_t* entries) {
  look_up(index, &index, begin, rows, entries);
}

void KeyRows::look_up(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows, uint32_t* entries) {
  if (index.form_ == KeyIndex::Form::Empty) {
    std::fill(entries, entries + rows, 0u);
    return;
  }
  for (State& state : states_) {
    state.has_nulls = read_validity(*state.column, begin, rows, state.valid.data());
    if (!state.has_nulls) std::memset(state.valid.data(), 1, static_cast<size_t>(rows));
  }
  std::memset(absent_.data(), 0, static_cast<size_t>(rows));
  any_absent_ = false;
  switch (index.form_) {
    case KeyIndex::Form::Packed:
      load_packed(index, add, begin, rows);
      find_packed(index, add, rows, entries);
      break;
    case KeyIndex::Form::Text:
      number_texts(states_[0], index.texts_[0], add != nullptr ? &add->texts_[0] : nullptr, begin, rows,
                   entries);
      break;
    default:
      find_serial(index, add, begin, rows, entries);
      return;
  }
  State& only = states_[0];
  if (states_.size() > 1 || !only.has_nulls) return;
  const bool is_key = index.layout_.columns[0].nullable;
  if (is_key && add != nullptr && index.null_entry_ == kNoEntry) {
    add->null_entry_ = add->packed_ != nullptr ? add->packed_->add_unlisted() : add->texts_[0].add_unlisted();
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (only.valid[static_cast<size_t>(row)] == 0) entries[row] = is_key ? index.null_entry_ : kNoEntry;
  }
}

// --------------------------------------------------------------------------------------------------- strings

void KeyRows::number_texts(State& state, const TextIndex& index, TextIndex* add, int64_t begin, int64_t rows,
                           uint32_t* numbers) {
  if (state.column->is_dictionary()) return number_codes(state, index, add, begin, rows, numbers);
  Text texts[kVectorRows];
  uint32_t hashes[kVectorRows];
  for (int64_t row = 0; row < rows; ++row) {
    if (state.valid[static_cast<size_t>(row)] != 0) texts[row] = text_at(*state.column, begin + row);
    hashes[row] = hash_text(texts[row]);
  }
  if (add != nullptr) add->reserve_more(rows);
  const bool has_looked = index.guess(hashes, rows, numbers);
  for (int64_t row = 0; row < rows; ++row) {
    if (state.valid[static_cast<size_t>(row)] == 0) {
      numbers[row] = kNoEntry;
    } else {
      numbers[row] = add != nullptr ? add->find_or_add(texts[row], hashes[row], numbers[row])
                                    : index.find(texts[row], hashes[row], numbers[row], has_looked);
    }
  }
}

void KeyRows::number_codes(State& state, const TextIndex& index, TextIndex* add, int64_t begin, int64_t rows,
                           uint32_t* numbers) {
  const Column& dictionary = *state.column->dictionary;
  const int32_t* codes = state.column->codes() + begin;
  if (!state.has_nulls) {
    // Mostly all entries are known by now; marks are above all numbers.
    const uint32_t* memo = state.memo.data();
    uint32_t highest = 0;
    for (int64_t row = 0; row < rows; ++row) {
      numbers[row] = memo[codes[row]];
      highest = std::max(highest, numbers[row]);
    }
    if (highest < kIsNull) return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    numbers[row] = kNoEntry;
    if (state.valid[static_cast<size_t>(row)] == 0) continue;
    uint32_t& memo = state.memo[static_cast<size_t>(codes[row])];
    if (memo == kNotSeen) [[unlikely]] {
      if (!dictionary.is_valid(codes[row])) {
        memo = kIsNull;
      } else {
        const Text text = text_at(dictionary, codes[row]);
        const uint32_t hash = hash_text(text);
        if (add != nullptr) add->reserve_more(1);
        memo = add != nullptr ? add->find_or_add(text, hash) : index.find(text, hash);
      }
    }
    if (memo == kIsNull) {
      state.valid[static_cast<size_t>(row)] = 0;
      state.has_nulls = true;
    } else {
      numbers[row] = memo;
    }
  }
}

// ---------------------------------------------------------------------------------------------------- packed

// Fills the words of every part, and says which rows are absent: NULL where that is no key, or an unknown
// string.
void KeyRows::load_packed(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows) {
  const auto& keys = index.layout_.columns;
  for (size_t position = 0; position < states_.size(); ++position) {
    State& state = states_[position];
    const Column& column = *state.column;
    uint64_t* words = state.words[0].data();
    if (keys[position].interned) {
      number_texts(state, index.texts_[position], add != nullptr ? &add->texts_[position] : nullptr, begin,
                   rows, state.numbers.data());
      for (int64_t row = 0; row < rows; ++row) {
        words[row] = state.numbers[static_cast<size_t>(row)];
        const bool unknown = words[row] == kNoEntry && state.valid[static_cast<size_t>(row)] != 0;
        if (unknown) absent_[static_cast<size_t>(row)] = 1;
        any_absent_ |= unknown;
      }
    } else if (column.type.kind == Kind::Decimal128) {
      const uint64_t* values = column.as<uint64_t>() + 2 * begin;
      for (int64_t row = 0; row < rows; ++row) {
        words[row] = values[2 * row];
        state.words[1][static_cast<size_t>(row)] = values[2 * row + 1];
      }
    } else if (column.type.kind == Kind::Null) {
      std::memset(words, 0, static_cast<size_t>(rows) * 8);
    } else {
      read_words(column, begin, rows, words);
    }
    if (!state.has_nulls) continue;
    bool is_key = keys[position].nullable && states_.size() > 1;
    if (is_key && !index.packed_->has_null_bits()) {
      // The first NULL of this index; where it is only read, none of its keys has one.
      is_key = add != nullptr;
      if (is_key) add->add_null_bits();
    }
    if (!is_key) {
      any_absent_ = true;
      for (int64_t row = 0; row < rows; ++row) {
        if (state.valid[static_cast<size_t>(row)] == 0) absent_[static_cast<size_t>(row)] = 1;
      }
    }
  }
}

void KeyRows::find_packed(const KeyIndex& index, KeyIndex* add, int64_t rows, uint32_t* entries) {
  int32_t present[kVectorRows];
  int64_t count = rows;
  if (any_absent_) {
    count = 0;
    for (int64_t row = 0; row < rows; ++row) {
      present[count] = static_cast<int32_t>(row);
      count += absent_[static_cast<size_t>(row)] ^ 1;
    }
    for (State& state : states_) {
      for (int64_t at = 0; at < count; ++at) {
        const auto from = static_cast<size_t>(present[at]);
        state.words[0][static_cast<size_t>(at)] = state.words[0][from];
        state.words[1][static_cast<size_t>(at)] = state.words[1][from];
        if (states_.size() > 1) state.valid[static_cast<size_t>(at)] = state.valid[from];
      }
    }
  }
  KeyVector vector;
  vector.rows = count;
  for (size_t position = 0; position < states_.size(); ++position) {
    State& state = states_[position];
    const bool nulls = state.has_nulls && states_.size() > 1 && index.layout_.columns[position].nullable;
    vector.parts.push_back(state.words[0].data());
    if (state.column->type.kind == Kind::Decimal128) vector.parts.push_back(state.words[1].data());
    vector.valid.push_back(nulls ? state.valid.data() : nullptr);
  }
  if (!any_absent_) {
    return add != nullptr ? add->packed_->find_or_add(vector, entries) : index.packed_->find(vector, entries);
  }
  uint32_t found[kVectorRows];
  if (count > 0)
    add != nullptr ? add->packed_->find_or_add(vector, found) : index.packed_->find(vector, found);
  std::fill(entries, entries + rows, kNoEntry);
  for (int64_t at = 0; at < count; ++at) entries[present[at]] = found[at];
}

// ---------------------------------------------------------------------------------------------------- serial

void KeyRows::append_value(const KeyColumn& key, State& state, int64_t begin, int64_t row) {
  const Column& column = *state.column;
  const int64_t at = bytes_.size();
  int64_t source_row = begin + row;
  const Column* source = &column;
  bool valid = state.valid[static_cast<size_t>(row)] != 0;
  if (valid && column.is_dictionary()) {
    source_row = column.codes()[begin + row];
    source = column.dictionary;
    valid = source->is_valid(source_row);
  }
  if (!valid) {
    bytes_.resize(at + 1);
    bytes_[at] = 0;
    if (!key.nullable) {
      absent_[static_cast<size_t>(row)] = 1;
      any_absent_ = true;
    }
    return;
  }
  if (is_string(key.type.kind)) {
    const std::string_view text = source->string_at(source_row);
    const auto length = static_cast<uint32_t>(text.size());
    bytes_.resize(at + 5 + length);
    std::memcpy(bytes_.data() + at + 1, &length, 4);
    if (length > 0) std::memcpy(bytes_.data() + at + 5, text.data(), length);
  } else if (key.type.kind == Kind::Decimal128) {
    bytes_.resize(at + 17);
    std::memcpy(bytes_.data() + at + 1, column.as<uint64_t>() + 2 * source_row, 16);
  } else {
    bytes_.resize(at + 9);
    std::memcpy(bytes_.data() + at + 1, &state.words[0][static_cast<size_t>(row)], 8);
  }
  bytes_[at] = 1;
}

void KeyRows::serialize(const KeyIndex& index, int64_t begin, int64_t rows, std::vector<Text>& keys) {
  std::vector<int64_t> starts(static_cast<size_t>(rows) + 1);
  bytes_.resize(0);
  for (State& state : states_) {
    if (is_word(state.column->type.kind)) read_words(*state.column, begin, rows, state.words[0].data());
  }
  for (int64_t row = 0; row < rows; ++row) {
    starts[static_cast<size_t>(row)] = bytes_.size();
    for (size_t position = 0; position < states_.size(); ++position) {
      append_value(index.layout_.columns[position], states_[position], begin, row);
    }
  }
  starts[static_cast<size_t>(rows)] = bytes_.size();
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const int64_t length = starts[row + 1] - starts[row];
    if (length > UINT32_MAX) throw Unsupported("a key of more than 4 GiB");
    keys[row] = text_over(bytes_.data() + starts[row], static_cast<uint32_t>(length));
  }
}

void KeyRows::find_serial(const KeyIndex& index, KeyIndex* add, int64_t begin, int64_t rows,
                          uint32_t* entries) {
  std::vector<Text> keys(static_cast<size_t>(rows));
  serialize(index, begin, rows, keys);
  uint32_t hashes[kVectorRows];
  for (int64_t row = 0; row < rows; ++row) hashes[row] = hash_text(keys[static_cast<size_t>(row)]);
  if (add != nullptr) add->texts_[0].reserve_more(rows);
  const bool has_looked = index.texts_[0].guess(hashes, rows, entries);
  for (int64_t row = 0; row < rows; ++row) {
    const Text& key = keys[static_cast<size_t>(row)];
    if (absent_[static_cast<size_t>(row)] != 0) {
      entries[row] = kNoEntry;
    } else {
      entries[row] = add != nullptr ? add->texts_[0].find_or_add(key, hashes[row], entries[row])
                                    : index.texts_[0].find(key, hashes[row], entries[row], has_looked);
    }
  }
}

}  // namespace bireme
