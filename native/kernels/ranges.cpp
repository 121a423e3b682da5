#include "kernels/ranges.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

std::string_view text_of(const Column& column, int64_t row) {
  return column.is_dictionary() ? column.dictionary->string_at(column.codes()[row]) : column.string_at(row);
}

bool is_there(const Column& column, int64_t row) {
  return column.is_valid(row) &&
         (!column.is_dictionary() || column.dictionary->is_valid(column.codes()[row]));
}

// A part of a key: unsigned words whose order is the order asked for, and the texts to compare where words
// are equal and do not decide.
struct Part {
  Cells<uint64_t> rows;
  Cells<uint64_t> splitters;
  const Column* row_texts = nullptr;
  const Column* splitter_texts = nullptr;
  bool descending = false;
};

void write_validity(const Column& column, bool nulls_first, Cells<uint64_t>& codes) {
  codes.resize(column.rows);
  for (int64_t row = 0; row < column.rows; ++row) codes[row] = is_there(column, row) == nulls_first ? 1 : 0;
}

// The words of valid rows; 0 for NULL, which has been told from them by then.
template <typename Word>
void write_words(const Column& column, bool descending, Cells<uint64_t>& codes, Word word) {
  codes.resize(column.rows);
  const uint64_t turn = descending ? ~uint64_t{0} : 0;
  for (int64_t row = 0; row < column.rows; ++row) codes[row] = is_there(column, row) ? word(row) ^ turn : 0;
}

void write_numbers(const Column& column, bool descending, Cells<uint64_t>& codes) {
  Cells<uint64_t> words;
  words.resize(column.rows);
  read_words(column, 0, column.rows, words.data());
  write_words(column, descending, codes,
              [&](int64_t row) { return order_word(column.type.kind, words[row]) ^ kSignBit; });
}

void write_prefixes(const Column& column, bool descending, Cells<uint64_t>& codes) {
  write_words(column, descending, codes, [&](int64_t row) {
    const std::string_view text = text_of(column, row);
    uint64_t word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), std::min<size_t>(text.size(), 8));
    return __builtin_bswap64(word);
  });
}

void write_half(const Column& column, bool descending, bool upper, Cells<uint64_t>& codes) {
  const uint64_t* words = column.as<uint64_t>();
  write_words(column, descending, codes,
              [&](int64_t row) { return upper ? words[2 * row + 1] ^ kSignBit : words[2 * row]; });
}

bool may_have_nulls(const Column& column) {
  return column.may_have_nulls() || (column.is_dictionary() && column.dictionary->may_have_nulls());
}

// Calls `write` for the rows and for the splitters, into one more part.
template <typename Write>
Part& add_part(std::vector<Part>& parts, const Column& rows, const Column& splitters, Write write) {
  Part part;
  write(rows, part.rows);
  write(splitters, part.splitters);
  parts.push_back(std::move(part));
  return parts.back();
}

void add_key(const Column& rows, const Column& splitters, SortKey key, std::vector<Part>& parts) {
  const Kind kind = rows.type.kind;
  if (kind == Kind::Null) return;
  if (splitters.type.kind != kind) throw EngineBug("ranges are cut by splitters of another type");
  if (may_have_nulls(rows) || may_have_nulls(splitters)) {
    add_part(parts, rows, splitters, [key](const Column& column, Cells<uint64_t>& codes) {
      write_validity(column, key.nulls_first, codes);
    });
  }
  const auto add = [&](auto write) -> Part& { return add_part(parts, rows, splitters, write); };
  if (is_string(kind)) {
    Part& part = add([key](const Column& column, Cells<uint64_t>& codes) {
      write_prefixes(column, key.descending, codes);
    });
    part.row_texts = &rows;
    part.splitter_texts = &splitters;
    part.descending = key.descending;
  } else if (kind == Kind::Decimal128 && !rows.is_dictionary() && !splitters.is_dictionary()) {
    for (const bool upper : {true, false}) {
      add([key, upper](const Column& column, Cells<uint64_t>& codes) {
        write_half(column, key.descending, upper, codes);
      });
    }
  } else if (is_word(kind) && !rows.is_dictionary() && !splitters.is_dictionary()) {
    add([key](const Column& column, Cells<uint64_t>& codes) {
      write_numbers(column, key.descending, codes);
    });
  } else {
    throw Unsupported("no native ranges by Arrow format '" + rows.type.format + "'");
  }
}

// Whether a splitter comes after a row.
bool is_after(const std::vector<Part>& parts, int64_t splitter, int64_t row) {
  for (const Part& part : parts) {
    if (part.splitters[splitter] != part.rows[row]) return part.splitters[splitter] > part.rows[row];
    // NULL or not has been decided by a part before this one, so one NULL here means two.
    if (part.row_texts == nullptr || !is_there(*part.row_texts, row)) continue;
    const int order = text_of(*part.splitter_texts, splitter).compare(text_of(*part.row_texts, row));
    if (order != 0) return (order > 0) != part.descending;
  }
  return false;
}

// The range of a row: how many splitters do not come after it.
uint32_t range_of(const std::vector<Part>& parts, int64_t splitters, int64_t row) {
  const Part& first = parts.front();
  const uint64_t* begin = first.splitters.data();
  const uint64_t* low = std::lower_bound(begin, begin + splitters, first.rows[row]);
  int64_t range = low - begin;
  while (range < splitters && first.splitters[range] == first.rows[row] && !is_after(parts, range, row))
    ++range;
  return static_cast<uint32_t>(range);
}

}  // namespace

Partitioning partition_by_ranges(const Batch& keys, const Batch& splitters,
                                 const std::vector<SortKey>& order) {
  if (keys.rows() > INT32_MAX) throw Unsupported("a batch has more than 2147483647 rows");
  if (order.size() != keys.columns().size() || order.size() != splitters.columns().size())
    throw EngineBug("ranges are cut by another number of keys than of directions");
  std::vector<Part> parts;
  for (size_t index = 0; index < order.size(); ++index)
    add_key(keys.columns()[index], splitters.columns()[index], order[index], parts);
  const int64_t rows = keys.rows();
  std::vector<uint32_t> ranges(static_cast<size_t>(rows), 0);
  if (!parts.empty()) {
    for (int64_t row = 0; row < rows; ++row)
      ranges[static_cast<size_t>(row)] = range_of(parts, splitters.rows(), row);
  }
  return partition_by(ranges, static_cast<uint32_t>(splitters.rows() + 1));
}

}  // namespace bireme
