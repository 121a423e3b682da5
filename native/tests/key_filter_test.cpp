// Key filters against sets of the keys: none is dropped, and exact ones keep nothing else.
#include "kernels/key_filter.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "arrow/errors.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

Longs draw(std::mt19937_64& random, size_t rows, int64_t base, uint64_t spread, int64_t stride) {
  Longs values;
  for (size_t row = 0; row < rows; ++row) {
    const auto value =
        static_cast<int64_t>(static_cast<uint64_t>(base) + random() % spread * static_cast<uint64_t>(stride));
    values.push_back(random() % 9 == 0 ? std::nullopt : std::optional(value));
  }
  return values;
}

// Of a filter that is not exact at most `share` of the other keys may pass.
template <typename Values>
void check_selection(const KeyFilter& filter, const Values& build, const Values& probe, const Batch& keys,
                     double share) {
  const std::set<typename Values::value_type> held(build.begin(), build.end());
  std::vector<uint32_t> kept(probe.size());
  const int64_t count = filter.select(keys.columns(), keys.rows(), kept.data());
  CHECK(count >= 0 && count <= keys.rows());
  kept.resize(static_cast<size_t>(count));
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  const std::set<uint32_t> chosen(kept.begin(), kept.end());
  CHECK(chosen.size() == kept.size());
  size_t others = 0;
  size_t passed = 0;
  for (size_t row = 0; row < probe.size(); ++row) {
    const bool passes = chosen.contains(static_cast<uint32_t>(row));
    if (!probe[row]) {
      CHECK(!passes);
    } else if (held.contains(probe[row])) {
      CHECK(passes);
    } else {
      ++others;
      passed += passes;
      CHECK(!passes || !filter.is_exact());
    }
  }
  CHECK(static_cast<double>(passed) <= share * static_cast<double>(others) + 5);
}

void test_longs(const char* kind, size_t rows, int64_t base, uint64_t spread, int64_t stride) {
  std::mt19937_64 random(rows * 31 + spread);
  const Longs build = draw(random, rows, base, spread, stride);
  const Longs probe = draw(random, 5003, base - 10 * stride, spread + 20, stride);
  const auto filter = make_key_filter(batch(longs(build)));
  CHECK(filter->kind() == kind);
  check_selection(*filter, build, probe, batch(longs(probe)), 0.05);
  int64_t low = 0;
  int64_t high = 0;
  CHECK(filter->range(low, high));
  int64_t smallest = std::numeric_limits<int64_t>::max();
  int64_t largest = std::numeric_limits<int64_t>::min();
  for (const auto& value : build) {
    if (value) smallest = std::min(smallest, *value), largest = std::max(largest, *value);
  }
  CHECK(low == smallest && high == largest);
}

void test_narrow() {
  std::mt19937_64 random(5);
  const Longs build = draw(random, 900, -700, 1500, 1);
  const Longs probe = draw(random, 3000, -1000, 3000, 1);
  check_selection(*make_key_filter(batch(ints(build))), build, probe, batch(ints(probe)), 0);
}

void test_strings() {
  Strings build;
  Strings probe;
  for (int number = 0; number < 4000; ++number) {
    build.push_back(number % 11 == 0 ? std::nullopt
                                     : std::optional("a key of some length " + std::to_string(3 * number)));
    probe.push_back(number % 13 == 0 ? std::nullopt
                                     : std::optional("a key of some length " + std::to_string(number)));
  }
  const auto filter = make_key_filter(batch(strings(build)));
  CHECK(filter->kind() == "bloom" && !filter->is_exact());
  check_selection(*filter, build, probe, batch(strings(probe)), 0.05);
}

void test_chunks() {
  const Batch parts[] = {batch(longs({5, 1'000'000'000'000})), batch(longs({})),
                         batch(longs({std::nullopt, -4}))};
  const KeyChunk chunks[] = {&parts[0].columns(), &parts[1].columns(), &parts[2].columns()};
  const auto filter = make_key_filter(chunks);
  CHECK(filter->kind() == "list");
  check_selection<Longs>(*filter, {5, 1'000'000'000'000, -4}, {-4, 0, 5, std::nullopt, 6},
                         batch(longs({-4, 0, 5, std::nullopt, 6})), 0);
}

void test_several_columns() {
  std::mt19937_64 random(8);
  const Longs first = draw(random, 3000, 0, 50, 1);
  const Longs second = draw(random, 3000, 0, 4000, 1);
  const auto filter = make_key_filter(batch(longs(first), longs(second)));
  const Batch keys = batch(longs(first), longs(second));
  std::vector<uint32_t> kept(3000);
  kept.resize(static_cast<size_t>(filter->select(keys.columns(), 3000, kept.data())));
  size_t valid = 0;
  for (size_t row = 0; row < first.size(); ++row) valid += first[row] && second[row];
  CHECK(kept.size() == valid);
  const Batch others = batch(longs(second), longs(first));
  kept.resize(3000);
  CHECK(filter->select(others.columns(), 3000, kept.data()) < 300);
}

// Keys that come bit by bit and are not kept.
void test_builds() {
  std::mt19937_64 random(21);
  const Longs first = draw(random, 2000, -5'000'000'000, 1 << 20, 1'000'003);
  const Longs second = draw(random, 1500, 0, 1 << 20, 1'000'003);
  Longs both = first;
  both.insert(both.end(), second.begin(), second.end());
  const Longs probe = draw(random, 6000, -6'000'000'000, 1 << 21, 1'000'003);
  KeyFilterBuild build(16 * 1024);
  for (const Longs& part : {second, Longs{}, first, second}) build.add(batch(longs(part)));
  CHECK(build.nbytes() >= 16 * 1024);
  const auto filter = build.finish();
  check_selection(*filter, both, probe, batch(longs(probe)), 0.05);
  check_selection(*filter, both, both, batch(longs(both)), 0.05);
  int64_t low = 0;
  int64_t high = 0;
  CHECK(filter->range(low, high));
  CHECK(low == std::min_element(both.begin(), both.end(), [](auto& one, auto& other) {
                 return one.value_or(INT64_MAX) < other.value_or(INT64_MAX);
               })->value());
  CHECK(high == std::max_element(both.begin(), both.end())->value());
  CHECK_THROWS(build.add(batch(longs(first))), EngineBug);

  // Too small for its keys, it lets all pass.
  KeyFilterBuild full(8);
  full.add(batch(longs(first)));
  check_selection(*full.finish(), first, probe, batch(longs(probe)), 1);

  const Strings texts = {"one", std::nullopt, "another that is longer"};
  KeyFilterBuild strings_build(1024);
  strings_build.add(batch(strings(texts)));
  strings_build.add(batch(strings({"a third"})));
  check_selection<Strings>(*strings_build.finish(), {"one", "another that is longer", "a third"},
                           {"one", "two", std::nullopt, "a third"},
                           batch(strings({"one", "two", std::nullopt, "a third"})), 0.5);

  KeyFilterBuild nothing(64);
  nothing.add(batch(longs({std::nullopt})));
  uint32_t kept[2];
  CHECK(nothing.finish()->select(batch(longs({1, 0})).columns(), 2, kept) == 0);
  CHECK(KeyFilterBuild(64).finish() == nullptr);
}

void test_edges() {
  uint32_t kept[4];
  const Batch one = batch(longs({1, std::nullopt, 3}));
  const auto none = make_key_filter(batch(longs({})));
  CHECK(none->select(one.columns(), 3, kept) == 0);
  CHECK(none->is_exact());
  const auto all_null = make_key_filter(batch(longs({std::nullopt})));
  CHECK(all_null->select(one.columns(), 3, kept) == 0);
  const auto limits = make_key_filter(
      batch(longs({std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})));
  CHECK(limits->select(one.columns(), 3, kept) == 0);
  CHECK_THROWS(limits->select(batch(ints({1})).columns(), 1, kept), EngineBug);
  CHECK_THROWS(limits->select(batch(longs({1}), longs({1})).columns(), 1, kept), EngineBug);
}

}  // namespace

int main() {
  test_longs("bitmap", 3000, -500, 90'000, 1);
  test_longs("bitmap", 300'000, 1'000'000'000'000, 3'000'000, 4);
  test_longs("range", 30'000, 77, 300, 1);
  test_longs("bloom", 3000, -(int64_t{1} << 60), 1 << 20, 1'000'000'007);
  test_longs("list", 40, 12, 5, int64_t{1} << 50);
  test_narrow();
  test_strings();
  test_chunks();
  test_several_columns();
  test_builds();
  test_edges();
  return finish();
}
