// Encodes column chunks for tests: every encoding, version, null pattern and page size, drawn at random;
// damaged on request, at the places where it hurts: in page headers before they are written, and in pages
// before they are compressed.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "parquet/chunk.hpp"
#include "parquet/page_header.hpp"

namespace bireme::test {

using Random = std::mt19937_64;

// A value as its bytes in the encoding PLAIN, without a length; NULL where it is not there.
using Value = std::optional<std::string>;

struct Drawn {
  parquet::ChunkSpec spec;  // its `bytes` are `bytes`
  std::vector<uint8_t> bytes;
  std::vector<Value> values;
};

struct DrawOptions {
  bool damage_pages = false;
  bool damage_headers = false;
  int64_t rows_max = 300;
  std::optional<int64_t> rows = {};  // exactly so many
};

// A chunk of a physical type, engine type, encoding and codec drawn by `random`.
Drawn draw_chunk(Random& random, const DrawOptions& options);

// Changes some bytes, or how many there are.
void damage(Random& random, std::vector<uint8_t>& bytes);

// Valid compressed data; what repeats is not found as well as by a real compressor.
std::vector<uint8_t> snappy_compress(Random& random, const std::vector<uint8_t>& plain);
std::vector<uint8_t> lz4_compress(Random& random, const std::vector<uint8_t>& plain);

}  // namespace bireme::test
