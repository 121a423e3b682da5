#include "parquet/conversion.hpp"

#include <bit>
#include <limits>

#include "arrow/errors.hpp"
#include "parquet/page.hpp"

namespace bireme::parquet {

namespace {

constexpr int64_t kJulianDayOfEpoch = 2440588;
constexpr int64_t kMicrosecondsPerDay = int64_t{86400} * 1000 * 1000;

bool is_scaled(const ChunkSpec& spec) {
  return spec.multiplier != 1 || spec.divisor != 1;
}

bool is_plain_copy(const ChunkSpec& spec) {
  const Kind kind = spec.type.kind;
  switch (spec.physical) {
    case Physical::Int32:
      return !is_scaled(spec) &&
             (kind == Kind::Int32 || kind == Kind::UInt32 || kind == Kind::Date32 || kind == Kind::Time32);
    case Physical::Int64:
      return !is_scaled(spec) && (kind == Kind::Int64 || kind == Kind::UInt64 || kind == Kind::Decimal64 ||
                                  kind == Kind::Time64 || kind == Kind::Timestamp || kind == Kind::Duration);
    case Physical::Float:
      return kind == Kind::Float32;
    case Physical::Double:
      return kind == Kind::Float64;
    case Physical::Boolean:
      return kind == Kind::Bool;
    default:
      return false;
  }
}

float widen_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t mantissa = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(tiny));
}

}  // namespace

// The conversions; each returns whether all values fitted.
struct Conversion::Functions {
  template <typename Stored, typename Cell>
  static bool whole(const Conversion&, const uint8_t* stored, int64_t count, uint8_t* cells) {
    bool fits = true;
    for (int64_t index = 0; index < count; ++index) {
      const auto value = load<Stored>(stored + index * static_cast<int64_t>(sizeof(Stored)));
      const auto cell = static_cast<Cell>(value);
      fits &= static_cast<int128>(cell) == static_cast<int128>(value);
      store(cells + index * static_cast<int64_t>(sizeof(Cell)), cell);
    }
    return fits;
  }

  template <typename Stored, typename Cell>
  static bool scaled(const Conversion& self, const uint8_t* stored, int64_t count, uint8_t* cells) {
    bool fits = true;
    for (int64_t index = 0; index < count; ++index) {
      int64_t value = load<Stored>(stored + index * static_cast<int64_t>(sizeof(Stored)));
      fits &= !__builtin_mul_overflow(value, self.multiplier_, &value);
      fits &= value % self.divisor_ == 0;
      value /= self.divisor_;
      const auto cell = static_cast<Cell>(value);
      fits &= static_cast<int64_t>(cell) == value;
      store(cells + index * static_cast<int64_t>(sizeof(Cell)), cell);
    }
    return fits;
  }

  // Big-endian and signed, of any length up to 16.
  template <typename Cell>
  static bool big_endian(const Conversion& self, const uint8_t* stored, int64_t count, uint8_t* cells) {
    const int length = self.stored_bytes_;
    bool fits = true;
    for (int64_t index = 0; index < count; ++index, stored += length) {
      auto value = static_cast<int128>(static_cast<int8_t>(stored[0]));
      for (int byte = 1; byte < length; ++byte) {
        value = static_cast<int128>(static_cast<uint128>(value) << 8 | stored[byte]);
      }
      const auto cell = static_cast<Cell>(value);
      fits &= static_cast<int128>(cell) == value;
      store(cells + index * static_cast<int64_t>(sizeof(Cell)), cell);
    }
    return fits;
  }

  // Nanoseconds of the day, then the Julian day. What is less than a microsecond is cut off, as in every
  // other reader.
  static bool int96(const Conversion&, const uint8_t* stored, int64_t count, uint8_t* cells) {
    bool fits = true;
    for (int64_t index = 0; index < count; ++index, stored += 12) {
      const int64_t days = int64_t{load<uint32_t>(stored + 8)} - kJulianDayOfEpoch;
      int64_t value = 0;
      fits &= !__builtin_mul_overflow(days, kMicrosecondsPerDay, &value);
      fits &= !__builtin_add_overflow(value, static_cast<int64_t>(load<uint64_t>(stored) / 1000), &value);
      store(cells + index * 8, value);
    }
    return fits;
  }

  static bool half(const Conversion&, const uint8_t* stored, int64_t count, uint8_t* cells) {
    for (int64_t index = 0; index < count; ++index) {
      store(cells + index * 4, widen_half(load<uint16_t>(stored + index * 2)));
    }
    return true;
  }

  template <typename Stored, typename Cell>
  static Function of_integers(const ChunkSpec& spec) {
    return is_scaled(spec) ? &scaled<Stored, Cell> : &whole<Stored, Cell>;
  }

  template <typename Stored>
  static Function from_integer(const ChunkSpec& spec) {
    switch (spec.type.kind) {
      case Kind::Int8:
        return of_integers<Stored, int8_t>(spec);
      case Kind::Int16:
        return of_integers<Stored, int16_t>(spec);
      case Kind::Int32:
      case Kind::Date32:
      case Kind::Time32:
        return of_integers<Stored, int32_t>(spec);
      case Kind::UInt8:
        return of_integers<Stored, uint8_t>(spec);
      case Kind::UInt16:
        return of_integers<Stored, uint16_t>(spec);
      case Kind::UInt32:
        return of_integers<Stored, uint32_t>(spec);
      case Kind::Int64:
      case Kind::Decimal64:
      case Kind::Time64:
      case Kind::Timestamp:
      case Kind::Duration:
        return of_integers<Stored, int64_t>(spec);
      case Kind::Decimal128:
        return is_scaled(spec) ? nullptr : &whole<Stored, int128>;
      default:
        return nullptr;
    }
  }

  static Function from_bytes(const ChunkSpec& spec) {
    const int length = spec.type_length;
    if (spec.type.kind == Kind::Decimal64 && length <= 16) return &big_endian<int64_t>;
    if (spec.type.kind == Kind::Decimal128 && length <= 16) return &big_endian<int128>;
    if (spec.type.kind == Kind::Float32 && length == 2) return &half;
    return nullptr;
  }

  static Function of(const ChunkSpec& spec) {
    switch (spec.physical) {
      case Physical::Int32:
        return from_integer<int32_t>(spec);
      case Physical::Int64:
        return from_integer<int64_t>(spec);
      case Physical::Int96:
        return spec.type.kind == Kind::Timestamp && spec.type.unit == 'u' ? &int96 : nullptr;
      case Physical::FixedLenByteArray:
        return from_bytes(spec);
      default:
        return nullptr;
    }
  }
};

Conversion::Conversion(const ChunkSpec& spec)
    : stored_bytes_(spec.physical == Physical::Boolean ? 1 : stored_width(spec)),
      cell_bytes_(spec.type.kind == Kind::Bool ? 1 : width_of(spec.type.kind)),
      multiplier_(spec.multiplier),
      divisor_(spec.divisor) {
  if (is_plain_copy(spec)) return;
  run_ = Functions::of(spec);
  if (run_ == nullptr || divisor_ <= 0) {
    throw Unsupported("Parquet columns of physical type " + std::to_string(static_cast<int>(spec.physical)) +
                      " are not read here as Arrow type " + spec.type.format);
  }
}

void Conversion::run(const uint8_t* stored, int64_t count, void* cells) const {
  if (count == 0) return;
  if (run_ == nullptr) {
    std::memcpy(cells, stored, static_cast<size_t>(count * cell_bytes_));
  } else if (!run_(*this, stored, count, static_cast<uint8_t*>(cells))) {
    corrupt("a value does not fit the type of its column");
  }
}

}  // namespace bireme::parquet
