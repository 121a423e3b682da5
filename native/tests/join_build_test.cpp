// Join tables built of chunks that come in any order, by several threads, against nested loops over the rows
// in order.
#include "kernels/join_build.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "arrow/errors.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

constexpr int64_t kFar = int64_t{1} << 40;

struct Rows {
  Longs keys;
  Longs further;
  Strings names;
};

// How keys are drawn: as many as `spread`, `stride` apart; in order, or in any order with some NULL.
struct Form {
  const char* name;
  int64_t spread;
  int64_t stride;
  bool ordered;
};

Rows draw(const Form& form, size_t rows, std::mt19937_64& random) {
  Rows drawn;
  for (size_t row = 0; row < rows; ++row) {
    const auto any = static_cast<int64_t>(random() % static_cast<uint64_t>(form.spread));
    const int64_t number = form.ordered ? static_cast<int64_t>(row) : any;
    const bool null = !form.ordered && random() % 11 == 0;
    drawn.keys.push_back(null ? std::nullopt : std::optional(number * form.stride - 100));
    drawn.further.push_back(random() % 11 == 0 ? std::nullopt : std::optional(any % 3));
    drawn.names.push_back(random() % 11 == 0 ? std::nullopt
                                             : std::optional("a name of some length " + std::to_string(any)));
  }
  return drawn;
}

enum class Keys { Number, Two, Text };

Batch keys_of(const Rows& rows, Keys keys, size_t begin, size_t end) {
  const auto longs_in = [&](const Longs& values) {
    return longs(Longs(values.begin() + static_cast<long>(begin), values.begin() + static_cast<long>(end)));
  };
  if (keys == Keys::Number) return batch(longs_in(rows.keys));
  if (keys == Keys::Two) return batch(longs_in(rows.further), longs_in(rows.keys));
  return batch(strings(
      Strings(rows.names.begin() + static_cast<long>(begin), rows.names.begin() + static_cast<long>(end))));
}

Batch columns_of(const Rows& rows, size_t begin, size_t end) {
  const Longs numbers(rows.keys.begin() + static_cast<long>(begin),
                      rows.keys.begin() + static_cast<long>(end));
  const Strings names(rows.names.begin() + static_cast<long>(begin),
                      rows.names.begin() + static_cast<long>(end));
  return batch(longs(numbers), strings(names));
}

// The key of a row, and whether a NULL keeps it from matching.
std::pair<std::string, bool> key_at(const Rows& rows, Keys keys, size_t row, int null_equal) {
  const auto shown = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  if (keys == Keys::Number) return {shown(rows.keys[row]), rows.keys[row].has_value() || null_equal > 0};
  if (keys == Keys::Text)
    return {rows.names[row].value_or("-"), rows.names[row].has_value() || null_equal > 0};
  const bool first = rows.further[row].has_value() || null_equal > 0;
  const bool second = rows.keys[row].has_value() || null_equal > 1;
  return {shown(rows.further[row]) + " " + shown(rows.keys[row]), first && second};
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs expected_pairs(const Rows& build, const Rows& probe, Keys keys, int null_equal) {
  std::map<std::string, std::vector<int64_t>> places;
  for (size_t row = 0; row < build.keys.size(); ++row) {
    const auto [key, matches] = key_at(build, keys, row, null_equal);
    if (matches) places[key].push_back(static_cast<int64_t>(row));
  }
  Pairs pairs;
  for (size_t row = 0; row < probe.keys.size(); ++row) {
    const auto [key, matches] = key_at(probe, keys, row, null_equal);
    const auto found = places.find(key);
    if (!matches || found == places.end()) continue;
    for (int64_t place : found->second) pairs.emplace_back(static_cast<int64_t>(row), place);
  }
  return pairs;
}

Pairs pairs_of(const JoinTable& table, const Batch& keys) {
  const std::vector<OutputColumn> found = table.match(keys);
  Pairs pairs;
  for (int64_t pair = 0; pair < found[0].rows; ++pair) {
    pairs.emplace_back(found[0].values.as<int64_t>()[pair], found[1].values.as<int64_t>()[pair]);
  }
  return pairs;
}

// Adds the rows in chunks of unequal size, the last first, and lets `threads` threads build.
void fill(JoinBuild& build, const Rows& rows, Keys keys, int threads) {
  std::vector<size_t> cuts = {0};
  while (cuts.back() < rows.keys.size())
    cuts.push_back(std::min(rows.keys.size(), cuts.back() + 1 + cuts.size() * 3571 % 30'000));
  for (size_t cut = cuts.size() - 1; cut > 0; --cut) {
    std::vector<Batch> of_keys;
    std::vector<Batch> of_columns;
    of_keys.push_back(keys_of(rows, keys, cuts[cut - 1], cuts[cut]));
    of_columns.push_back(columns_of(rows, cuts[cut - 1], cuts[cut]));
    build.add(static_cast<int64_t>(cut), std::move(of_keys), std::move(of_columns));
  }
  CHECK(build.rows() == static_cast<int64_t>(rows.keys.size()));
  build.start(threads);
  std::vector<std::thread> workers;
  std::atomic<int> ends = 0;
  for (int worker = 0; worker < threads; ++worker)
    workers.emplace_back([&] { ends += build.work() ? 1 : 0; });
  for (std::thread& worker : workers) worker.join();
  CHECK(ends == 1);
}

void check_payload(const Rows& rows, JoinedChunks::Result payload) {
  CHECK(payload.rows == static_cast<int64_t>(rows.keys.size()));
  const Batch made = batch_of(std::move(payload.columns), payload.rows);
  for (size_t row = 0; row < rows.keys.size(); ++row) {
    CHECK(long_at(made[0], static_cast<int64_t>(row)) == rows.keys[row]);
    CHECK(string_at(made[1], static_cast<int64_t>(row)) == rows.names[row]);
  }
}

void test_form(const Form& form, Keys keys, int null_equal, int threads) {
  std::mt19937_64 random(static_cast<uint64_t>(form.spread + threads));
  const Rows rows = draw(form, 120'000, random);
  Form wider = form;
  wider.ordered = false;
  wider.spread = std::max<int64_t>(form.spread, 120'000) + 50;
  const Rows probe = draw(wider, 2500, random);
  JoinBuild build(null_equal);
  fill(build, rows, keys, threads);
  const std::unique_ptr<JoinTable> table = build.take_table();
  if (keys == Keys::Number && null_equal == 0) CHECK(table->form().rfind(form.name, 0) == 0);
  CHECK(table->nbytes() >= 0);
  CHECK(pairs_of(*table, keys_of(probe, keys, 0, probe.keys.size())) ==
        expected_pairs(rows, probe, keys, null_equal));
  CHECK(build.has_payload());
  check_payload(rows, build.take_payload());
}

// One key in all rows: its chain is as long as the table, and all of it is one part's.
void test_skew() {
  const Rows rows{Longs(70'000, 5 * kFar), Longs(70'000, 1), Strings(70'000, "x")};
  JoinBuild build(0);
  fill(build, rows, Keys::Number, 2);
  const std::unique_ptr<JoinTable> table = build.take_table();
  const Pairs pairs = pairs_of(*table, batch(longs({4, 5 * kFar})));
  CHECK(pairs.size() == 70'000);
  for (size_t pair = 0; pair < pairs.size(); ++pair)
    CHECK(pairs[pair] == std::make_pair(int64_t{1}, static_cast<int64_t>(pair)));
}

OutputColumn codes(const std::vector<int32_t>& values) {
  Longs wide(values.begin(), values.end());
  return ints(wide);
}

void test_edges() {
  JoinBuild none(0);
  none.start(2);
  CHECK_THROWS(none.work(), EngineBug);
  JoinBuild uneven(0);
  std::vector<Batch> keys;
  keys.push_back(batch(codes({1, 2})));
  CHECK_THROWS(uneven.add(0, std::move(keys), {}), EngineBug);
  CHECK(uneven.rows() == 0);
}

}  // namespace

int main() {
  const Form forms[] = {
      {"a sequence", 120'000, 1, true},       {"a bitmap whose ranks are rows", 120'000, 7, true},
      {"direct-addressed", 90'000, 1, false}, {"a bitmap with rows by rank", 90'000, 20, false},
      {"a hash table", 90'000, kFar, false},
  };
  for (const Form& form : forms) {
    for (const int threads : {1, 3}) {
      test_form(form, Keys::Number, 0, threads);
      test_form(form, Keys::Two, 1, threads);
    }
  }
  test_form(forms[2], Keys::Number, 1, 3);
  test_form(forms[4], Keys::Two, 0, 3);
  test_form(forms[4], Keys::Two, 2, 3);
  test_form(forms[3], Keys::Text, 0, 3);
  test_form(forms[3], Keys::Text, 1, 3);
  test_skew();
  test_edges();
  return finish();
}
