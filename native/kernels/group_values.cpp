#include "kernels/group_values.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/group_loops.hpp"
#include "kernels/group_read.hpp"
#include "kernels/group_slots.hpp"

namespace bireme {

namespace {

// The words of the given rows. `scratch` has room for kVectorRows.
void gather_words(const Column& column, const int64_t* rows, int64_t count, uint64_t* out) {
  if (count == 0) return;
  const int64_t first = rows[0];
  const int64_t span = rows[count - 1] - first + 1;
  if (span == count) {
    read_words(column, first, count, out);
    return;
  }
  uint64_t scratch[kVectorRows];
  const uint64_t* words = words_of(column, first, span, scratch);
  for (int64_t index = 0; index < count; ++index) out[index] = words[rows[index] - first];
}

}  // namespace

// ------------------------------------------------------------------------------------------------ ValueCells

int64_t ValueCells::nbytes() const {
  return words_.nbytes() + wides_.nbytes() + texts_.nbytes() + places_.nbytes() + arena_.nbytes();
}

void ValueCells::grow(int64_t groups) {
  if (is_string(type_.kind)) {
    texts_.resize(groups, Text{});
    places_.resize(groups, Place{});
  } else if (type_.kind == Kind::Decimal128) {
    wides_.resize(groups, 0);
  } else {
    words_.resize(groups, 0);
  }
}

void ValueCells::keep_text(uint32_t group, const Text& text) {
  Text kept = text;
  if (text.length > Text::kInlineMax) {
    Place& place = places_[group];
    if (place.capacity < text.length) {
      // Doubling bounds what outgrown places waste.
      const uint64_t wanted =
          std::max<uint64_t>(text.length, std::min<uint64_t>(2 * uint64_t{place.capacity}, UINT32_MAX));
      place.bytes = arena_.allocate(static_cast<int64_t>(wanted));
      place.capacity = static_cast<uint32_t>(wanted);
    }
    std::memmove(place.bytes, text.data(), text.length);
    kept.tail = reinterpret_cast<uint64_t>(place.bytes);
  }
  texts_[group] = kept;
}

void ValueCells::keep(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count) {
  if (type_.kind == Kind::Null) return;
  if (is_string(type_.kind)) {
    for (int64_t index = 0; index < count; ++index) keep_text(groups[index], text_of(column, rows[index]));
  } else if (type_.kind == Kind::Decimal128) {
    for (int64_t index = 0; index < count; ++index) {
      std::memcpy(&wides_[groups[index]], column.as<char>() + 16 * rows[index], 16);
    }
  } else {
    uint64_t words[kVectorRows];
    gather_words(column, rows, count, words);
    for (int64_t index = 0; index < count; ++index) words_[groups[index]] = words[index];
  }
}

OutputColumn ValueCells::column(const uint32_t* groups, const uint8_t* valid, int64_t rows) const {
  const auto count = static_cast<size_t>(rows);
  if (type_.kind == Kind::Null) return null_column(rows);
  if (is_string(type_.kind)) {
    std::vector<Text> texts(count);
    for (size_t row = 0; row < count; ++row) texts[row] = texts_[groups[row]];
    return column_of_texts(type_, texts.data(), valid, rows);
  }
  const bool wide = type_.kind == Kind::Decimal128;
  Buffer words(rows * (wide ? 16 : 8));
  if (wide) {
    for (int64_t row = 0; row < rows; ++row) words.as<int128>()[row] = wides_[groups[row]];
  } else {
    for (int64_t row = 0; row < rows; ++row) words.as<uint64_t>()[row] = words_[groups[row]];
  }
  return column_of_words(type_, std::move(words), valid, rows);
}

// -------------------------------------------------------------------------------------------------- Extremes

void Extremes::grow(int64_t groups) {
  const int64_t before = seen_.size();
  values_.grow(groups);
  seen_.resize(groups, 0);
  const bool smallest = side_ == Side::Smallest;
  if (values_.type().kind == Kind::Decimal128) {
    constexpr int128 highest = static_cast<int128>(~uint128{0} >> 1);
    for (int64_t group = before; group < groups; ++group)
      values_.wides()[group] = smallest ? highest : -highest - 1;
  } else if (!is_string(values_.type().kind)) {
    const int64_t start = smallest ? INT64_MAX : INT64_MIN;
    for (int64_t group = before; group < groups; ++group)
      values_.words()[group] = static_cast<uint64_t>(start);
  }
}

template <bool Largest>
void Extremes::add_words(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count) {
  uint64_t words[kVectorRows];
  gather_words(column, rows, count, words);
  const Kind kind = column.type.kind;
  if (is_float(kind) || kind == Kind::UInt64) {
    for (int64_t index = 0; index < count; ++index) words[index] = order_word(kind, words[index]);
  }
  auto* cells = reinterpret_cast<int64_t*>(values_.words().data());
  if (values_.words().size() == 1) {
    int64_t least = cells[0];
    int64_t greatest = cells[0];
    group_loops().extend_range(reinterpret_cast<const int64_t*>(words), count, &least, &greatest);
    cells[0] = Largest ? greatest : least;
    return;
  }
  for (int64_t index = 0; index < count; ++index) {
    const auto value = static_cast<int64_t>(words[index]);
    int64_t& cell = cells[groups[index]];
    cell = (Largest ? cell < value : value < cell) ? value : cell;
  }
}

template <bool Largest>
void Extremes::add_wides(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count) {
  int128* cells = values_.wides().data();
  for (int64_t index = 0; index < count; ++index) {
    int128 value;
    std::memcpy(&value, column.as<char>() + 16 * rows[index], 16);
    int128& cell = cells[groups[index]];
    if (Largest ? cell < value : value < cell) cell = value;
  }
}

void Extremes::add_text(const Text& text, uint32_t group) {
  const Text& kept = values_.text(group);
  const bool smallest = side_ == Side::Smallest;
  if (seen_[group] != 0 && !(smallest ? text_less(text, kept) : text_less(kept, text))) return;
  values_.keep_text(group, text);
  seen_[group] = 1;
}

// What a code stands for is compared once a batch: the extreme of the one group only moves away from it.
// Where a dictionary has more entries than the batch has rows, most come once, and that spares little.
void Extremes::add_codes_to_one(const Column& column, const int64_t* rows, int64_t count) {
  if (beaten_.empty()) beaten_.resize(column.dictionary->rows, 0);
  const int32_t* codes = column.codes();
  for (int64_t index = 0; index < count; ++index) {
    uint8_t& beaten = beaten_[codes[rows[index]]];
    if (beaten != 0) continue;
    beaten = 1;
    add_text(text_of(column, rows[index]), 0);
  }
}

void Extremes::add_texts(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count) {
  if (column.is_dictionary() && column.dictionary->rows <= batch_rows_ && seen_.size() == 1)
    return add_codes_to_one(column, rows, count);
  for (int64_t index = 0; index < count; ++index) add_text(text_of(column, rows[index]), groups[index]);
}

void Extremes::add(const Column& column, const int64_t* rows, const uint32_t* groups, int64_t count) {
  const Kind kind = values_.type().kind;
  const bool smallest = side_ == Side::Smallest;
  if (is_string(kind)) return add_texts(column, rows, groups, count);
  if (kind == Kind::Null) return;
  if (kind == Kind::Decimal128) {
    smallest ? add_wides<false>(column, rows, groups, count) : add_wides<true>(column, rows, groups, count);
  } else {
    smallest ? add_words<false>(column, rows, groups, count) : add_words<true>(column, rows, groups, count);
  }
  if (seen_.size() == 1) {
    seen_[0] |= count > 0 ? 1 : 0;
    return;
  }
  for (int64_t index = 0; index < count; ++index) seen_[groups[index]] = 1;
}

OutputColumn Extremes::column(const uint32_t* groups, int64_t count) const {
  std::vector<uint8_t> valid(static_cast<size_t>(count));
  for (int64_t index = 0; index < count; ++index) valid[static_cast<size_t>(index)] = seen_[groups[index]];
  const Kind kind = values_.type().kind;
  if (!is_float(kind) && kind != Kind::UInt64) return values_.column(groups, valid.data(), count);
  Buffer words(count * 8);
  for (int64_t index = 0; index < count; ++index) {
    words.as<uint64_t>()[index] = order_word(kind, values_.words()[groups[index]]);
  }
  return column_of_words(values_.type(), std::move(words), valid.data(), count);
}

// ----------------------------------------------------------------------------------------------------- Picks

void Picks::grow(int64_t groups) {
  values_.grow(groups);
  seen_.resize(groups, 0);
  valid_.resize(groups, 0);
  if (which_ != Which::Any) positions_.resize(groups, 0);
}

void Picks::add(const Column& column, const int64_t* positions, int64_t begin, int64_t rows,
                const uint32_t* groups) {
  uint8_t valid[kVectorRows];
  const bool has_nulls = read_validity(column, begin, rows, valid);
  int64_t chosen_rows[kVectorRows];
  uint32_t chosen_groups[kVectorRows];
  int64_t chosen = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t group = groups[row];
    bool is_valid = !has_nulls || valid[row] != 0;
    if (is_valid && column.is_dictionary())
      is_valid = column.dictionary->is_valid(column.codes()[begin + row]);
    if (which_ == Which::Any) {
      if (seen_[group] != 0 || !is_valid) continue;
    } else {
      const bool better =
          which_ == Which::First ? positions[row] < positions_[group] : positions[row] >= positions_[group];
      if (seen_[group] != 0 && !better) continue;
      positions_[group] = positions[row];
    }
    seen_[group] = 1;
    valid_[group] = is_valid ? 1 : 0;
    if (!is_valid) continue;
    chosen_rows[chosen] = begin + row;
    chosen_groups[chosen++] = group;
  }
  values_.keep(column, chosen_rows, chosen_groups, chosen);
}

void Picks::merge(const Column& column, const Column& positions, int64_t begin, int64_t rows,
                  const uint32_t* groups) {
  for (int64_t row = 0; row < rows; ++row) {
    if (!positions.is_valid(begin + row)) continue;
    add(column, positions.as<int64_t>() + begin + row, begin + row, 1, groups + row);
  }
}

OutputColumn Picks::column(const uint32_t* groups, int64_t count) const {
  std::vector<uint8_t> valid(static_cast<size_t>(count));
  for (int64_t index = 0; index < count; ++index) valid[static_cast<size_t>(index)] = valid_[groups[index]];
  return values_.column(groups, valid.data(), count);
}

OutputColumn Picks::positions(const uint32_t* groups, int64_t count) const {
  std::vector<uint8_t> valid(static_cast<size_t>(count));
  Buffer words(count * 8);
  for (int64_t index = 0; index < count; ++index) {
    valid[static_cast<size_t>(index)] = seen_[groups[index]];
    words.as<int64_t>()[index] = positions_[groups[index]];
  }
  return column_of_words(simple_type(Kind::Int64), std::move(words), valid.data(), count);
}

}  // namespace bireme
