#include "kernels/sort_codes.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

// Shifts the codes of valid rows down to start at 0, gives NULL rows 0, and counts the bits that are left.
void compress(SortPiece& piece, const uint8_t* valid) {
  uint64_t low = ~uint64_t{0};
  uint64_t high = 0;
  uint64_t* codes = piece.codes.data();
  const int64_t rows = piece.codes.size();
  for (int64_t row = 0; row < rows; ++row) {
    if (valid != nullptr && valid[row] == 0) continue;
    low = std::min(low, codes[row]);
    high = std::max(high, codes[row]);
  }
  if (low > high) low = high = 0;
  for (int64_t row = 0; row < rows; ++row)
    codes[row] = valid != nullptr && valid[row] == 0 ? 0 : codes[row] - low;
  piece.bits = 64 - std::countl_zero(high - low);
}

void append_piece(SortPiece piece, bool descending, const uint8_t* valid, std::vector<SortPiece>& pieces) {
  if (descending) {
    for (int64_t row = 0; row < piece.codes.size(); ++row) piece.codes[row] = ~piece.codes[row];
  }
  piece.descending = descending;
  compress(piece, valid);
  if (piece.bits > 0 || piece.text != nullptr) pieces.push_back(std::move(piece));
}

void append_null_piece(const uint8_t* valid, int64_t rows, bool nulls_first, std::vector<SortPiece>& pieces) {
  SortPiece piece;
  piece.codes.resize(rows);
  for (int64_t row = 0; row < rows; ++row) piece.codes[row] = (valid[row] != 0) == nulls_first ? 1 : 0;
  piece.bits = 1;
  pieces.push_back(std::move(piece));
}

constexpr uint64_t kSignBit = uint64_t{1} << 63;

void append_words(const Column& column, SortKey key, bool alone, const uint8_t* valid,
                  std::vector<SortPiece>& pieces) {
  SortPiece piece;
  piece.codes.resize(column.rows);
  read_words(column, 0, column.rows, piece.codes.data());
  for (int64_t row = 0; row < column.rows; ++row) {
    piece.codes[row] =
        order_word(column.type.kind, piece.codes[row]) ^ (key.descending ? ~kSignBit : kSignBit);
  }
  if (alone && valid == nullptr) {
    piece.bits = 64;
    pieces.push_back(std::move(piece));
    return;
  }
  key.descending = false;  // the codes are turned already
  append_piece(std::move(piece), key.descending, valid, pieces);
}

void append_wides(const Column& column, SortKey key, const uint8_t* valid, std::vector<SortPiece>& pieces) {
  SortPiece upper, lower;
  upper.codes.resize(column.rows);
  lower.codes.resize(column.rows);
  const uint64_t* words = column.as<uint64_t>();
  for (int64_t row = 0; row < column.rows; ++row) {
    upper.codes[row] = words[2 * row + 1] ^ kSignBit;
    lower.codes[row] = words[2 * row];
  }
  append_piece(std::move(upper), key.descending, valid, pieces);
  append_piece(std::move(lower), key.descending, valid, pieces);
}

// Dictionary entries sort among themselves once; rows then by the rank of their entry.
void append_ranks(const Column& column, SortKey key, const uint8_t* valid, std::vector<SortPiece>& pieces) {
  const Column& dictionary = *column.dictionary;
  if (!is_string(dictionary.type.kind))
    throw Unsupported("only strings may be dictionary-encoded in sort keys");
  std::vector<uint32_t> order(static_cast<size_t>(dictionary.rows));
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t left, uint32_t right) {
    return dictionary.string_at(left) < dictionary.string_at(right);
  });
  std::vector<uint64_t> ranks(order.size());
  for (size_t at = 1; at < order.size(); ++at) {
    const bool same = dictionary.string_at(order[at]) == dictionary.string_at(order[at - 1]);
    ranks[order[at]] = ranks[order[at - 1]] + (same ? 0 : 1);
  }
  SortPiece piece;
  piece.codes.resize(column.rows);
  for (int64_t row = 0; row < column.rows; ++row) {
    piece.codes[row] =
        valid == nullptr || valid[row] != 0 ? ranks[static_cast<size_t>(column.codes()[row])] : 0;
  }
  append_piece(std::move(piece), key.descending, valid, pieces);
}

struct TextShape {
  size_t common = 0;  // bytes that all strings start with
  size_t shortest = 0;
  size_t longest = 0;
};

TextShape shape_of(const Column& column, const uint8_t* valid) {
  TextShape shape;
  std::string_view first;
  bool any = false;
  for (int64_t row = 0; row < column.rows; ++row) {
    if (valid != nullptr && valid[row] == 0) continue;
    const std::string_view text = column.string_at(row);
    if (!any) {
      first = text;
      shape = {text.size(), text.size(), text.size()};
      any = true;
      continue;
    }
    shape.shortest = std::min(shape.shortest, text.size());
    shape.longest = std::max(shape.longest, text.size());
    shape.common = std::min(shape.common, text.size());
    if (std::memcmp(text.data(), first.data(), shape.common) != 0) {
      const auto end = text.begin() + static_cast<int64_t>(shape.common);
      shape.common =
          static_cast<size_t>(std::mismatch(text.begin(), end, first.begin()).first - text.begin());
    }
  }
  return shape;
}

void append_texts(const Column& column, SortKey key, const uint8_t* valid, std::vector<SortPiece>& pieces) {
  const TextShape shape = shape_of(column, valid);
  const size_t rest = shape.longest - shape.common;
  // Bytes alone decide between strings of one length; else seven of them and the length do, if there are no
  // more.
  const bool by_length = rest <= 7 && shape.shortest != shape.longest;
  const bool decides = by_length || (rest <= 8 && shape.shortest == shape.longest);
  SortPiece piece;
  piece.codes.resize(column.rows);
  for (int64_t row = 0; row < column.rows; ++row) {
    if (valid != nullptr && valid[row] == 0) continue;
    const std::string_view text = column.string_at(row).substr(shape.common);
    uint64_t word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), std::min<size_t>(text.size(), 8));
    piece.codes[row] = __builtin_bswap64(word) | (by_length ? text.size() : 0);
  }
  if (!decides) piece.text = &column;
  append_piece(std::move(piece), key.descending, valid, pieces);
}

}  // namespace

void append_sort_pieces(const Column& column, SortKey key, bool alone, std::vector<SortPiece>& pieces) {
  const Kind kind = column.type.kind;
  if (kind == Kind::Null || column.rows == 0) return;
  std::vector<uint8_t> validity(static_cast<size_t>(column.rows));
  const uint8_t* valid = nullptr;
  if (column.is_dictionary() && column.dictionary->may_have_nulls()) {
    for (int64_t row = 0; row < column.rows; ++row) {
      validity[static_cast<size_t>(row)] =
          column.is_valid(row) && column.dictionary->is_valid(column.codes()[row]);
    }
    valid = validity.data();
  } else if (read_validity(column, 0, column.rows, validity.data())) {
    valid = validity.data();
  }
  if (valid != nullptr) append_null_piece(valid, column.rows, key.nulls_first, pieces);
  if (column.is_dictionary()) {
    append_ranks(column, key, valid, pieces);
  } else if (is_string(kind)) {
    append_texts(column, key, valid, pieces);
  } else if (kind == Kind::Decimal128) {
    append_wides(column, key, valid, pieces);
  } else if (is_word(kind)) {
    append_words(column, key, alone, valid, pieces);
  } else {
    throw Unsupported("no native sort by Arrow format '" + column.type.format + "'");
  }
}

}  // namespace bireme
