// Columns that are decoded already, as scans see them: against the plain answer, row by row.
#include "scan/scanned_column.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace bireme;
using parquet::Selection;

namespace {

// Rows and what they are made of, in memory of exactly the size that they need.
struct Words {
  std::vector<std::string> entries;
  std::vector<int32_t> codes;
  std::vector<bool> valid;

  std::vector<int32_t> offsets;
  std::vector<char> bytes;
  std::vector<uint8_t> bitmap;
  Column dictionary;
  Column column;
};

Words words(int64_t rows, int entries, bool with_nulls, std::mt19937& random) {
  Words made;
  made.offsets.push_back(0);
  for (int entry = 0; entry < entries; ++entry) {
    made.entries.push_back(std::string(static_cast<size_t>(entry % 7), static_cast<char>('a' + entry % 26)));
    made.bytes.insert(made.bytes.end(), made.entries.back().begin(), made.entries.back().end());
    made.offsets.push_back(static_cast<int32_t>(made.bytes.size()));
  }
  // `take` may read 16 bytes past the last word, as the layouts of batches promise.
  made.bytes.resize(made.bytes.size() + 16);
  made.bitmap.assign(static_cast<size_t>(bitmap_bytes(rows)), 0);
  for (int64_t row = 0; row < rows; ++row) {
    made.codes.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(entries)));
    made.valid.push_back(!with_nulls || random() % 5 != 0);
    if (made.valid.back())
      made.bitmap[static_cast<size_t>(row >> 3)] |= static_cast<uint8_t>(1U << (row & 7));
  }
  return made;
}

void point(Words& made, bool with_nulls) {
  made.dictionary = {.type = simple_type(Kind::String),
                     .rows = static_cast<int64_t>(made.entries.size()),
                     .values = made.bytes.data(),
                     .offsets = made.offsets.data()};
  made.column = {.type = simple_type(Kind::String),
                 .rows = static_cast<int64_t>(made.codes.size()),
                 .validity = with_nulls ? made.bitmap.data() : nullptr,
                 .values = made.codes.data(),
                 .dictionary = &made.dictionary};
}

std::vector<uint32_t> some_rows(int64_t rows, std::mt19937& random) {
  std::vector<uint32_t> chosen;
  for (int64_t row = 0; row < rows; ++row)
    if (random() % 3 != 0) chosen.push_back(static_cast<uint32_t>(row));
  return chosen;
}

void check_words(const Words& made, const Selection& selection, std::mt19937& random) {
  const auto column = scan::scanned_memory(made.column);
  const auto row_at = [&](int64_t index) { return selection.all() ? index : selection.rows[index]; };
  CHECK(column->whole() == &made.column);
  CHECK(column->is_dictionary());
  const OutputColumn codes = column->read_codes(selection);
  const OutputColumn plain = column->read(selection);
  const Column seen_codes = view_of(codes);
  const Column seen = view_of(plain);
  CHECK(codes.rows == selection.count && plain.rows == selection.count);
  for (int64_t index = 0; index < selection.count; ++index) {
    const auto row = static_cast<size_t>(row_at(index));
    CHECK(seen.is_valid(index) == made.valid[row] && seen_codes.is_valid(index) == made.valid[row]);
    if (!made.valid[row]) continue;
    CHECK(seen_codes.codes()[index] == made.codes[row]);
    CHECK(seen.string_at(index) == made.entries[static_cast<size_t>(made.codes[row])]);
  }
  for (const bool keep_null : {false, true}) {
    std::vector<uint8_t> keep(made.entries.size());
    for (uint8_t& flag : keep) flag = random() % 2;
    std::vector<uint32_t> expected;
    for (int64_t index = 0; index < selection.count; ++index) {
      const auto row = static_cast<size_t>(row_at(index));
      if (made.valid[row] ? keep[static_cast<size_t>(made.codes[row])] != 0 : keep_null)
        expected.push_back(static_cast<uint32_t>(row));
    }
    std::vector<uint32_t> found(static_cast<size_t>(selection.count));
    found.resize(static_cast<size_t>(column->select_codes(selection, keep, keep_null, found.data())));
    CHECK(found == expected);
  }
}

void test_words() {
  std::mt19937 random(1);
  for (const int64_t rows : {1, 7, 8, 9, 100, 1001}) {
    for (const int entries : {1, 3, 256, 300}) {
      for (const bool with_nulls : {false, true}) {
        Words made = words(rows, entries, with_nulls, random);
        point(made, with_nulls);
        check_words(made, {nullptr, rows}, random);
        const std::vector<uint32_t> chosen = some_rows(rows, random);
        check_words(made, {chosen.data(), static_cast<int64_t>(chosen.size())}, random);
      }
    }
  }
}

void test_numbers() {
  std::mt19937 random(2);
  std::vector<int64_t> values(1000);
  for (int64_t& value : values) value = static_cast<int64_t>(random());
  const Column column{.type = simple_type(Kind::Int64), .rows = 1000, .values = values.data()};
  const auto scanned = scan::scanned_memory(column);
  CHECK(!scanned->is_dictionary());
  const std::vector<uint32_t> chosen = some_rows(1000, random);
  const OutputColumn read = scanned->read({chosen.data(), static_cast<int64_t>(chosen.size())});
  for (size_t index = 0; index < chosen.size(); ++index)
    CHECK(read.values.as<int64_t>()[index] == values[chosen[index]]);
}

// A column of which only the rows from some row on are there.
void test_tails() {
  std::mt19937 random(3);
  const int64_t rows = 1000, first = 250;
  std::vector<uint32_t> chosen;
  for (const uint32_t row : some_rows(rows, random))
    if (row >= first) chosen.push_back(row);
  const Selection selection{chosen.data(), static_cast<int64_t>(chosen.size())};
  std::vector<int64_t> values(static_cast<size_t>(rows));
  for (int64_t& value : values) value = static_cast<int64_t>(random());
  const Column numbers{.type = simple_type(Kind::Int64), .rows = rows - first, .values = values.data() + first};
  const OutputColumn read = scan::scanned_memory(numbers, first)->read(selection);
  Words made = words(rows, 5, false, random);
  point(made, false);
  Column tail = made.column;
  tail.rows = rows - first;
  tail.values = made.codes.data() + first;
  const auto scanned = scan::scanned_memory(tail, first);
  const OutputColumn codes = scanned->read_codes(selection);
  for (size_t index = 0; index < chosen.size(); ++index) {
    CHECK(read.values.as<int64_t>()[index] == values[chosen[index]]);
    CHECK(codes.values.as<int32_t>()[index] == made.codes[chosen[index]]);
  }
  const std::vector<uint8_t> keep{1, 0, 1, 0, 0};
  std::vector<uint32_t> expected;
  for (const uint32_t row : chosen)
    if (keep[static_cast<size_t>(made.codes[row])] != 0) expected.push_back(row);
  std::vector<uint32_t> found(chosen.size());
  found.resize(static_cast<size_t>(scanned->select_codes(selection, keep, false, found.data())));
  CHECK(found == expected);
}

}  // namespace

int main() {
  test_words();
  test_numbers();
  test_tails();
  return bireme::test::finish();
}
