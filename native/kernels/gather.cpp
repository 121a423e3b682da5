#include "kernels/gather.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

struct Wide {
  uint64_t low, high;
};

template <typename T>
void gather_fixed(const Column& column, const uint32_t* rows, int64_t count, bool may_miss, Buffer& out) {
  out = Buffer(count * static_cast<int64_t>(sizeof(T)));
  T* values = out.as<T>();
  const char* source = column.as<char>();
  if (!may_miss) {
    for (int64_t index = 0; index < count; ++index) {
      std::memcpy(values + index,
                  source + static_cast<int64_t>(rows[index]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
    return;
  }
  for (int64_t index = 0; index < count; ++index) {
    if (rows[index] == kMissingRow) {
      values[index] = T{};
    } else {
      std::memcpy(values + index,
                  source + static_cast<int64_t>(rows[index]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

template <typename Test>
void write_bits(int64_t count, uint8_t* bits, Test test) {
  for (int64_t begin = 0; begin < count; begin += 8) {
    uint8_t byte = 0;
    for (int64_t index = begin; index < count && index < begin + 8; ++index) {
      byte |= static_cast<uint8_t>(uint32_t{test(index)} << (index - begin));
    }
    bits[begin >> 3] = byte;
  }
}

int64_t count_ones(const uint8_t* bits, int64_t count) {
  int64_t ones = 0;
  for (int64_t byte = 0; byte < bitmap_bytes(count); ++byte) ones += __builtin_popcount(bits[byte]);
  return ones;
}

void gather_validity(const Column& column, const uint32_t* rows, int64_t count, OutputColumn& out) {
  out.validity = Buffer(bitmap_bytes(count));
  auto* bits = out.validity.as<uint8_t>();
  write_bits(count, bits,
             [&](int64_t index) { return rows[index] != kMissingRow && column.is_valid(rows[index]); });
  out.null_count = count - count_ones(bits, count);
  if (out.null_count == 0) out.validity.reset();
}

void gather_text(const Column& column, const uint32_t* rows, int64_t count, OutputColumn& out) {
  out.offsets = Buffer((count + 1) * 4);
  auto* offsets = out.offsets.as<int32_t>();
  const uint8_t* valid = out.validity.as<uint8_t>();
  int64_t total = 0;
  for (int64_t index = 0; index < count; ++index) {
    offsets[index] = static_cast<int32_t>(total);
    if (valid == nullptr || ((valid[index >> 3] >> (index & 7)) & 1) != 0) {
      total += column.offsets[rows[index] + 1] - column.offsets[rows[index]];
      if (total > std::numeric_limits<int32_t>::max()) {
        throw Unsupported("more than 2 GiB of text in one column of one batch; use smaller batches");
      }
    }
  }
  offsets[count] = static_cast<int32_t>(total);
  out.values = Buffer(total);
  char* bytes = out.values.as<char>();
  const char* source = column.as<char>();
  for (int64_t index = 0; index < count; ++index) {
    const int32_t length = offsets[index + 1] - offsets[index];
    if (length > 0)
      std::memcpy(bytes + offsets[index], source + column.offsets[rows[index]], static_cast<size_t>(length));
  }
}

void gather_values(const Column& column, const uint32_t* rows, int64_t count, bool may_miss,
                   OutputColumn& out) {
  switch (column.is_dictionary() ? 4 : width_of(column.type.kind)) {
    case 1:
      return gather_fixed<uint8_t>(column, rows, count, may_miss, out.values);
    case 2:
      return gather_fixed<uint16_t>(column, rows, count, may_miss, out.values);
    case 4:
      return gather_fixed<uint32_t>(column, rows, count, may_miss, out.values);
    case 8:
      return gather_fixed<uint64_t>(column, rows, count, may_miss, out.values);
    case 16:
      return gather_fixed<Wide>(column, rows, count, may_miss, out.values);
    default:
      break;
  }
  if (column.type.kind == Kind::Bool) {
    out.values = Buffer(bitmap_bytes(count));
    write_bits(count, out.values.as<uint8_t>(),
               [&](int64_t index) { return rows[index] != kMissingRow && column.bool_at(rows[index]); });
  } else if (is_string(column.type.kind)) {
    gather_text(column, rows, count, out);
  } else {
    throw EngineBug("no gathering of Arrow format '" + column.type.format + "'");
  }
}

}  // namespace

OutputColumn gather(const Column& column, const uint32_t* rows, int64_t count, bool may_miss) {
  OutputColumn out;
  out.type = column.is_dictionary() ? simple_type(Kind::Int32) : column.type;
  out.rows = count;
  if (column.type.kind == Kind::Null) {
    out.null_count = count;
    return out;
  }
  if (column.may_have_nulls() || may_miss) gather_validity(column, rows, count, out);
  gather_values(column, rows, count, may_miss, out);
  return out;
}

void copy_bits(const uint8_t* source, int64_t from, int64_t count, uint8_t* out, int64_t to) {
  const auto bit = [&](int64_t index) {
    return static_cast<uint32_t>(source[(from + index) >> 3] >> ((from + index) & 7)) & 1;
  };
  int64_t index = 0;
  while (index < count) {
    const int64_t place = to + index;
    const int64_t in_byte = std::min<int64_t>(8 - (place & 7), count - index);
    uint32_t byte = 0;
    for (int64_t offset = 0; offset < in_byte; ++offset)
      byte |= bit(index + offset) << ((place & 7) + offset);
    // The bytes at both ends may hold bits of others.
    std::atomic_ref<uint8_t>(out[place >> 3]).fetch_or(static_cast<uint8_t>(byte), std::memory_order_relaxed);
    index += in_byte;
  }
}

}  // namespace bireme
