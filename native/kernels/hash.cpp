#include "kernels/hash.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5;

template <typename T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

constexpr uint64_t round_of(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

constexpr uint64_t merge_lane(uint64_t hash, uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

// The state after all whole 32-byte stripes; moves `at` past them.
uint64_t hash_stripes(const char*& at, const char* end) {
  uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  for (; end - at >= 32; at += 32) {
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = round_of(lanes[lane], load<uint64_t>(at + 8 * lane));
  }
  uint64_t hash =
      std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (uint64_t lane : lanes) hash = merge_lane(hash, lane);
  return hash;
}

template <typename T>
uint64_t hash_value(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return hash_double(static_cast<double>(value));
  } else if constexpr (sizeof(T) == 16) {
    return hash_int128(value);
  } else if constexpr (std::is_signed_v<T>) {
    return hash_word(static_cast<uint64_t>(static_cast<int64_t>(value)));
  } else {
    return hash_word(static_cast<uint64_t>(value));
  }
}

template <typename T>
void hash_fixed(const Column& column, uint64_t* out) {
  const T* values = column.as<T>();
  for (int64_t row = 0; row < column.rows; ++row) out[row] = hash_value(values[row]);
}

int128 nanoseconds_of(const char* interval) {
  const int64_t days = int64_t{load<int32_t>(interval)} * 30 + load<int32_t>(interval + 4);
  return static_cast<int128>(days) * 86'400'000'000'000 + load<int64_t>(interval + 8);
}

void hash_intervals(const Column& column, uint64_t* out) {
  const char* values = column.as<char>();
  for (int64_t row = 0; row < column.rows; ++row) out[row] = hash_int128(nanoseconds_of(values + 16 * row));
}

void hash_bools(const Column& column, uint64_t* out) {
  const uint64_t hashes[2] = {hash_word(0), hash_word(1)};
  for (int64_t row = 0; row < column.rows; ++row) out[row] = hashes[column.bool_at(row)];
}

void hash_strings(const Column& column, uint64_t* out) {
  for (int64_t row = 0; row < column.rows; ++row) {
    // The offsets of NULL rows are in order like all others, so their bytes may be read.
    out[row] = hash_bytes(column.string_at(row));
  }
}

void hash_dictionary(const Column& column, uint64_t* out) {
  const Column& dictionary = *column.dictionary;
  const int32_t* codes = column.codes();
  if (dictionary.rows > 4 * column.rows && is_string(dictionary.type.kind)) {
    for (int64_t row = 0; row < column.rows; ++row) {
      const bool valid = column.is_valid(row) && dictionary.is_valid(codes[row]);
      out[row] = valid ? hash_bytes(dictionary.string_at(codes[row])) : kNullHash;
    }
    return;
  }
  std::vector<uint64_t> hashes(static_cast<size_t>(dictionary.rows));
  hash_column(dictionary, hashes.data());
  for (int64_t row = 0; row < column.rows; ++row) {
    out[row] = column.is_valid(row) ? hashes[static_cast<size_t>(codes[row])] : kNullHash;
  }
}

void hash_plain(const Column& column, uint64_t* out) {
  switch (column.type.kind) {
    case Kind::Bool:
      return hash_bools(column, out);
    case Kind::Int8:
      return hash_fixed<int8_t>(column, out);
    case Kind::Int16:
      return hash_fixed<int16_t>(column, out);
    case Kind::Int32:
    case Kind::Date32:
    case Kind::Time32:
      return hash_fixed<int32_t>(column, out);
    case Kind::Int64:
    case Kind::Decimal64:
    case Kind::Time64:
    case Kind::Timestamp:
    case Kind::Duration:
      return hash_fixed<int64_t>(column, out);
    case Kind::UInt8:
      return hash_fixed<uint8_t>(column, out);
    case Kind::UInt16:
      return hash_fixed<uint16_t>(column, out);
    case Kind::UInt32:
      return hash_fixed<uint32_t>(column, out);
    case Kind::UInt64:
      return hash_fixed<uint64_t>(column, out);
    case Kind::Float32:
      return hash_fixed<float>(column, out);
    case Kind::Float64:
      return hash_fixed<double>(column, out);
    case Kind::Decimal128:
      return hash_fixed<int128>(column, out);
    case Kind::Interval:
      return hash_intervals(column, out);
    case Kind::String:
    case Kind::Binary:
      return hash_strings(column, out);
    case Kind::Null:
    case Kind::Other:
      break;
  }
  throw Unsupported("a column of Arrow format '" + column.type.format + "' has no hash");
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint64_t hash = bytes.size() >= 32 ? hash_stripes(at, end) : kPrime5;
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round_of(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ static_cast<uint8_t>(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

void hash_column(const Column& column, uint64_t* out) {
  if (column.is_dictionary()) return hash_dictionary(column, out);
  if (column.type.kind == Kind::Null) {
    std::fill_n(out, column.rows, kNullHash);
    return;
  }
  hash_plain(column, out);
  if (!column.may_have_nulls()) return;
  for (int64_t row = 0; row < column.rows; ++row) out[row] = column.is_valid(row) ? out[row] : kNullHash;
}

void hash_rows(std::span<const Column* const> columns, int64_t rows, uint64_t* out) {
  if (columns.empty()) {
    std::fill_n(out, rows, 0);
    return;
  }
  hash_column(*columns[0], out);
  std::vector<uint64_t> further(columns.size() > 1 ? static_cast<size_t>(rows) : 0);
  for (const Column* column : columns.subspan(1)) {
    hash_column(*column, further.data());
    for (int64_t row = 0; row < rows; ++row)
      out[row] = hash_combine(out[row], further[static_cast<size_t>(row)]);
  }
}

}  // namespace bireme
