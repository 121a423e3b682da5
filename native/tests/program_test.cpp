// Whole programs over columns that lie in blocks of exactly their size, so that sanitizers see every read
// outside of them.
#include "kernels/expression/program.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "arrow/errors.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

constexpr int64_t kRows = 2500;  // two whole vectors and a part

bool is_null(int64_t row) {
  return row % 7 == 3;
}
int64_t number(int64_t row) {
  return row * 37 % 1001 - 500;
}
std::string text(int64_t row) {
  return row % 5 == 0 ? "special requests " + std::to_string(row) : std::string(row % 23, 'x');
}

// The memory of a batch: numbers with NULLs whose bits start in the middle of a byte, texts, and their
// dictionary form.
struct Source {
  std::vector<int64_t> numbers;
  std::vector<uint8_t> validity;
  std::vector<int32_t> offsets = {0};
  std::vector<char> bytes;
  std::vector<int32_t> entry_offsets = {0, 5, 8};
  std::vector<char> entry_bytes = {'P', 'R', 'O', 'M', 'O', 's', 't', 'd'};
  std::vector<int32_t> codes;
  Column dictionary;
  std::vector<Column> columns;

  Source() : validity(static_cast<size_t>(bitmap_bytes(kRows + 5)), 0) {
    for (int64_t row = 0; row < kRows; ++row) {
      numbers.push_back(is_null(row) ? INT64_MAX : number(row));
      if (!is_null(row)) validity[(row + 5) / 8] |= static_cast<uint8_t>(1 << ((row + 5) % 8));
      const std::string value = text(row);
      bytes.insert(bytes.end(), value.begin(), value.end());
      offsets.push_back(static_cast<int32_t>(bytes.size()));
      codes.push_back(is_null(row) ? 1'000'000 : static_cast<int32_t>(row % 2));
    }
    bytes.shrink_to_fit();
    numbers.shrink_to_fit();
    dictionary = {.type = simple_type(Kind::String),
                  .rows = 2,
                  .values = entry_bytes.data(),
                  .offsets = entry_offsets.data()};
    columns.push_back({.type = simple_type(Kind::Int64),
                       .rows = kRows,
                       .null_count = -1,
                       .validity = validity.data(),
                       .validity_offset = 5,
                       .values = numbers.data()});
    columns.push_back({.type = simple_type(Kind::String),
                       .rows = kRows,
                       .values = bytes.data(),
                       .offsets = offsets.data()});
    columns.push_back({.type = simple_type(Kind::String),
                       .rows = kRows,
                       .null_count = -1,
                       .validity = validity.data(),
                       .validity_offset = 5,
                       .values = codes.data(),
                       .dictionary = &dictionary});
  }
};

int call(Program& program, const char* function, Kind kind, std::vector<int> args, std::string pattern = "") {
  Node node;
  node.function = function;
  node.type = simple_type(kind);
  node.args = std::move(args);
  node.text = std::move(pattern);
  node.numbers[0] = -1;
  return program.add(std::move(node));
}

int literal(Program& program, int64_t value) {
  return program.add_literal(simple_type(Kind::Int64), &value, false, "");
}

bool bit(const Buffer& bits, int64_t row) {
  return ((bits.as<uint8_t>()[row / 8] >> (row % 8)) & 1) != 0;
}

// select n + n, texts, codes, case when d like 'PROMO%' then n * 2 else 1000 // n end where n < limit and t
// like …
void check_filter(int64_t limit, bool with_text) {
  const Source source;
  Program program;
  const int n = program.add_column(0, simple_type(Kind::Int64));
  const int t = program.add_column(1, simple_type(Kind::String));
  const int d = program.add_column(2, simple_type(Kind::String));
  std::vector<int> conjuncts = {call(program, "lt", Kind::Bool, {n, literal(program, limit)}),
                                call(program, "ne", Kind::Bool, {n, literal(program, 0)})};
  if (with_text) conjuncts.push_back(call(program, "like", Kind::Bool, {t}, "%special%7%"));
  const int promo = call(program, "like", Kind::Bool, {d}, "PROMO%");
  const int twice = call(program, "multiply", Kind::Int64, {n, literal(program, 2)});
  const int quotient = call(program, "int_divide", Kind::Int64, {literal(program, 1000), n});
  program.set_predicate(conjuncts);
  program.set_outputs({call(program, "add", Kind::Int64, {n, n}), t, d,
                       call(program, "case", Kind::Int64, {promo, twice, quotient})});
  const Program::Result result = program.run(source.columns, kRows, true);
  int64_t at = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const std::string value = text(row);
    const size_t special = value.find("special");
    const bool has_text = special != std::string::npos && value.find('7', special) != std::string::npos;
    if (is_null(row) || number(row) >= limit || number(row) == 0 || (with_text && !has_text)) continue;
    const bool in_range = at < result.rows;
    CHECK(in_range);
    if (!in_range) return;
    CHECK(result.columns[0].values.as<int64_t>()[at] == 2 * number(row));
    const int32_t* ends = result.columns[1].offsets.as<int32_t>() + at;
    CHECK(std::string(result.columns[1].values.as<char>() + ends[0],
                      static_cast<size_t>(ends[1] - ends[0])) == value);
    CHECK(result.columns[2].values.as<int32_t>()[at] == row % 2);
    CHECK(result.columns[3].values.as<int64_t>()[at] ==
          (row % 2 == 0 ? 2 * number(row) : 1000 / number(row)));
    ++at;
  }
  CHECK(at == result.rows && !result.all);
}

// Over all rows: NULLs come out as NULL, and what lies under them is not an overflow.
void check_nulls() {
  const Source source;
  Program program;
  const int n = program.add_column(0, simple_type(Kind::Int64));
  program.set_outputs({call(program, "add", Kind::Int64, {n, n}), call(program, "is_null", Kind::Bool, {n})});
  const Program::Result result = program.run(source.columns, kRows, true);
  CHECK(result.all && result.rows == kRows && result.columns.size() == 2);
  int64_t nulls = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    nulls += is_null(row);
    CHECK(bit(result.columns[0].validity, row) == !is_null(row));
    CHECK(bit(result.columns[1].values, row) == is_null(row));
  }
  CHECK(result.columns[0].null_count == nulls);
}

void check_faults() {
  const Source source;
  Program program;
  const int n = program.add_column(0, simple_type(Kind::Int64));
  program.set_outputs({call(program, "multiply", Kind::Int64, {n, literal(program, INT64_MAX / 4)})});
  CHECK_THROWS(program.run(source.columns, kRows, true), Overflow);
  Program divided;
  const int m = divided.add_column(0, simple_type(Kind::Int64));
  divided.set_outputs({call(divided, "modulo", Kind::Int64, {literal(divided, 7), m})});
  CHECK_THROWS(divided.run(source.columns, kRows, true), DomainFault);
  CHECK_THROWS(call(program, "no such function", Kind::Int64, {n}), Unsupported);
  Program foreign;
  foreign.set_outputs({foreign.add_column(0, simple_type(Kind::Int32))});
  CHECK_THROWS(foreign.run(source.columns, kRows, true), EngineBug);
}

}  // namespace

int main() {
  for (int64_t limit : {-499, -400, 0, 450, 1000}) {
    check_filter(limit, false);
    check_filter(limit, true);
  }
  check_nulls();
  check_faults();
  return test::finish();
}
