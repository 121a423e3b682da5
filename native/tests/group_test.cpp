// Group tables against std::map, over every form of keys.
#include "kernels/group_merge.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "arrow/errors.hpp"
#include "kernels/top_per_key.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

const Type kLong = simple_type(Kind::Int64);
const Type kString = simple_type(Kind::String);
const Type kSum = decimal128_type(38, 0);

using Key = std::pair<std::optional<int64_t>, std::optional<std::string>>;

struct Expected {
  int64_t rows = 0;
  std::optional<int64_t> sum;
  std::optional<std::string> least;
};

struct Input {
  Longs keys;
  Strings names;
  Longs values;
  Strings texts;
};

Input draw(std::mt19937_64& random, size_t rows, int64_t spread, int64_t stride, bool nulls) {
  Input input;
  for (size_t row = 0; row < rows; ++row) {
    const auto key = static_cast<int64_t>(random() % static_cast<uint64_t>(spread)) * stride;
    const auto value = static_cast<int64_t>(random() % 2001) - 1000;
    const bool null = nulls && random() % 5 == 0;
    input.keys.push_back(null ? std::nullopt : std::optional(key));
    input.names.push_back(nulls && random() % 7 == 0
                              ? std::nullopt
                              : std::optional("a name that is long " + std::to_string(key % 13)));
    input.values.push_back(nulls && random() % 3 == 0 ? std::nullopt : std::optional(value));
    input.texts.push_back(std::string(random() % 30, 'x') + std::to_string(value));
  }
  return input;
}

std::vector<Aggregate> aggregates(int first) {
  return {{AggregateFunction::CountStar, -1, kLong, kLong},
          {AggregateFunction::Sum, first, kLong, kSum},
          {AggregateFunction::Avg, first, kLong, simple_type(Kind::Float64)},
          {AggregateFunction::Min, first + 1, kString, kString},
          {AggregateFunction::Last, first, kLong, kLong},
          {AggregateFunction::VarSamp, first, kLong, simple_type(Kind::Float64)}};
}

std::map<Key, Expected> expect(const Input& input, bool by_key, bool by_name) {
  std::map<Key, Expected> groups;
  for (size_t row = 0; row < input.keys.size(); ++row) {
    Expected& group = groups[{by_key ? input.keys[row] : std::optional<int64_t>(0),
                              by_name ? input.names[row] : std::optional<std::string>("")}];
    ++group.rows;
    if (input.values[row]) group.sum = group.sum.value_or(0) + *input.values[row];
    if (!group.least || *input.texts[row] < *group.least) group.least = input.texts[row];
  }
  return groups;
}

Batch batch_for(const Input& input, bool by_key, bool by_name) {
  std::vector<OutputColumn> columns;
  if (by_key) columns.push_back(longs(input.keys));
  if (by_name) columns.push_back(strings(input.names));
  columns.push_back(longs(input.values));
  columns.push_back(strings(input.texts));
  return batch_of(std::move(columns), static_cast<int64_t>(input.keys.size()));
}

void compare(GroupTable& table, const std::map<Key, Expected>& groups, bool by_key, bool by_name) {
  GroupTable::Rows rows = table.finish();
  CHECK(rows.rows == static_cast<int64_t>(groups.size()));
  const Batch result = batch_of(std::move(rows.columns), rows.rows);
  const int first = (by_key ? 1 : 0) + (by_name ? 1 : 0);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const Key key = {by_key ? long_at(result[0], row) : 0, by_name ? string_at(result[first - 1], row) : ""};
    const auto found = groups.find(key);
    CHECK(found != groups.end());
    if (found == groups.end()) return;
    CHECK(long_at(result[first], row) == found->second.rows);
    CHECK(long_at(result[first + 1], row) == found->second.sum);
    CHECK(string_at(result[first + 3], row) == found->second.least);
  }
}

void test_keys(bool by_key, bool by_name, int64_t spread, int64_t stride, bool nulls) {
  std::mt19937_64 random(static_cast<uint64_t>(spread + stride));
  const Input input = draw(random, 7000, spread, stride, nulls);
  std::vector<Type> types;
  if (by_key) types.push_back(kLong);
  if (by_name) types.push_back(kString);
  const auto first = static_cast<int>(types.size());
  const auto groups = expect(input, by_key, by_name);

  GroupTable direct(types, aggregates(first));
  direct.update(batch_for(input, by_key, by_name), 0);
  CHECK(direct.groups() == static_cast<int64_t>(groups.size()));
  CHECK(direct.nbytes() > 0);
  GroupTable merged(types, aggregates(first));
  int64_t states = 0;
  for (GroupTable::Rows& part : direct.states(7)) {
    states += part.rows;
    merged.merge(batch_of(std::move(part.columns), part.rows));
  }
  CHECK(states == static_cast<int64_t>(groups.size()));
  CHECK(direct.groups() == 0);
  compare(merged, groups, by_key, by_name);
  direct.update(batch_for(input, by_key, by_name), 0);
  compare(direct, groups, by_key, by_name);
}

// Up to eight words are packed, with a bit per column once there is a NULL; longer keys are rows' bytes.
void test_wide_keys(int64_t width, bool nulls) {
  const std::vector<Type> types(static_cast<size_t>(width), kLong);
  GroupTable table(types, {{AggregateFunction::CountStar, -1, kLong, kLong}});
  std::vector<OutputColumn> columns;
  for (int64_t column = 0; column < width; ++column) {
    Longs values;
    for (int64_t row = 0; row < 3000; ++row) {
      const bool null = nulls && row % 11 == 0 && column == width / 2;
      values.push_back(null ? std::nullopt : std::optional((row % 100 - 50) * (column + 1) * 1'000'000'007));
    }
    columns.push_back(longs(values));
  }
  table.update(batch_of(std::move(columns), 3000), 0);
  CHECK(table.groups() == (nulls ? 200 : 100));
  const GroupTable::Rows rows = table.finish();
  for (int64_t column = 0; column < width; ++column) {
    const Column keys = view_of(rows.columns[static_cast<size_t>(column)]);
    for (int64_t group = 0; group < 100; ++group) {
      if (keys.is_valid(group)) CHECK(keys.as<int64_t>()[group] % (column + 1) == 0);
    }
  }
}

// Whole groups leave with results, the rest (NULL among them) as states; together they are all groups.
void test_settle(bool by_name, int64_t stride, bool nulls) {
  std::mt19937_64 random(static_cast<uint64_t>(stride));
  const Input input = draw(random, 5000, 500, stride, nulls);
  std::vector<Type> types = {kLong};
  if (by_name) types.push_back(kString);
  const auto groups = expect(input, true, by_name);
  GroupTable table(types, aggregates(by_name ? 2 : 1));
  table.update(batch_for(input, true, by_name), 0);
  const KeyInterval final = {100 * stride, 300 * stride - 1};
  GroupTable::Settled settled = table.settle(0, {0, 400 * stride}, final);
  CHECK(table.groups() == 0);
  int64_t outside = 0, inside = 0;
  for (const auto& [key, group] : groups) {
    outside += key.first && *key.first > 400 * stride ? 1 : 0;
    inside += key.first && final.has(*key.first) ? 1 : 0;
  }
  CHECK(settled.outside == outside);
  CHECK(settled.finals.rows == inside);
  const Batch finals = batch_of(std::move(settled.finals.columns), settled.finals.rows);
  const int first = by_name ? 2 : 1;
  for (int64_t row = 0; row < finals.rows(); ++row) {
    const auto found = groups.find({long_at(finals[0], row), by_name ? string_at(finals[1], row) : ""});
    CHECK(found != groups.end() && final.has(*found->first.first));
    if (found == groups.end()) return;
    CHECK(long_at(finals[first], row) == found->second.rows);
    CHECK(long_at(finals[first + 1], row) == found->second.sum);
  }
  GroupTable rest(types, aggregates(first));
  rest.merge(batch_of(std::move(settled.rest.columns), settled.rest.rows));
  CHECK(rest.groups() == static_cast<int64_t>(groups.size()) - inside);
  CHECK_THROWS(rest.settle(by_name ? 1 : 3, {0, 1}, {0, 1}), EngineBug);
}

// States and rows together, in more than one part, give each group once.
void test_merge(bool by_name, int64_t spread, int64_t stride, bool nulls) {
  std::mt19937_64 random(static_cast<uint64_t>(spread + stride));
  std::vector<Type> types = {kLong};
  if (by_name) types.push_back(kString);
  const int first = by_name ? 2 : 1;
  std::vector<Aggregate> wanted = aggregates(first);
  std::erase_if(wanted, [](const Aggregate& each) { return each.function == AggregateFunction::Last; });
  GroupMerge merge(types, wanted);
  Input all;
  for (int round = 0; round < 6; ++round) {
    const Input input = draw(random, 9000, spread, stride, nulls);
    all.keys.insert(all.keys.end(), input.keys.begin(), input.keys.end());
    all.names.insert(all.names.end(), input.names.begin(), input.names.end());
    all.values.insert(all.values.end(), input.values.begin(), input.values.end());
    all.texts.insert(all.texts.end(), input.texts.begin(), input.texts.end());
    if (round % 2 == 0) {
      merge.add_rows(batch_for(input, true, by_name));
      continue;
    }
    GroupTable table(types, wanted);
    table.update(batch_for(input, true, by_name), 0);
    std::vector<GroupTable::Rows> states = table.states(1);
    merge.add_states(batch_of(std::move(states[0].columns), states[0].rows));
  }
  const auto groups = expect(all, true, by_name);
  size_t found = 0;
  int parts = 0;
  for (std::optional<GroupTable::Rows> rows = merge.next(); rows; rows = merge.next(), ++parts) {
    const Batch result = batch_of(std::move(rows->columns), rows->rows);
    for (int64_t row = 0; row < result.rows(); ++row, ++found) {
      const auto group = groups.find({long_at(result[0], row), by_name ? string_at(result[1], row) : ""});
      CHECK(group != groups.end());
      if (group == groups.end()) return;
      CHECK(long_at(result[first], row) == group->second.rows);
      CHECK(long_at(result[first + 1], row) == group->second.sum);
      CHECK(string_at(result[first + 3], row) == group->second.least);
    }
  }
  CHECK(found == groups.size());
  CHECK(parts > 1 || spread < 1000);
}

// Quantiles against the values of each group, sorted.
void test_ranks(int64_t spread, bool nulls) {
  std::mt19937_64 random(static_cast<uint64_t>(spread));
  std::map<std::optional<int64_t>, std::vector<int64_t>> groups;
  GroupTable table({kLong}, {{AggregateFunction::QuantileLower, 1, kLong, kLong, 0.3},
                             {AggregateFunction::Max, 1, kLong, kLong},
                             {AggregateFunction::QuantileHigher, 1, kLong, kLong, 0.3},
                             {AggregateFunction::QuantileDiscrete, 1, kLong, kLong, 1.0}});
  for (int batches = 0; batches < 3; ++batches) {
    const Input input = draw(random, 2000, spread, 7, nulls);
    for (size_t row = 0; row < input.keys.size(); ++row) {
      std::vector<int64_t>& values = groups[input.keys[row]];
      if (input.values[row]) values.push_back(*input.values[row]);
    }
    table.update(batch(longs(input.keys), longs(input.values)), 0);
  }
  GroupTable::Rows rows = table.finish();
  const Batch result = batch_of(std::move(rows.columns), rows.rows);
  CHECK(static_cast<size_t>(result.rows()) == groups.size());
  for (int64_t row = 0; row < result.rows(); ++row) {
    std::vector<int64_t> values = groups[long_at(result[0], row)];
    std::sort(values.begin(), values.end());
    const auto at = [&](Rank rank, double fraction) {
      const auto count = static_cast<int64_t>(values.size());
      return count == 0 ? std::nullopt
                        : std::optional(values[static_cast<size_t>(place_of(rank, fraction, count))]);
    };
    CHECK(long_at(result[1], row) == at(Rank::Lower, 0.3));
    CHECK(long_at(result[3], row) == at(Rank::Higher, 0.3));
    CHECK(long_at(result[2], row) == at(Rank::Higher, 1.0));
    CHECK(long_at(result[4], row) == at(Rank::Discrete, 1.0));
  }
}

void test_places() {
  CHECK(place_of(Rank::Lower, 0.5, 4) == 1 && place_of(Rank::Higher, 0.5, 4) == 2);
  CHECK(place_of(Rank::Discrete, 0.5, 4) == 1 && place_of(Rank::Discrete, 0.5, 5) == 2);
  for (const Rank rank : {Rank::Lower, Rank::Higher, Rank::Discrete}) {
    CHECK(place_of(rank, 0.0, 9) == 0 && place_of(rank, 1.0, 9) == 8 && place_of(rank, 0.7, 1) == 0);
  }
}

// Whatever is among the first of its key stays, batch by batch; what is not, mostly not.
void test_top_per_key(SortKey order, bool distinct, bool nulls) {
  std::mt19937_64 random(distinct ? 5 : 6);
  TopPerKey top({kLong, kString}, kLong, order, 3, distinct);
  using Code = std::pair<bool, int64_t>;  // NULL before or after, then the value in the order asked for
  std::map<Key, std::vector<Code>> before;
  for (int batches = 0; batches < 4; ++batches) {
    const Input input = draw(random, 3000, 40, 3, nulls);
    const Batch given = batch(longs(input.keys), strings(input.names), longs(input.values));
    const OutputColumn kept = top.keep(given);
    std::vector<bool> stays(input.keys.size(), false);
    for (int64_t at = 0; at < kept.rows; ++at)
      stays[static_cast<size_t>(kept.values.as<int32_t>()[at])] = true;
    size_t dropped = 0;
    for (size_t row = 0; row < input.keys.size(); ++row) {
      std::vector<Code>& codes = before[{input.keys[row], input.names[row]}];
      const std::optional<int64_t> value = input.values[row];
      const Code code = {value.has_value() == order.nulls_first,
                         value ? (order.descending ? -*value : *value) : 0};
      size_t less = 0;
      for (const Code& other : codes) less += other < code ? 1 : 0;
      CHECK(stays[row] || less >= 3);
      dropped += stays[row] ? 0 : 1;
      if (!distinct || std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
    }
    CHECK(batches == 0 || dropped > input.keys.size() / 2);
  }
  CHECK(top.keys() == static_cast<int64_t>(before.size()));
}

void test_merge_of_nothing() {
  GroupMerge none({}, aggregates(0));
  const std::optional<GroupTable::Rows> row = none.next();
  CHECK(row && row->rows == 1);
  CHECK(!none.next());
  GroupMerge keyed({kLong}, aggregates(1));
  const std::optional<GroupTable::Rows> rows = keyed.next();
  CHECK(rows && rows->rows == 0);
  CHECK(!keyed.next());
  GroupMerge wrong({kLong}, aggregates(1));
  wrong.add_states(batch(longs({1})));
  CHECK_THROWS(wrong.next(), EngineBug);
}

void test_empty() {
  GroupTable table({}, aggregates(0));
  CHECK(table.groups() == 0);
  GroupTable::Rows rows = table.finish();
  CHECK(rows.rows == 1);
  const Batch result = batch_of(std::move(rows.columns), rows.rows);
  CHECK(long_at(result[0], 0) == 0);
  CHECK(!result[1].is_valid(0));
  GroupTable keyed({kLong}, aggregates(1));
  CHECK(keyed.finish().rows == 0);
}

void test_errors() {
  CHECK_THROWS(GroupTable({parse_type("+l")}, {}), Unsupported);
  CHECK_THROWS(GroupTable({}, {{AggregateFunction::Sum, 0, kString, kString}}), Unsupported);
  CHECK_THROWS(aggregate_function("median"), Unsupported);
  GroupTable table({kLong}, aggregates(1));
  CHECK_THROWS(table.update(batch(longs({1})), 0), EngineBug);
  CHECK_THROWS(table.merge(batch(longs({1}))), EngineBug);
  GroupTable narrow({}, {{AggregateFunction::Sum, 0, kLong, decimal64_type(3, 0)}});
  narrow.update(batch(longs({999, 1})), 0);
  CHECK_THROWS(narrow.finish(), Overflow);
  CHECK_THROWS(TopPerKey({kLong}, kString, {}, 1, false), Unsupported);
  GroupTable ranked({}, {{AggregateFunction::QuantileLower, 0, kLong, kLong, 0.5}});
  ranked.update(batch(longs({3})), 0);
  CHECK_THROWS(ranked.merge(batch(longs({1}))), EngineBug);
  CHECK_THROWS(ranked.states(1), EngineBug);
  CHECK_THROWS(GroupTable({}, {{AggregateFunction::QuantileLower, 0, kString, kString, 0.5}}), Unsupported);
}

}  // namespace

int main() {
  for (const bool nulls : {false, true}) {
    for (const int64_t spread : {1, 10, 3000}) {
      for (const int64_t stride : {int64_t{1}, int64_t{1'000'003}, int64_t{1} << 40}) {
        test_keys(true, false, spread, stride, nulls);
        test_keys(true, true, spread, stride, nulls);
        test_keys(false, true, spread, stride, nulls);
      }
    }
    test_keys(false, false, 5, 1, nulls);
    for (const int64_t spread : {20, 40'000}) {
      test_merge(false, spread, 1, nulls);
      test_merge(false, spread, int64_t{1} << 40, nulls);
      test_merge(true, spread, 3, nulls);
    }
    test_settle(false, 1, nulls);
    test_settle(true, int64_t{1} << 40, nulls);
  }
  for (int64_t width = 2; width <= 10; ++width) {
    for (const bool nulls : {false, true}) test_wide_keys(width, nulls);
  }
  for (const int64_t spread : {1, 30, 5000}) {
    for (const bool nulls : {false, true}) test_ranks(spread, nulls);
  }
  test_places();
  for (int bits = 0; bits < 16; ++bits) {
    test_top_per_key({(bits & 1) != 0, (bits & 2) != 0}, (bits & 4) != 0, (bits & 8) != 0);
  }
  test_merge_of_nothing();
  test_empty();
  test_errors();
  return finish();
}
