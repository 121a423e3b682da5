#include "kernels/join_words.hpp"

#include <algorithm>
#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

// Ascends strictly from the word before on.
bool ascends(const uint64_t* words, int64_t rows, int64_t before, bool first) {
  bool good = first || static_cast<int64_t>(words[0]) > before;
  for (int64_t row = 1; row < rows; ++row) {
    good &= static_cast<int64_t>(words[row]) > static_cast<int64_t>(words[row - 1]);
  }
  return good;
}

bool read_any_validity(const Column& column, int64_t begin, int64_t rows, uint8_t* valid) {
  if (!column.is_dictionary() || !column.dictionary->may_have_nulls()) {
    return read_validity(column, begin, rows, valid);
  }
  bool any = false;
  for (int64_t row = 0; row < rows; ++row) {
    valid[row] = column.is_valid(begin + row) && column.dictionary->is_valid(column.codes()[begin + row]);
    any |= valid[row] == 0;
  }
  return any;
}

}  // namespace

bool same_values(const Type& left, const Type& right) {
  return left.kind == right.kind && left.scale == right.scale && left.unit == right.unit;
}

bool KeyWords::possible(std::span<const Column> keys) {
  return !keys.empty() &&
         std::all_of(keys.begin(), keys.end(), [](const Column& key) { return is_word(key.type.kind); });
}

bool KeyWords::fit(std::span<const Column> keys, int null_equal_count,
                   const std::vector<WordBounds>& bounds) {
  axes_.clear();
  integer_like_ = keys.size() > 1 || !is_float(keys[0].type.kind);
  if (keys.size() == 1 && null_equal_count == 0) {
    range_ = {static_cast<uint64_t>(bounds[0].low),
              static_cast<uint64_t>(bounds[0].high) - static_cast<uint64_t>(bounds[0].low)};
    return true;
  }
  unsigned __int128 cells = 1;
  for (size_t column = 0; column < keys.size(); ++column) {
    Axis axis;
    axis.base = static_cast<uint64_t>(bounds[column].low);
    axis.reach = static_cast<uint64_t>(bounds[column].high) - axis.base;
    axis.is_empty = bounds[column].low > bounds[column].high;
    axis.shift = static_cast<int>(column) < null_equal_count ? 1 : 0;
    axis.stride = static_cast<uint64_t>(cells);
    if (axis.is_empty) axis.reach = 0;
    cells *= static_cast<unsigned __int128>(axis.reach) + 1 + axis.shift;
    if (cells > ~uint64_t{0}) return false;
    axes_.push_back(axis);
  }
  range_ = {0, static_cast<uint64_t>(cells) - 1};
  return true;
}

WordReader::WordReader(const KeyWords& words, std::span<const Column> keys) : words_(words), keys_(keys) {
  entries_.resize(keys.size());
  for (size_t column = 0; column < keys.size(); ++column) {
    if (!keys[column].is_dictionary()) continue;
    const Column& dictionary = *keys[column].dictionary;
    entries_[column].resize(static_cast<size_t>(dictionary.rows));
    read_words(dictionary, 0, dictionary.rows, entries_[column].data());
  }
}

const uint64_t* WordReader::column_words(size_t column, int64_t begin, int64_t rows) {
  const Column& key = keys_[column];
  if (!key.is_dictionary()) return words_of(key, begin, rows, scratch_);
  const std::vector<uint64_t>& entries = entries_[column];
  for (int64_t row = 0; row < rows; ++row) {
    scratch_[row] = key.is_valid(begin + row) ? entries[static_cast<size_t>(key.codes()[begin + row])] : 0;
  }
  return scratch_;
}

const uint64_t* WordReader::read(int64_t begin, int64_t rows, bool& all) {
  if (words_.is_plain()) {
    all = !read_any_validity(keys_[0], begin, rows, keep_);
    return column_words(0, begin, rows);
  }
  std::memset(keep_, 1, static_cast<size_t>(rows));
  for (size_t column = 0; column < keys_.size(); ++column) {
    const bool nulls = read_any_validity(keys_[column], begin, rows, valid_);
    const uint64_t* words = column_words(column, begin, rows);
    add_axis(words_.axes_[column], words, nulls ? valid_ : nullptr, column == 0, rows);
  }
  all = std::memchr(keep_, 0, static_cast<size_t>(rows)) == nullptr;
  return codes_;
}

void WordReader::add_axis(const KeyWords::Axis& axis, const uint64_t* words, const uint8_t* valid, bool first,
                          int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t offset = words[row] - axis.base;
    uint64_t code = (offset + axis.shift) * axis.stride;
    bool kept = offset <= axis.reach && !axis.is_empty;
    if (valid != nullptr && valid[row] == 0) {
      code = 0;
      kept = axis.shift != 0;
    }
    codes_[row] = first ? code : codes_[row] + code;
    keep_[row] &= static_cast<uint8_t>(kept);
  }
}

KeyFacts facts_of(std::span<const Column> keys, int64_t rows, int null_equal_count) {
  KeyFacts facts;
  const bool has_words = KeyWords::possible(keys);
  if (has_words) facts.bounds.resize(keys.size());
  facts.ascending = has_words && keys.size() == 1 && !keys[0].is_dictionary();
  uint64_t scratch[kVectorRows];
  uint64_t gathered[kVectorRows];
  uint8_t keep[kVectorRows];
  uint8_t valid[kVectorRows];
  int64_t last = 0;
  for (int64_t begin = 0; begin < rows; begin += kVectorRows) {
    const int64_t count = std::min(kVectorRows, rows - begin);
    std::memset(keep, 1, static_cast<size_t>(count));
    for (size_t column = 0; column < keys.size(); ++column) {
      const bool nulls = read_any_validity(keys[column], begin, count, valid);
      if (nulls && static_cast<int>(column) >= null_equal_count) {
        for (int64_t row = 0; row < count; ++row) keep[row] &= valid[row];
      }
      if (!has_words || keys[column].is_dictionary()) continue;
      const uint64_t* words = words_of(keys[column], begin, count, scratch);
      int64_t kept = count;
      if (nulls) {
        facts.ascending = false;
        kept = 0;
        for (int64_t row = 0; row < count; ++row) {
          gathered[kept] = words[row];
          kept += valid[row];
        }
      } else if (facts.ascending) {
        facts.ascending = ascends(words, count, last, begin == 0);
        last = static_cast<int64_t>(words[count - 1]);
      }
      WordBounds& bounds = facts.bounds[column];
      key_filter_loops().widen(nulls ? gathered : words, kept, &bounds.low, &bounds.high);
    }
    for (int64_t row = 0; row < count; ++row) facts.valid += keep[row];
  }
  for (size_t column = 0; has_words && column < keys.size(); ++column) {
    if (!keys[column].is_dictionary()) continue;
    // The entries are a superset of the values.
    const Column& entries = *keys[column].dictionary;
    std::vector<uint64_t> words(static_cast<size_t>(entries.rows));
    read_words(entries, 0, entries.rows, words.data());
    key_filter_loops().widen(words.data(), entries.rows, &facts.bounds[column].low,
                             &facts.bounds[column].high);
  }
  return facts;
}

}  // namespace bireme
