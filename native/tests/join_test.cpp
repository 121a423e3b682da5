// Join tables against nested loops, over every form of keys.
#include "kernels/join_table.hpp"

#include <random>

#include "arrow/errors.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

struct Side {
  Longs keys;
  Strings names;
};

Side draw(std::mt19937_64& random, size_t rows, int64_t spread, int64_t stride) {
  Side side;
  for (size_t row = 0; row < rows; ++row) {
    const auto key = static_cast<int64_t>(random() % static_cast<uint64_t>(spread)) * stride;
    side.keys.push_back(random() % 9 == 0 ? std::nullopt : std::optional(key));
    side.names.push_back(random() % 9 == 0 ? std::nullopt : std::optional("some longer string " + std::to_string(key % 5)));
  }
  return side;
}

Batch batch_for(const Side& side, bool by_key, bool by_name) {
  std::vector<OutputColumn> columns;
  if (by_key) columns.push_back(longs(side.keys));
  if (by_name) columns.push_back(strings(side.names));
  return batch_of(std::move(columns), static_cast<int64_t>(side.keys.size()));
}

template <typename Value>
bool matches(const Value& left, const Value& right, bool null_equal) {
  if (!left || !right) return null_equal && !left && !right;
  return *left == *right;
}

void test_matches(bool by_key, bool by_name, int64_t spread, int64_t stride, int null_equal) {
  std::mt19937_64 random(static_cast<uint64_t>(spread * 7 + stride));
  const Side build = draw(random, 400, spread, stride);
  const Side probe = draw(random, 1500, spread, stride);
  const JoinTable table(batch_for(build, by_key, by_name), null_equal);
  CHECK(table.rows() == 400);
  CHECK(table.nbytes() > 0);
  const Batch keys = batch_for(probe, by_key, by_name);
  const std::vector<OutputColumn> pairs = table.match(keys);
  OutputColumn contained = table.contains(keys);
  int64_t pair = 0;
  for (size_t left = 0; left < probe.keys.size(); ++left) {
    bool any = false;
    for (size_t right = 0; right < build.keys.size(); ++right) {
      const bool same_key = !by_key || matches(probe.keys[left], build.keys[right], null_equal > 0);
      const bool same_name = !by_name || matches(probe.names[left], build.names[right], null_equal > (by_key ? 1 : 0));
      if (!same_key || !same_name) continue;
      any = true;
      CHECK(pair < pairs[0].rows);
      if (pair >= pairs[0].rows) return;
      CHECK(pairs[0].values.as<int64_t>()[pair] == static_cast<int64_t>(left));
      CHECK(pairs[1].values.as<int64_t>()[pair] == static_cast<int64_t>(right));
      ++pair;
    }
    CHECK((((contained.values.as<uint8_t>()[left >> 3] >> (left & 7)) & 1) != 0) == any);
  }
  CHECK(pair == pairs[0].rows);
}

void test_unique() {
  Longs keys;
  for (int64_t key = 0; key < 5000; ++key) keys.push_back(key == 17 ? std::nullopt : std::optional(key * 3));
  const JoinTable table(batch(longs(keys)), 0);
  CHECK(table.has_null_key());
  const std::vector<OutputColumn> pairs = table.match(batch(longs({0, 51, 60, 61, std::nullopt, -3, 14997, 15000})));
  CHECK(pairs[0].rows == 3);
  CHECK(pairs[1].values.as<int64_t>()[1] == 20);
  CHECK(pairs[1].values.as<int64_t>()[2] == 4999);
}

// A NULL that is a key, among keys that are all different, in the middle of them.
void test_unique_null() {
  const JoinTable numbers(batch(longs({7, std::nullopt, 5})), 1);
  const JoinTable texts(batch(strings({"g", std::nullopt, "e"})), 1);
  const std::vector<OutputColumn> of_numbers = numbers.match(batch(longs({5, std::nullopt, 7})));
  const std::vector<OutputColumn> of_texts = texts.match(batch(strings({"e", std::nullopt, "g"})));
  for (const auto* pairs : {&of_numbers, &of_texts}) {
    CHECK((*pairs)[0].rows == 3);
    for (int64_t pair = 0; pair < 3; ++pair) CHECK((*pairs)[1].values.as<int64_t>()[pair] == 2 - pair);
  }
}

// More keys than stay in the cache, every other one of which is looked for in vain.
void test_many_keys(bool by_number) {
  constexpr int64_t kKeys = 20'000;
  Longs numbers;
  Longs others;
  Strings names;
  for (int64_t key = 0; key < 2 * kKeys; ++key) {
    numbers.push_back(key * (int64_t{1} << 40));
    others.push_back(key % 7);
    names.push_back((key % 4 < 2 ? "" : "a text that is long ") + std::to_string(key));
  }
  const auto keys_of = [&](int64_t step) {
    Longs first;
    Longs second;
    Strings texts;
    for (size_t key = 0; key < numbers.size(); key += static_cast<size_t>(step)) {
      first.push_back(numbers[key]);
      second.push_back(others[key]);
      texts.push_back(names[key]);
    }
    return by_number ? batch(longs(first), longs(second)) : batch(strings(texts));
  };
  const JoinTable table(keys_of(2), 0);
  const std::vector<OutputColumn> pairs = table.match(keys_of(1));
  CHECK(pairs[0].rows == kKeys);
  for (int64_t pair = 0; pair < pairs[0].rows; ++pair) {
    CHECK(pairs[0].values.as<int64_t>()[pair] == 2 * pair);
    CHECK(pairs[1].values.as<int64_t>()[pair] == pair);
  }
}

void test_edges() {
  const JoinTable none(batch(longs({})), 0);
  CHECK(none.match(batch(longs({1, 2})))[0].rows == 0);
  CHECK(none.contains(batch(longs({1, 2}))).rows == 2);
  const JoinTable table(batch(longs({1})), 0);
  CHECK(!table.has_null_key());
  CHECK_THROWS(table.match(batch(strings({"a"}))), EngineBug);
  CHECK_THROWS(table.match(batch(longs({1}), longs({1}))), EngineBug);
}

}  // namespace

int main() {
  for (const int64_t spread : {1, 30, 600}) {
    for (const int64_t stride : {int64_t{1}, int64_t{1} << 45}) {
      for (const int null_equal : {0, 1}) {
        test_matches(true, false, spread, stride, null_equal);
        test_matches(false, true, spread, stride, null_equal);
        test_matches(true, true, spread, stride, null_equal);
      }
      test_matches(true, true, spread, stride, 2);
    }
  }
  test_unique();
  test_unique_null();
  test_many_keys(true);
  test_many_keys(false);
  test_edges();
  return finish();
}
