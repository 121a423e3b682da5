// The order of rows, and taking rows, against plain loops.
#include "kernels/sort_rows.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "arrow/errors.hpp"
#include "kernels/ranges.hpp"
#include "kernels/take.hpp"
#include "kernels/window_places.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

// Below 0, 0 or above 0 as the left value comes before, with or after the right one.
template <typename Value>
int order(const Value& left, const Value& right, SortKey key) {
  if (!left || !right) {
    if (!left && !right) return 0;
    return !left == key.nulls_first ? -1 : 1;
  }
  const int plain = *left < *right ? -1 : *right < *left ? 1 : 0;
  return key.descending ? -plain : plain;
}

void test_order(size_t rows, uint64_t spread, int64_t stride, SortKey first, SortKey second, int64_t limit) {
  std::mt19937_64 random(rows + spread);
  Longs numbers;
  Strings texts;
  for (size_t row = 0; row < rows; ++row) {
    numbers.push_back(random() % 8 == 0
                          ? std::nullopt
                          : std::optional(static_cast<int64_t>(random() % spread) * stride - 5));
    texts.push_back(random() % 8 == 0 ? std::nullopt
                                      : std::optional("begins alike " + std::to_string(random() % 100000)));
  }
  std::vector<int64_t> wanted(rows);
  std::iota(wanted.begin(), wanted.end(), 0);
  std::stable_sort(wanted.begin(), wanted.end(), [&](int64_t left, int64_t right) {
    const auto l = static_cast<size_t>(left), r = static_cast<size_t>(right);
    const int by_number = order(numbers[l], numbers[r], first);
    return by_number != 0 ? by_number < 0 : order(texts[l], texts[r], second) < 0;
  });
  const OutputColumn found = sort_rows(batch(longs(numbers), strings(texts)), {first, second}, limit);
  CHECK(found.rows == (limit < 0 ? static_cast<int64_t>(rows) : std::min(limit, static_cast<int64_t>(rows))));
  CHECK(std::equal(found.values.as<int64_t>(), found.values.as<int64_t>() + found.rows, wanted.begin()));
}

void test_ranges(size_t rows, uint64_t spread, size_t splitters, SortKey first, SortKey second) {
  std::mt19937_64 random(rows * 7 + spread);
  Longs numbers;
  Strings texts;
  for (size_t row = 0; row < rows; ++row) {
    numbers.push_back(random() % 8 == 0 ? std::nullopt
                                        : std::optional(static_cast<int64_t>(random() % spread) - 5));
    texts.push_back(random() % 8 == 0 ? std::nullopt
                                      : std::optional("begins alike " + std::to_string(random() % 1000)));
  }
  const auto comes_before = [&](size_t left, size_t right) {
    const int by_number = order(numbers[left], numbers[right], first);
    return by_number != 0 ? by_number < 0 : order(texts[left], texts[right], second) < 0;
  };
  std::vector<size_t> chosen;
  for (size_t index = 0; index < splitters; ++index) chosen.push_back(random() % rows);
  std::sort(chosen.begin(), chosen.end(), comes_before);
  Longs split_numbers;
  Strings split_texts;
  for (const size_t row : chosen) {
    split_numbers.push_back(numbers[row]);
    split_texts.push_back(texts[row]);
  }
  const Partitioning found =
      partition_by_ranges(batch(longs(numbers), strings(texts)),
                          batch(longs(split_numbers), strings(split_texts)), {first, second});
  CHECK(found.offsets.size() == splitters + 2);
  CHECK(found.offsets.back() == static_cast<int64_t>(rows));
  const int32_t* placed = found.rows.as<int32_t>();
  for (size_t range = 0; range <= splitters; ++range) {
    for (int64_t at = found.offsets[range]; at < found.offsets[range + 1]; ++at) {
      const auto row = static_cast<size_t>(placed[at]);
      CHECK(range == 0 || !comes_before(row, chosen[range - 1]));
      CHECK(range == splitters || comes_before(row, chosen[range]));
      CHECK(at == found.offsets[range] || placed[at - 1] < placed[at]);
    }
  }
}

void test_window_places(size_t rows, uint64_t spread) {
  std::mt19937_64 random(rows * 31 + spread);
  Longs groups, keys;
  for (size_t row = 0; row < rows; ++row) {
    groups.push_back(random() % 5 == 0 ? std::nullopt : std::optional(static_cast<int64_t>(random() % 7)));
    keys.push_back(random() % 5 == 0 ? std::nullopt : std::optional(static_cast<int64_t>(random() % spread)));
  }
  const SortKey by_key{true, false};
  const std::vector<Place> places = {Place::PartitionRows, Place::Number, Place::DenseRank, Place::Rank,
                                     Place::RowsUpToPeers};
  const auto found = window_places(batch(longs(groups), longs(keys)), {{}, by_key}, 1, places, false);
  for (size_t row = 0; row < rows; ++row) {
    int64_t partition = 0, before = 0, peers = 0, peers_before = 0;
    Longs better;
    for (size_t other = 0; other < rows; ++other) {
      if (groups[other] != groups[row]) continue;
      ++partition;
      const int by = order(keys[other], keys[row], by_key);
      if (by < 0 && std::find(better.begin(), better.end(), keys[other]) == better.end())
        better.push_back(keys[other]);
      before += by < 0;
      peers += by == 0;
      peers_before += by == 0 && other < row;
    }
    const int64_t wanted[] = {partition, before + peers_before + 1, static_cast<int64_t>(better.size()) + 1,
                              before + 1, before + peers};
    for (size_t index = 0; index < places.size(); ++index)
      CHECK(found[index].values.as<int64_t>()[row] == wanted[index]);
  }
}

void test_window_places_in_order(size_t rows, uint64_t spread, const std::string& begin) {
  std::mt19937_64 random(rows * 37 + spread);
  Longs groups;
  Strings keys;
  for (size_t row = 0; row < rows; ++row) {
    groups.push_back(random() % 5 == 0 ? std::nullopt : std::optional(static_cast<int64_t>(random() % 7)));
    keys.push_back(random() % 5 == 0 ? std::nullopt
                                     : std::optional(begin + std::to_string(random() % spread)));
  }
  const std::vector<SortKey> by = {{true, false}, {false, true}};
  const Batch mixed = batch(longs(groups), strings(keys));
  const Batch positions = batch(sort_rows(mixed, by, -1));
  const Batch ordered = batch(take(mixed[0], positions[0]), take(mixed[1], positions[0]));
  const std::vector<Place> places = {Place::PartitionRows, Place::Number, Place::DenseRank, Place::Rank,
                                     Place::RowsUpToPeers};
  for (const size_t partition_keys : {size_t{0}, size_t{1}, size_t{2}}) {
    const auto wanted = window_places(ordered, by, partition_keys, places, false);
    const auto found = window_places(ordered, by, partition_keys, places, true);
    for (size_t index = 0; index < places.size(); ++index) {
      const int64_t* values = wanted[index].values.as<int64_t>();
      CHECK(std::equal(values, values + rows, found[index].values.as<int64_t>()));
    }
  }
}

void test_take() {
  const Batch source =
      batch(longs({1, std::nullopt, 3}), strings({"a", "longer than it was", std::nullopt}), ints({7, 8, 9}));
  const Batch positions = batch(ints({2, std::nullopt, 1, 0, 0}));
  check_positions(positions[0], source.rows());
  const Batch taken =
      batch(take(source[0], positions[0]), take(source[1], positions[0]), take(source[2], positions[0]));
  CHECK(taken.rows() == 5);
  CHECK(long_at(taken[0], 0) == 3);
  CHECK(!taken[0].is_valid(1));
  CHECK(!taken[0].is_valid(2));
  CHECK(string_at(taken[1], 2) == "longer than it was");
  CHECK(string_at(taken[1], 4) == "a");
  CHECK(taken[2].as<int32_t>()[2] == 8);
  CHECK_THROWS(check_positions(batch(longs({3}))[0], 3), EngineBug);
  CHECK_THROWS(check_positions(batch(longs({-1}))[0], 3), EngineBug);
}

}  // namespace

int main() {
  for (const size_t rows : {size_t{0}, size_t{1}, size_t{40}, size_t{3000}}) {
    for (const uint64_t spread : {uint64_t{1}, uint64_t{20}, uint64_t{1} << 20}) {
      for (const int64_t limit : {-1, 0, 1, 13, 700}) {
        test_order(rows, spread, 1, {false, false}, {true, true}, limit);
        test_order(rows, spread, 1'000'003'000'017, {true, true}, {false, false}, limit);
      }
    }
  }
  for (const uint64_t spread : {uint64_t{1}, uint64_t{6}, uint64_t{1} << 20}) {
    for (const size_t rows : {size_t{0}, size_t{1}, size_t{700}}) {
      test_window_places(rows, spread);
      test_window_places_in_order(rows, spread, "");
      test_window_places_in_order(rows, spread, "of more bytes than a code has ");
    }
  }
  for (const size_t rows : {size_t{1}, size_t{900}}) {
    for (const size_t splitters : {size_t{0}, size_t{1}, size_t{9}}) {
      for (const uint64_t spread : {uint64_t{1}, uint64_t{20}, uint64_t{1} << 40}) {
        test_ranges(rows, spread, splitters, {false, false}, {true, true});
        test_ranges(rows, spread, splitters, {true, true}, {false, false});
      }
    }
  }
  test_take();
  return finish();
}
