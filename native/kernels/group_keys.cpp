#include "kernels/group_keys.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "arrow/errors.hpp"
#include "arrow/output.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

KeyIndex::Form form_of(const std::vector<Type>& types, const KeyLayout& layout) {
  if (types.empty()) return KeyIndex::Form::Empty;
  if (types.size() == 1 && is_string(types[0].kind)) return KeyIndex::Form::Text;
  if (!layout.packed()) return KeyIndex::Form::Serial;
  // A lookup per string column beside that of the whole key: with many of them one longer key is cheaper.
  const auto strings =
      std::count_if(types.begin(), types.end(), [](const Type& type) { return is_string(type.kind); });
  return strings > 3 ? KeyIndex::Form::Serial : KeyIndex::Form::Packed;
}

// A dictionary that is much shorter than its column costs little to make, and saves whoever reads the column
// looking at every text.
constexpr int64_t kRowsPerTextMin = 4;

}  // namespace

KeyIndex::KeyIndex(const std::vector<Type>& types, const std::vector<bool>& nullable, bool is_lean)
    : types_(types),
      nullable_(nullable),
      is_lean_(is_lean),
      layout_(types, nullable, true),
      form_(form_of(types, layout_)) {
  for (const Type& type : types) {
    if (!is_canonical(type.kind)) throw Unsupported("no native keys of Arrow format '" + type.format + "'");
  }
  if (form_ == Form::Packed) packed_ = std::make_unique<PackedIndex>(KeyLayout(types, nullable, false), is_lean);
  texts_.resize(form_ == Form::Packed ? types.size() : 1);
}

void KeyIndex::add_null_bits() {
  auto wider = std::make_unique<PackedIndex>(layout_, is_lean_);
  wider->adopt(*packed_);
  packed_ = std::move(wider);
}

uint32_t KeyIndex::size() const {
  switch (form_) {
    case Form::Empty:
      return 1;
    case Form::Packed:
      return packed_->size();
    default:
      return texts_[0].size();
  }
}

void KeyIndex::reserve(int64_t entries) {
  if (packed_ != nullptr) packed_->reserve(entries);
}

void KeyIndex::reserve_slots(int64_t entries) {
  if (packed_ != nullptr) packed_->reserve_slots(entries);
  if (form_ != Form::Packed) texts_[0].reserve_more(entries);
}

int64_t KeyIndex::bytes_to_add(int64_t entries) const {
  int64_t total = packed_ != nullptr ? packed_->bytes_to_add(entries) : 0;
  for (const TextIndex& text : texts_) {
    if (form_ != Form::Packed || text.size() > 0) total += text.bytes_to_reserve(entries);
  }
  return total;
}

int64_t KeyIndex::nbytes() const {
  int64_t total = packed_ != nullptr ? packed_->nbytes() : 0;
  for (const TextIndex& text : texts_) total += text.nbytes();
  return total;
}

std::vector<OutputColumn> KeyIndex::columns(const uint32_t* entries, int64_t rows) const {
  switch (form_) {
    case Form::Empty:
      return {};
    case Form::Packed:
      return packed_columns(entries, rows);
    case Form::Serial:
      return serial_columns(entries, rows);
    case Form::Text:
      break;
  }
  std::vector<Text> texts(static_cast<size_t>(rows));
  std::vector<uint8_t> valid(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    texts[static_cast<size_t>(row)] = texts_[0][entries[row]];
    valid[static_cast<size_t>(row)] = entries[row] != null_entry_;
  }
  std::vector<OutputColumn> out;
  out.push_back(column_of_texts(layout_.columns[0].type, texts.data(), valid.data(), rows));
  return out;
}

void KeyIndex::read_validity(int column, const uint32_t* entries, int64_t rows, uint8_t* valid) const {
  if (null_entry_ == kNoEntry && !packed_->has_null_bits()) {
    std::memset(valid, 1, static_cast<size_t>(rows));
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    valid[row] = entries[row] == null_entry_ || packed_->is_null(column, entries[row]) ? 0 : 1;
  }
}

void KeyIndex::read_words(int column, const uint32_t* entries, int64_t rows, uint64_t* words,
                          uint8_t* valid) const {
  const Type& type = types_[static_cast<size_t>(column)];
  if (!is_word(type.kind) || is_float(type.kind))
    throw EngineBug("keys of Arrow format '" + type.format + "' have no range");
  if (form_ == Form::Packed) {
    packed_->read_part(layout_.columns[static_cast<size_t>(column)].part, entries, rows, words, 1);
    return read_validity(column, entries, rows, valid);
  }
  const std::vector<OutputColumn> all = columns(entries, rows);
  const Column view = view_of(all[static_cast<size_t>(column)]);
  bireme::read_words(view, 0, rows, words);
  if (!bireme::read_validity(view, 0, rows, valid)) std::fill(valid, valid + rows, uint8_t{1});
}

std::vector<OutputColumn> KeyIndex::packed_columns(const uint32_t* entries, int64_t rows) const {
  std::vector<OutputColumn> out;
  Buffer validity(rows);
  for (size_t index = 0; index < layout_.columns.size(); ++index) {
    const KeyColumn& column = layout_.columns[index];
    if (column.type.kind == Kind::Null) {
      out.push_back(null_column(rows));
      continue;
    }
    auto* valid = validity.as<uint8_t>();
    if (null_entry_ == kNoEntry && !packed_->has_null_bits()) {
      valid = nullptr;
    } else {
      read_validity(static_cast<int>(index), entries, rows, valid);
    }
    const int words_each = column.type.kind == Kind::Decimal128 ? 2 : 1;
    Buffer words(rows * 8 * words_each);
    for (int word = 0; word < words_each; ++word) {
      packed_->read_part(column.part + word, entries, rows, words.as<uint64_t>() + word, words_each);
    }
    const bool is_repeated = column.interned && texts_[index].size() * kRowsPerTextMin <= rows;
    if (is_repeated && column.type.kind == Kind::String) {
      out.push_back(code_column(index, std::move(words), valid, rows));
    } else if (column.interned) {
      out.push_back(text_column(index, words.as<uint64_t>(), valid, rows));
    } else {
      out.push_back(column_of_words(column.type, std::move(words), valid, rows));
    }
  }
  return out;
}

OutputColumn KeyIndex::text_column(size_t column, const uint64_t* numbers, const uint8_t* valid,
                                   int64_t rows) const {
  std::vector<Text> texts(static_cast<size_t>(rows));
  for (size_t row = 0; row < texts.size(); ++row) {
    if (valid == nullptr || valid[row] != 0) texts[row] = texts_[column][static_cast<uint32_t>(numbers[row])];
  }
  return column_of_texts(layout_.columns[column].type, texts.data(), valid, rows);
}

OutputColumn KeyIndex::code_column(size_t column, Buffer numbers, const uint8_t* valid, int64_t rows) const {
  for (int64_t row = 0; valid != nullptr && row < rows; ++row) {
    if (valid[row] == 0) numbers.as<uint64_t>()[row] = 0;
  }
  const TextIndex& index = texts_[column];
  std::vector<Text> texts(index.size());
  for (uint32_t number = 0; number < index.size(); ++number) texts[number] = index[number];
  OutputColumn codes = column_of_words(simple_type(Kind::Int32), std::move(numbers), valid, rows);
  codes.dictionary = std::make_shared<const OutputColumn>(
      column_of_texts(layout_.columns[column].type, texts.data(), nullptr, index.size()));
  return codes;
}

// A serialized key: per column a byte that says whether it is valid, then (if so) its words, or its length
// and bytes.
std::vector<OutputColumn> KeyIndex::serial_columns(const uint32_t* entries, int64_t rows) const {
  std::vector<OutputColumn> out;
  const auto count = static_cast<size_t>(rows);
  std::vector<const char*> at(count);
  for (size_t row = 0; row < count; ++row) at[row] = texts_[0][entries[row]].data();
  std::vector<uint8_t> valid(count);
  std::vector<Text> texts;
  for (const KeyColumn& column : layout_.columns) {
    const bool text = is_string(column.type.kind);
    const size_t width = column.type.kind == Kind::Decimal128 ? 16 : 8;
    if (text) texts.assign(count, Text{});
    Buffer words(text ? 0 : static_cast<int64_t>(count * width));
    for (size_t row = 0; row < count; ++row) {
      valid[row] = static_cast<uint8_t>(*at[row]++);
      if (valid[row] == 0) continue;
      if (text) {
        uint32_t length = 0;
        std::memcpy(&length, at[row], 4);
        texts[row] = text_over(at[row] + 4, length);
        at[row] += 4 + length;
      } else {
        std::memcpy(words.as<char>() + row * width, at[row], width);
        at[row] += width;
      }
    }
    if (column.type.kind == Kind::Null) {
      out.push_back(null_column(rows));
    } else if (text) {
      out.push_back(column_of_texts(column.type, texts.data(), valid.data(), rows));
    } else {
      out.push_back(column_of_words(column.type, std::move(words), valid.data(), rows));
    }
  }
  return out;
}

}  // namespace bireme
