// Build rows within bounds, with and without join keys, against nested loops over the rows.
#include "kernels/range_index.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrow/errors.hpp"
#include "kernels/join_matches.hpp"
#include "kernels/join_table.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

struct Rows {
  Longs keys;
  Longs first;
  Longs second;
};

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

Rows draw(std::mt19937_64& random, size_t rows, uint64_t keys, uint64_t spread) {
  const auto value = [&](uint64_t below) {
    return random() % 12 == 0 ? std::nullopt : std::optional(static_cast<int64_t>(random() % below) - 5);
  };
  Rows made;
  for (size_t row = 0; row < rows; ++row) {
    made.keys.push_back(value(keys));
    made.first.push_back(value(spread));
    made.second.push_back(value(spread));
  }
  return made;
}

Longs far_apart(const Longs& values) {
  Longs wide = values;
  for (auto& value : wide) {
    if (value) value = *value * (int64_t{1} << 40);
  }
  return wide;
}

OutputColumn texts(const Longs& values) {
  Strings made;
  for (const auto& value : values) {
    made.push_back(value ? std::optional("a long beginning " + std::to_string(200000 + *value)) : std::nullopt);
  }
  return strings(made);
}

bool holds(std::optional<int64_t> build, Comparison comparison, std::optional<int64_t> stream) {
  if (!build || !stream) return false;
  switch (comparison) {
    case Comparison::Below:
      return *build < *stream;
    case Comparison::UpTo:
      return *build <= *stream;
    case Comparison::From:
      return *build >= *stream;
    case Comparison::Above:
      return *build > *stream;
  }
  return false;
}

struct Case {
  std::vector<RangeBound> bounds;
  int range_keys;
  bool is_bounded_above;
  bool has_keys;
  bool are_texts;
};

// The value that bound number `index` compares with: stream columns in turn.
const Longs& value_of(const Rows& stream, size_t index) {
  return index % 2 == 0 ? stream.first : stream.second;
}

Pairs nested_loops(const Case& asked, const Rows& stream, const Rows& build) {
  Pairs pairs;
  for (uint32_t left = 0; left < stream.keys.size(); ++left) {
    for (uint32_t right = 0; right < build.keys.size(); ++right) {
      if (asked.has_keys && (!stream.keys[left] || stream.keys[left] != build.keys[right])) continue;
      bool within = asked.range_keys < 2 || build.second[right].has_value();
      for (size_t index = 0; index < asked.bounds.size(); ++index) {
        const auto& [key, comparison] = asked.bounds[index];
        const Longs& keys = key == 0 ? build.first : build.second;
        within &= holds(keys[right], comparison, value_of(stream, index)[left]);
      }
      if (within) pairs.emplace_back(left, right);
    }
  }
  return pairs;
}

Pairs found_pairs(const Case& asked, const Rows& stream, const Rows& build) {
  const auto column = [&](const Longs& values) {
    return asked.are_texts ? texts(values) : longs(far_apart(values));
  };
  const auto rows_of_build = static_cast<int64_t>(build.keys.size());
  std::vector<OutputColumn> keys;
  if (asked.has_keys) keys.push_back(longs(build.keys));
  JoinTable table(batch_of(std::move(keys), rows_of_build), 0);
  keys.clear();
  if (asked.has_keys) keys.push_back(longs(build.keys));
  std::vector<OutputColumn> ranges;
  ranges.push_back(column(build.first));
  if (asked.range_keys == 2) ranges.push_back(column(build.second));
  table.index_ranges(batch_of(std::move(keys), rows_of_build), batch_of(std::move(ranges), rows_of_build),
                     asked.is_bounded_above);
  CHECK(build.keys.empty() || table.nbytes() > 0);
  std::vector<OutputColumn> columns;
  if (asked.has_keys) columns.push_back(longs(stream.keys));
  for (size_t index = 0; index < asked.bounds.size(); ++index)
    columns.push_back(column(value_of(stream, index)));
  const auto rows = static_cast<int64_t>(stream.keys.size());
  const Batch looked_up = batch_of(std::move(columns), rows);
  MatchCursor<RangeMatches> cursor(RangeMatches(table, asked.bounds, looked_up.columns()), rows);
  Pairs pairs;
  uint32_t positions[7];
  uint32_t found[7];
  while (!cursor.at_end()) {
    const int64_t count = cursor.fill(positions, found, 7, false, nullptr);
    CHECK(count == 7 || cursor.at_end());
    for (int64_t pair = 0; pair < count; ++pair) pairs.emplace_back(positions[pair], found[pair]);
  }
  CHECK(std::is_sorted(pairs.begin(), pairs.end(),
                       [](const auto& left, const auto& right) { return left.first < right.first; }));
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void test_case(const Case& asked, size_t stream_rows, size_t build_rows, uint64_t spread) {
  std::mt19937_64 random(stream_rows + spread + build_rows);
  const Rows stream = draw(random, stream_rows, 6, spread);
  const Rows build = draw(random, build_rows, 6, spread);
  CHECK(found_pairs(asked, stream, build) == nested_loops(asked, stream, build));
}

void test_bounds_that_are_not_there() {
  JoinTable table(batch_of({}, 2), 0);
  table.index_ranges(batch_of({}, 2), batch(longs({1, 2}), longs({3, 4})), true);
  const std::vector<RangeBound> other_side = {{1, Comparison::From}};
  const Batch values = batch(longs({1}));
  CHECK_THROWS(RangeMatches(table, other_side, values.columns()), EngineBug);
  const std::vector<RangeBound> below = {{0, Comparison::Below}};
  const Batch words = batch(strings({"a"}));
  CHECK_THROWS(RangeMatches(table, below, words.columns()), EngineBug);
}

}  // namespace

int main() {
  constexpr Comparison kAll[] = {Comparison::Below, Comparison::UpTo, Comparison::From, Comparison::Above};
  for (const Comparison one : kAll) {
    for (const Comparison other : kAll) {
      for (const bool has_keys : {false, true}) {
        const bool is_above = other == Comparison::Below || other == Comparison::UpTo;
        for (const auto& [stream, build, spread] :
             {std::tuple<size_t, size_t, uint64_t>{40, 3000, 60}, {2500, 35, 4000}, {0, 9, 9}, {9, 0, 9}}) {
          test_case({{{0, one}}, 1, false, has_keys, false}, stream, build, spread);
          test_case({{{0, one}, {1, other}}, 2, is_above, has_keys, false}, stream, build, spread);
          test_case({{{0, Comparison::From}, {0, Comparison::UpTo}, {1, other}}, 2, is_above, has_keys, true},
                    stream, build, spread);
        }
      }
    }
  }
  test_bounds_that_are_not_there();
  return finish();
}
