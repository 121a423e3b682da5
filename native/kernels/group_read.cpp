#include "kernels/group_read.hpp"

#include <limits>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

template <typename T>
void widen(const Column& column, int64_t begin, int64_t rows, uint64_t* words) {
  const T* values = column.as<T>() + begin;
  for (int64_t row = 0; row < rows; ++row)
    words[row] = static_cast<uint64_t>(static_cast<int64_t>(values[row]));
}

template <typename T>
void widen_floats(const Column& column, int64_t begin, int64_t rows, uint64_t* words) {
  const T* values = column.as<T>() + begin;
  for (int64_t row = 0; row < rows; ++row) words[row] = canonical_bits(static_cast<double>(values[row]));
}

template <typename T>
Buffer narrow(const uint64_t* words, int64_t rows) {
  Buffer buffer(rows * static_cast<int64_t>(sizeof(T)));
  T* values = buffer.as<T>();
  for (int64_t row = 0; row < rows; ++row) values[row] = static_cast<T>(words[row]);
  return buffer;
}

Buffer narrow_floats(const uint64_t* words, int64_t rows) {
  Buffer buffer(rows * 4);
  auto* values = buffer.as<float>();
  for (int64_t row = 0; row < rows; ++row)
    values[row] = static_cast<float>(std::bit_cast<double>(words[row]));
  return buffer;
}

Buffer bitmap(const uint64_t* words, int64_t rows) {
  Buffer buffer = Buffer::zeroed(bitmap_bytes(rows));
  auto* bytes = buffer.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    bytes[row >> 3] |= static_cast<uint8_t>((words[row] & 1) << (row & 7));
  return buffer;
}

Buffer values_of_words(Kind kind, Buffer words, int64_t rows) {
  switch (kind) {
    case Kind::Bool:
      return bitmap(words.as<uint64_t>(), rows);
    case Kind::Float32:
      return narrow_floats(words.as<uint64_t>(), rows);
    case Kind::Decimal128:
      return words;
    default:
      break;
  }
  switch (width_of(kind)) {
    case 1:
      return narrow<uint8_t>(words.as<uint64_t>(), rows);
    case 2:
      return narrow<uint16_t>(words.as<uint64_t>(), rows);
    case 4:
      return narrow<uint32_t>(words.as<uint64_t>(), rows);
    case 8:
      return words;
    default:
      throw EngineBug("group tables have no words of this type");
  }
}

}  // namespace

void read_words(const Column& column, int64_t begin, int64_t rows, uint64_t* words) {
  switch (column.type.kind) {
    case Kind::Bool:
      for (int64_t row = 0; row < rows; ++row) words[row] = column.bool_at(begin + row) ? 1 : 0;
      return;
    case Kind::Int8:
      return widen<int8_t>(column, begin, rows, words);
    case Kind::UInt8:
      return widen<uint8_t>(column, begin, rows, words);
    case Kind::Int16:
      return widen<int16_t>(column, begin, rows, words);
    case Kind::UInt16:
      return widen<uint16_t>(column, begin, rows, words);
    case Kind::UInt32:
      return widen<uint32_t>(column, begin, rows, words);
    case Kind::Int32:
    case Kind::Date32:
    case Kind::Time32:
      return widen<int32_t>(column, begin, rows, words);
    case Kind::Float32:
      return widen_floats<float>(column, begin, rows, words);
    case Kind::Float64:
      return widen_floats<double>(column, begin, rows, words);
    default:
      if (width_of(column.type.kind) != 8) throw EngineBug("group tables have no words of this type");
      if (rows > 0) std::memcpy(words, column.as<uint64_t>() + begin, static_cast<size_t>(rows) * 8);
  }
}

const uint64_t* words_of(const Column& column, int64_t begin, int64_t rows, uint64_t* scratch) {
  if (width_of(column.type.kind) == 8 && column.type.kind != Kind::Float64)
    return column.as<uint64_t>() + begin;
  read_words(column, begin, rows, scratch);
  return scratch;
}

bool read_validity(const Column& column, int64_t begin, int64_t rows, uint8_t* valid) {
  if (column.type.kind == Kind::Null) {
    std::memset(valid, 0, static_cast<size_t>(rows));
    return rows > 0;
  }
  if (!column.may_have_nulls()) return false;
  const uint8_t* bits = column.validity;
  const int64_t first = column.validity_offset + begin;
  uint8_t all = 1;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t bit = first + row;
    valid[row] = (bits[bit >> 3] >> (bit & 7)) & 1;
    all &= valid[row];
  }
  return all == 0;
}

void set_validity(OutputColumn& column, const uint8_t* valid) {
  if (valid == nullptr) return;
  int64_t count = 0;
  for (int64_t row = 0; row < column.rows; ++row) count += valid[row];
  column.null_count = column.rows - count;
  if (column.null_count == 0) return;
  column.validity = Buffer::zeroed(bitmap_bytes(column.rows));
  auto* bytes = column.validity.as<uint8_t>();
  for (int64_t row = 0; row < column.rows; ++row)
    bytes[row >> 3] |= static_cast<uint8_t>(valid[row] << (row & 7));
}

OutputColumn column_of_words(const Type& type, Buffer words, const uint8_t* valid, int64_t rows) {
  OutputColumn column;
  column.type = type;
  column.rows = rows;
  column.values = values_of_words(type.kind, std::move(words), rows);
  set_validity(column, valid);
  return column;
}

OutputColumn column_of_texts(const Type& type, const Text* texts, const uint8_t* valid, int64_t rows) {
  OutputColumn column;
  column.type = type;
  column.rows = rows;
  column.offsets = Buffer((rows + 1) * 4);
  auto* offsets = column.offsets.as<int32_t>();
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    offsets[row] = static_cast<int32_t>(total);
    if (valid == nullptr || valid[row] != 0) total += texts[row].length;
    if (total > std::numeric_limits<int32_t>::max()) {
      throw Unsupported("more than 2 GiB of text in one column of one batch; group or join by a shorter key");
    }
  }
  offsets[rows] = static_cast<int32_t>(total);
  column.values = Buffer(total);
  char* bytes = column.values.as<char>();
  for (int64_t row = 0; row < rows; ++row) {
    const auto length = static_cast<size_t>(offsets[row + 1] - offsets[row]);
    if (length > 0) std::memcpy(bytes + offsets[row], texts[row].data(), length);
  }
  set_validity(column, valid);
  return column;
}

OutputColumn null_column(int64_t rows) {
  OutputColumn column;
  column.type = simple_type(Kind::Null);
  column.rows = rows;
  column.null_count = rows;
  return column;
}

}  // namespace bireme
