// Chunk readers against chunks of the tests' own encoder: whole ones read back as they were, damaged ones end
// in Corrupt, and nothing reads or writes where it must not (the sanitizers look).
//
//   parquet_fuzz_test [inputs] [seed]     as many damaged inputs as wanted; a few by default
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "arrow/errors.hpp"
#include "parquet/lz4.hpp"
#include "parquet/snappy.hpp"
#include "parquet/wild_copy.hpp"
#include "tests/check.hpp"
#include "tests/drawn_cells.hpp"
#include "tests/parquet_encoder.hpp"

using namespace bireme;
using parquet::ChunkReader;
using parquet::Physical;
using parquet::Selection;
using test::cell;
using test::converted;
using test::Drawn;
using test::is_valid;
using test::Random;
using test::Value;

namespace {

constexpr int kVariants = 12;

unsigned long long word(uint64_t value) {
  return value;
}

std::vector<uint32_t> draw_rows(Random& random, int64_t rows) {
  std::vector<uint32_t> chosen;
  const auto per_mille = random() % 1001;
  for (int64_t row = 0; row < rows; ++row) {
    if (random() % 1000 < per_mille) chosen.push_back(static_cast<uint32_t>(row));
  }
  if (random() % 3 == 0 && !chosen.empty()) {  // in a row
    for (size_t index = 1; index < chosen.size(); ++index)
      chosen[index] = chosen[0] + static_cast<uint32_t>(index);
    while (chosen.back() >= rows) chosen.pop_back();
  }
  return chosen;
}

Selection selection_of(const std::vector<uint32_t>& rows) {
  static constexpr uint32_t kNothing = 0;
  return {rows.empty() ? &kNothing : rows.data(), static_cast<int64_t>(rows.size())};
}

bool matches(const Drawn& drawn, const OutputColumn& column, const std::vector<uint32_t>* rows) {
  if (column.rows != static_cast<int64_t>(rows == nullptr ? drawn.values.size() : rows->size())) return false;
  int64_t nulls = 0;
  for (int64_t index = 0; index < column.rows; ++index) {
    const Value& value =
        drawn.values[rows == nullptr ? static_cast<size_t>(index) : (*rows)[static_cast<size_t>(index)]];
    nulls += !value.has_value();
    if (is_valid(column, index) != value.has_value()) return false;
    if (value.has_value() && cell(column, index) != converted(drawn.spec, *value)) return false;
  }
  return nulls == column.null_count;
}

// Whether decoded text can be followed: offsets ascend within the bytes.
bool is_sound(const OutputColumn& column) {
  if (!is_string(column.type.kind)) return true;
  const auto* offsets = column.offsets.as<int32_t>();
  for (int64_t row = 0; row < column.rows; ++row) {
    if (offsets[row] > offsets[row + 1]) return false;
  }
  return offsets[0] == 0 && offsets[column.rows] <= column.values.size();
}

// The rows whose code is kept, the slow way.
std::vector<uint32_t> kept_rows(const OutputColumn& codes, const std::vector<uint32_t>* rows,
                                const std::vector<uint8_t>& keep, bool keep_null) {
  std::vector<uint32_t> kept;
  for (int64_t index = 0; index < codes.rows; ++index) {
    const bool is_kept = is_valid(codes, index) ? keep[codes.values.as<uint32_t>()[index]] != 0 : keep_null;
    if (is_kept)
      kept.push_back(rows == nullptr ? static_cast<uint32_t>(index) : (*rows)[static_cast<size_t>(index)]);
  }
  return kept;
}

void exercise_codes(Random& random, ChunkReader& reader, const std::vector<uint32_t>* rows) {
  const Selection selection = rows == nullptr ? Selection{} : selection_of(*rows);
  const int64_t words = reader.dictionary().rows;
  const OutputColumn codes = reader.read_codes(selection);
  std::vector<uint8_t> keep(static_cast<size_t>(words));
  for (uint8_t& flag : keep) flag = random() % 2 == 0 ? 0 : static_cast<uint8_t>(random());
  const bool keep_null = random() % 2 == 0;
  const std::vector<uint32_t> expected = kept_rows(codes, rows, keep, keep_null);
  // In place, where rows were given.
  std::vector<uint32_t> out =
      rows == nullptr ? std::vector<uint32_t>(static_cast<size_t>(reader.rows())) : *rows;
  const Selection in_place = rows == nullptr ? Selection{} : selection_of(out);
  out.resize(static_cast<size_t>(reader.select_codes(in_place, keep, keep_null, out.data())));
  CHECK(out == expected);
}

// Everything a reader does. Throws what the reader throws; `drawn` is null where nobody knows the values.
void exercise(Random& random, const parquet::ChunkSpec& spec, const Drawn* drawn) {
  ChunkReader reader(spec, nullptr);
  const std::vector<uint32_t> rows = draw_rows(random, spec.rows);
  for (int round = 0; round < 2; ++round) {
    const bool all = random() % 2 == 0;
    const OutputColumn column = reader.read(all ? Selection{} : selection_of(rows));
    CHECK(is_sound(column));
    if (drawn != nullptr) CHECK(matches(*drawn, column, all ? nullptr : &rows));
  }
  if (reader.is_dictionary()) {
    exercise_codes(random, reader, nullptr);
    exercise_codes(random, reader, &rows);
  }
}

// Bytes without a spare one behind them, so that the sanitizer sees what reads too far.
struct Exact {
  explicit Exact(const std::vector<uint8_t>& bytes) : size(bytes.size()), memory(new uint8_t[bytes.size()]) {
    std::copy(bytes.begin(), bytes.end(), memory.get());
  }
  parquet::Bytes view() const { return {memory.get(), size}; }
  size_t size;
  std::unique_ptr<uint8_t[]> memory;
};

// Returns whether the input was refused.
bool is_refused(Random& random, parquet::ChunkSpec spec, const std::vector<uint8_t>& bytes) {
  const Exact exact(bytes);
  spec.bytes = exact.view();
  if (random() % 6 == 0) {
    const size_t dictionary = random() % (exact.size + 1);
    spec.part = {-static_cast<int64_t>(random() % 9), exact.view().first(dictionary)};
  }
  try {
    exercise(random, spec, nullptr);
  } catch (const parquet::Corrupt&) {
    return true;
  } catch (const Unsupported&) {
    return true;
  }
  return false;
}

void test_whole_chunk(uint64_t seed) {
  Random random(seed);
  const Drawn drawn = test::draw_chunk(random, {.rows_max = seed % 20 == 0 ? 9000 : 300});
  const Exact exact(drawn.bytes);
  parquet::ChunkSpec spec = drawn.spec;
  spec.bytes = exact.view();
  try {
    exercise(random, spec, &drawn);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "seed %llu: %s\n", word(seed), error.what());
    CHECK(false);
  }
}

void change_spec(Random& random, parquet::ChunkSpec& spec) {
  switch (random() % 5) {
    case 0:
      spec.rows += static_cast<int64_t>(random() % 5) - 2;
      spec.rows = std::max<int64_t>(0, spec.rows);
      break;
    case 1:
      spec.is_optional = !spec.is_optional;
      break;
    case 2:
      spec.codec = static_cast<parquet::Codec>(random() % 8);
      break;
    case 3:
      spec.type_length = static_cast<int32_t>(random() % 40);
      break;
    default:
      for (parquet::PageLocation& page : spec.pages) {
        if (random() % 4 == 0) page.offset += static_cast<int64_t>(random() % 9) - 4;
        if (random() % 4 == 0) page.nbytes += static_cast<int32_t>(random() % 9) - 4;
        if (random() % 4 == 0) page.first_row += static_cast<int64_t>(random() % 9) - 4;
      }
  }
}

// One chunk damaged in many ways after it was written; returns how often it was refused.
uint64_t test_damaged_bytes(Random& random, const Drawn& drawn) {
  uint64_t refused = 0;
  for (int variant = 0; variant < kVariants; ++variant) {
    std::vector<uint8_t> bytes = drawn.bytes;
    parquet::ChunkSpec spec = drawn.spec;
    if (variant == 0) {
      change_spec(random, spec);
    } else if (variant == 1) {
      for (uint8_t& byte : bytes) {
        if (random() % 2 == 0) byte = static_cast<uint8_t>(random() >> 11);
      }
    } else {
      test::damage(random, bytes);
    }
    refused += is_refused(random, spec, bytes);
  }
  return refused;
}

// Damage done while a chunk is written, so that it comes through the decompressor.
uint64_t test_damaged_writing(Random& random) {
  const bool are_pages = random() % 2 == 0;
  const Drawn drawn =
      test::draw_chunk(random, {.damage_pages = are_pages, .damage_headers = !are_pages, .rows_max = 120});
  return is_refused(random, drawn.spec, drawn.bytes);
}

// The decompressors alone, into memory that ends where they may write last.
void test_decompressors(uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> plain(random() % 700);
  const uint64_t letters = 1 + random() % 60;
  for (uint8_t& byte : plain) byte = static_cast<uint8_t>(random() % letters);
  const bool is_snappy = random() % 2 == 0;
  std::vector<uint8_t> bytes =
      is_snappy ? test::snappy_compress(random, plain) : test::lz4_compress(random, plain);
  const bool is_damaged = random() % 4 != 0;
  if (is_damaged) test::damage(random, bytes);
  const Exact in(bytes);
  const Exact out(std::vector<uint8_t>(plain.size() + parquet::kWildCopyBytes));
  try {
    const auto run = is_snappy ? parquet::snappy_decompress : parquet::lz4_decompress;
    run(in.view(), out.memory.get(), static_cast<int64_t>(plain.size()));
    CHECK(is_damaged || std::equal(plain.begin(), plain.end(), out.memory.get()));
  } catch (const parquet::Corrupt& error) {
    if (!is_damaged) std::fprintf(stderr, "seed %llu: %s\n", word(seed), error.what());
    CHECK(is_damaged);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const auto inputs = static_cast<uint64_t>(count > 1 ? std::atoll(arguments[1]) : 4000);
  const auto first = static_cast<uint64_t>(count > 2 ? std::atoll(arguments[2]) : 1);
  uint64_t refused = 0;
  uint64_t tried = 0;
  for (uint64_t seed = first; tried < inputs && test::failures < 20; ++seed, tried += kVariants + 1) {
    if (std::getenv("BIREME_FUZZ_TRACE") != nullptr) std::fprintf(stderr, "seed %llu\n", word(seed));
    Random random(seed);
    if (seed % 2 == 0) test_whole_chunk(seed);
    test_decompressors(seed);
    refused += test_damaged_writing(random);
    refused += test_damaged_bytes(random, test::draw_chunk(random, {.rows_max = 120}));
  }
  std::printf("%llu damaged inputs, %llu refused\n", word(tried), word(refused));
  CHECK(refused > tried / 4);
  return test::finish();
}
