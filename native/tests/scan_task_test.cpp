// Scans of drawn chunks, of every type and encoding, against one plain loop over their rows; and of damaged
// ones, which end in a named error or in some rows (the sanitizers look).
#include "scan/scan_task.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "arrow/errors.hpp"
#include "tests/check.hpp"
#include "tests/drawn_cells.hpp"
#include "tests/parquet_encoder.hpp"

using namespace bireme;
using scan::RowRange;
using scan::ScanBatch;
using test::Drawn;
using test::Random;
using test::Value;

namespace {

constexpr int kColumns = 3;

enum class Asks { IsNull, IsNotNull, Equal, Different };

struct Condition {
  int column;
  Asks asks;
  Value value;  // what is compared with
};

struct Case {
  std::vector<Drawn> columns;
  std::vector<Condition> conditions;
  std::vector<RowRange> ranges;
};

int64_t rows_of(const Case& drawn) {
  return static_cast<int64_t>(drawn.columns[0].values.size());
}

// Values of these are compared; of others it is only asked whether they are NULL.
bool is_comparable(const parquet::ChunkSpec& spec) {
  return (spec.type.kind == Kind::Int32 || spec.type.kind == Kind::Int64 || spec.type.kind == Kind::String) &&
         spec.multiplier == 1 && spec.divisor == 1;
}

Condition draw_condition(Random& random, const std::vector<Drawn>& columns) {
  Condition drawn{
      static_cast<int>(random() % kColumns), random() % 3 == 0 ? Asks::IsNull : Asks::IsNotNull, {}};
  const Drawn& column = columns[static_cast<size_t>(drawn.column)];
  if (column.values.empty() || !is_comparable(column.spec) || random() % 5 == 0) return drawn;
  drawn.value = column.values[random() % column.values.size()];
  if (drawn.value.has_value()) drawn.asks = random() % 2 == 0 ? Asks::Equal : Asks::Different;
  return drawn;
}

Case draw_case(Random& random, bool is_damaged) {
  Case drawn;
  test::DrawOptions options;
  options.rows = static_cast<int64_t>(random() % 400);
  options.damage_pages = is_damaged && random() % 2 == 0;
  options.damage_headers = is_damaged && !options.damage_pages;
  for (int column = 0; column < kColumns; ++column)
    drawn.columns.push_back(test::draw_chunk(random, options));
  for (Drawn& column : drawn.columns) column.spec.bytes = column.bytes;
  for (auto count = random() % 4; count > 0; --count)
    drawn.conditions.push_back(draw_condition(random, drawn.columns));
  for (int64_t row = 0; row < rows_of(drawn);) {
    const auto length = std::min(static_cast<int64_t>(1 + random() % 200), rows_of(drawn) - row);
    if (random() % 4 != 0) drawn.ranges.push_back({row, length});
    row += length;
  }
  return drawn;
}

int call(Program& program, const char* function, std::vector<int> args) {
  Node node;
  node.function = function;
  node.type = simple_type(Kind::Bool);
  node.args = std::move(args);
  node.numbers[0] = -1;
  return program.add(std::move(node));
}

Program program_of(const Condition& condition, const Type& type) {
  Program program;
  const int column = program.add_column(condition.column, type);
  if (condition.asks == Asks::IsNull || condition.asks == Asks::IsNotNull) {
    const char* name = condition.asks == Asks::IsNull ? "is_null" : "is_not_null";
    program.set_predicate({call(program, name, {column})});
    return program;
  }
  const std::string& value = *condition.value;
  const bool is_text = type.kind == Kind::String;
  const int literal =
      program.add_literal(type, is_text ? nullptr : value.data(), false, is_text ? value : "");
  program.set_predicate({call(program, condition.asks == Asks::Equal ? "eq" : "ne", {column, literal})});
  return program;
}

bool is_kept(const Case& drawn, int64_t row) {
  return std::all_of(drawn.conditions.begin(), drawn.conditions.end(), [&](const Condition& condition) {
    const Value& value =
        drawn.columns[static_cast<size_t>(condition.column)].values[static_cast<size_t>(row)];
    if (condition.asks == Asks::IsNull) return !value.has_value();
    if (!value.has_value()) return false;
    return condition.asks == Asks::IsNotNull ||
           (*value == *condition.value) == (condition.asks == Asks::Equal);
  });
}

std::vector<ScanBatch> scanned(Random& random, const Case& drawn, bool late) {
  std::vector<Type> types;
  std::vector<scan::ColumnInput> inputs;
  for (const Drawn& column : drawn.columns) {
    types.push_back(column.spec.type);
    inputs.push_back({.chunk = column.spec});
  }
  scan::ScanPlan plan(types);
  for (const Condition& condition : drawn.conditions) {
    plan.add_condition(program_of(condition, types[static_cast<size_t>(condition.column)]),
                       {condition.column}, false, 0.5);
  }
  plan.set_outputs(Program{}, {2, 0, 1}, {"c", "a", "b"});
  scan::ScanTask task(plan, std::move(inputs), nullptr, late);
  return task.run(drawn.ranges, static_cast<int64_t>(1 + random() % 300));
}

void check_rows(const Case& drawn, const std::vector<ScanBatch>& batches) {
  constexpr size_t kPassed[] = {2, 0, 1};
  size_t batch = 0;
  int64_t at = 0;
  for (const RowRange& range : drawn.ranges) {
    for (int64_t row = range.first; row < range.first + range.count; ++row) {
      if (!is_kept(drawn, row)) continue;
      if (batch < batches.size() && at == batches[batch].rows) ++batch, at = 0;
      CHECK(batch < batches.size());
      if (batch >= batches.size()) return;
      for (size_t output = 0; output < kColumns; ++output) {
        const OutputColumn& column = batches[batch].columns[output];
        const Drawn& source = drawn.columns[kPassed[output]];
        const Value& value = source.values[static_cast<size_t>(row)];
        CHECK(test::is_valid(column, at) == value.has_value());
        if (value.has_value()) CHECK(test::cell(column, at) == test::converted(source.spec, *value));
      }
      ++at;
    }
  }
  CHECK(batches.empty() || (batch + 1 == batches.size() && at == batches[batch].rows));
}

void test_rows(Random& random) {
  for (int round = 0; round < 500; ++round) {
    const Case drawn = draw_case(random, false);
    check_rows(drawn, scanned(random, drawn, round % 2 == 0));
  }
}

void test_damage(Random& random) {
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Case drawn = draw_case(random, true);
    Drawn& column = drawn.columns[random() % kColumns];
    if (random() % 2 == 0) test::damage(random, column.bytes);
    for (Drawn& each : drawn.columns) each.spec.bytes = each.bytes;
    try {
      for (const ScanBatch& batch : scanned(random, drawn, round % 2 == 0))
        CHECK(batch.columns.size() == kColumns);
    } catch (const scan::DamagedColumn&) {
      ++refused;
    } catch (const scan::UnreadColumn&) {
      ++refused;
    }
  }
  CHECK(refused > 50);
}

}  // namespace

int main() {
  Random random(3);
  test_rows(random);
  test_damage(random);
  return test::finish();
}
