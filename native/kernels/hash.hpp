// The engine's hash of values and rows. What it is, is written in backends/hash.py; this must equal it bit
// for bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "arrow/column.hpp"

namespace bireme {

inline constexpr uint64_t kNullHash = 0x6a09e667f3bcc908;
inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

constexpr uint64_t hash_mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

constexpr uint64_t hash_word(uint64_t x) {
  return hash_mix(x ^ kGolden);
}

// Joins the hash of a further column to that of the columns before it.
constexpr uint64_t hash_combine(uint64_t row, uint64_t column) {
  return (std::rotl(row, 23) + column) * kGolden;
}

inline uint64_t hash_double(double value) {
  if (value == 0) value = 0;  // -0.0
  return hash_word(std::isnan(value) ? uint64_t{0x7ff8000000000000} : std::bit_cast<uint64_t>(value));
}

constexpr uint64_t hash_int128(int128 value) {
  const auto low = static_cast<uint64_t>(value);
  if (value == static_cast<int128>(static_cast<int64_t>(low))) return hash_word(low);
  return hash_mix(hash_word(low) ^ static_cast<uint64_t>(static_cast<uint128>(value) >> 64));
}

// XXH64 with seed 0.
uint64_t hash_bytes(std::string_view bytes);

// The partition of a hash among `partitions` (backends/base.py, partition_of).
constexpr uint32_t partition_of(uint64_t hash, uint32_t partitions) {
  return static_cast<uint32_t>(((hash >> 32) * partitions) >> 32);
}

// Writes the hash of each value of one column into `out`, which has `column.rows` entries. Throws Unsupported
// for Kind::Other.
void hash_column(const Column& column, uint64_t* out);

// Writes the hash of each of `rows` rows over `columns` into `out`.
void hash_rows(std::span<const Column* const> columns, int64_t rows, uint64_t* out);

}  // namespace bireme
