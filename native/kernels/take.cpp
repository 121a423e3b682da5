#include "kernels/take.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

// Calls work(pointer to the positions) with their type.
template <typename Work>
auto with_positions(const Column& positions, Work work) {
  if (positions.type.kind == Kind::Int64) return work(positions.as<int64_t>());
  if (positions.type.kind == Kind::Int32) return work(positions.as<int32_t>());
  throw EngineBug("positions must be int32 or int64, not Arrow format '" + positions.type.format + "'");
}

template <typename Index>
void check_range(const Column& positions, const Index* at, int64_t rows) {
  Index low = 0;
  Index high = -1;
  if (!positions.may_have_nulls()) {
    for (int64_t index = 0; index < positions.rows; ++index) {
      low = std::min(low, at[index]);
      high = std::max(high, at[index]);
    }
  } else {
    for (int64_t index = 0; index < positions.rows; ++index) {
      if (!positions.is_valid(index)) continue;
      low = std::min(low, at[index]);
      high = std::max(high, at[index]);
    }
  }
  if (low < 0 || int64_t{high} >= rows) {
    throw EngineBug("a position lies outside the batch of " + std::to_string(rows) + " rows");
  }
}

// Fills in the validity bitmap: of the position, and of the row there. Returns how many are NULL.
template <typename Index>
int64_t take_validity(const Column& column, const Column& positions, const Index* at, uint8_t* bits) {
  int64_t valid_count = 0;
  for (int64_t index = 0; index < positions.rows; ++index) {
    const bool valid = positions.is_valid(index) && column.is_valid(at[index]);
    bits[index >> 3] |= static_cast<uint8_t>(uint32_t{valid} << (index & 7));
    valid_count += valid;
  }
  return positions.rows - valid_count;
}

struct Wide {
  uint64_t low, high;
};

template <typename T, typename Index>
Buffer take_fixed(const Column& column, const Column& positions, const Index* at) {
  Buffer buffer(positions.rows * static_cast<int64_t>(sizeof(T)));
  T* out = buffer.as<T>();
  const char* values = column.as<char>();
  if (!positions.may_have_nulls()) {
    for (int64_t index = 0; index < positions.rows; ++index) {
      std::memcpy(out + index, values + static_cast<int64_t>(at[index]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
    return buffer;
  }
  for (int64_t index = 0; index < positions.rows; ++index) {
    if (positions.is_valid(index)) {
      std::memcpy(out + index, values + static_cast<int64_t>(at[index]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    } else {
      out[index] = T{};
    }
  }
  return buffer;
}

template <typename Index>
Buffer take_bits(const Column& column, const Column& positions, const Index* at) {
  Buffer buffer = Buffer::zeroed(bitmap_bytes(positions.rows));
  auto* bits = buffer.as<uint8_t>();
  for (int64_t index = 0; index < positions.rows; ++index) {
    const bool set = positions.is_valid(index) && column.bool_at(at[index]);
    bits[index >> 3] |= static_cast<uint8_t>(uint32_t{set} << (index & 7));
  }
  return buffer;
}

// Copies short strings by whole words, which is why `out` and the source must have room for 16 bytes more.
template <typename Index>
void take_strings(const Column& column, const Column& positions, const Index* at, OutputColumn& out) {
  out.offsets = Buffer((positions.rows + 1) * 4);
  auto* offsets = out.offsets.as<int32_t>();
  const uint8_t* valid = out.validity.as<uint8_t>();
  int64_t total = 0;
  for (int64_t index = 0; index < positions.rows; ++index) {
    offsets[index] = static_cast<int32_t>(total);
    if (valid == nullptr || ((valid[index >> 3] >> (index & 7)) & 1) != 0) {
      total += column.offsets[at[index] + 1] - column.offsets[at[index]];
      if (total > std::numeric_limits<int32_t>::max()) {
        throw Unsupported("more than 2 GiB of text in one column of one batch; use smaller batches");
      }
    }
  }
  offsets[positions.rows] = static_cast<int32_t>(total);
  out.values = Buffer(total);
  char* bytes = out.values.as<char>();
  const char* source = column.as<char>();
  for (int64_t index = 0; index < positions.rows; ++index) {
    const int32_t length = offsets[index + 1] - offsets[index];
    if (length > 0) std::memcpy(bytes + offsets[index], source + column.offsets[at[index]], static_cast<size_t>(length));
  }
}

template <typename Index>
void take_values(const Column& column, const Column& positions, const Index* at, OutputColumn& out) {
  const int width = column.is_dictionary() ? 4 : width_of(column.type.kind);
  switch (width) {
    case 1: out.values = take_fixed<uint8_t>(column, positions, at); return;
    case 2: out.values = take_fixed<uint16_t>(column, positions, at); return;
    case 4: out.values = take_fixed<uint32_t>(column, positions, at); return;
    case 8: out.values = take_fixed<uint64_t>(column, positions, at); return;
    case 16: out.values = take_fixed<Wide>(column, positions, at); return;
    default: break;
  }
  if (column.type.kind == Kind::Bool) {
    out.values = take_bits(column, positions, at);
  } else if (is_string(column.type.kind)) {
    take_strings(column, positions, at, out);
  } else {
    throw Unsupported("no native take of Arrow format '" + column.type.format + "'");
  }
}

}  // namespace

void check_positions(const Column& positions, int64_t rows) {
  with_positions(positions, [&](const auto* at) { check_range(positions, at, rows); });
}

OutputColumn take(const Column& column, const Column& positions) {
  OutputColumn out;
  out.type = column.is_dictionary() ? simple_type(Kind::Int32) : column.type;
  out.rows = positions.rows;
  if (column.type.kind == Kind::Null) {
    out.type = column.type;
    out.null_count = out.rows;
    return out;
  }
  with_positions(positions, [&](const auto* at) {
    if (column.may_have_nulls() || positions.may_have_nulls()) {
      out.validity = Buffer::zeroed(bitmap_bytes(out.rows));
      out.null_count = take_validity(column, positions, at, out.validity.template as<uint8_t>());
      if (out.null_count == 0) out.validity.reset();
    }
    take_values(column, positions, at, out);
  });
  return out;
}

}  // namespace bireme
