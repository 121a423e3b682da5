// Casts among numbers, booleans, dates and timestamps; those from and to text are in files of their own.
//
// What a cast does to a value is written in plan/functions/conversion.py: numbers to fewer decimal places
// round half away from zero, floats to integers half to even. What does not fit is a ConversionFault; with
// text "overflow" (the end of an arithmetic that had to be done in a wider type) an Overflow.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "kernels/calendar.hpp"
#include "kernels/decimal.hpp"
#include "kernels/expression/cast_text.hpp"
#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

// The smallest and the largest count of a type of whole numbers or decimals.
struct Range {
  int128 low;
  int128 high;
};

Range range_of(const Type& type, int128 bound) {
  if (is_decimal(type.kind)) return {-bound, bound};
  Range range{0, 1};
  if (type.kind == Kind::Bool) return range;
  visit_number(physical_of(type.kind), [&range]<typename T>(T) {
    if constexpr (!std::is_floating_point_v<T>) {
      range = {static_cast<int128>(std::numeric_limits<T>::min()),
               static_cast<int128>(std::numeric_limits<T>::max())};
    }
  });
  return range;
}

void reject(Call& call, const uint8_t* bad) {
  if (call.node.text == "overflow") return call.reject<Overflow>(bad);
  call.reject<ConversionFault>(bad);
}

template <typename In, typename Out, typename Row>
void convert(Call& call, Row row_function) {
  const In* in = call.args[0]->as<In>();
  Out* out = call.out_as<Out>();
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  unsigned any = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool wrong = row_function(in[row], out[row]);
    bad[row] = wrong;
    any |= wrong;
  }
  if (any != 0) reject(call, bad);
}

// ------------------------------------------------------------------------------- whole numbers, decimals

template <typename In>
void load_exact(const Vector& from, int64_t rows, int128* out) {
  const In* in = from.as<In>();
  for (int64_t row = 0; row < rows; ++row) out[row] = static_cast<int128>(in[row]);
}

template <typename Out>
void store_exact(const int128* in, int64_t rows, void* to) {
  Out* out = static_cast<Out*>(to);
  for (int64_t row = 0; row < rows; ++row) out[row] = static_cast<Out>(in[row]);
}

// The loops of the general way, in node.state: any whole number to any other, by way of 128 bits.
struct Passage {
  void (*load)(const Vector& from, int64_t rows, int128* out);
  void (*store)(const int128* in, int64_t rows, void* out);
};

// numbers[0] is how many decimal places are gained (or, negative, lost).
void exact_to_exact(Call& call) {
  const auto& passage = *static_cast<const Passage*>(call.node.state.get());
  const int digits = static_cast<int>(call.node.numbers[0]);
  const Range range = range_of(call.node.type, call.node.bound);
  const int128 factor = power_of_ten(digits < 0 ? -digits : digits);
  auto* values = call.arena.take_array<int128>(call.rows);
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  passage.load(*call.args[0], call.rows, values);
  bool any = false;
  for (int64_t row = 0; row < call.rows; ++row) {
    int128 count = values[row];
    bool wrong = false;
    if (digits > 0) wrong = __builtin_mul_overflow(count, factor, &count);
    if (digits < 0) count = divide_rounded(count, factor);
    wrong |= (count < range.low) | (count > range.high);
    values[row] = count;
    bad[row] = wrong;
    any |= wrong;
  }
  passage.store(values, call.rows, call.out);
  if (any) reject(call, bad);
}

// Where the types prove that every value fits, and nothing is rounded.
template <typename In, typename Out>
void exact_widened(Call& call) {
  // Unsigned, so that what lies under NULL may wrap.
  using Word = std::conditional_t<sizeof(Out) == 16, uint128, uint64_t>;
  const auto factor = static_cast<Word>(power_of_ten(static_cast<int>(call.node.numbers[0])));
  map_unary<In, Out>(call, [factor](In value) {
    return static_cast<Out>(static_cast<Word>(static_cast<Out>(value)) * factor);
  });
}

// Losing decimal places within 64 bits.
void decimals_rounded(Call& call) {
  const auto divisor = static_cast<int64_t>(power_of_ten(static_cast<int>(-call.node.numbers[0])));
  const auto bound = static_cast<int64_t>(call.node.bound);
  convert<int64_t, int64_t>(call, [divisor, bound](int64_t value, int64_t& out) {
    out = divide_rounded(value, divisor);
    return out < -bound || out > bound;
  });
}

// The digits before the point that values of a type can have.
int whole_digits(const Type& type) {
  switch (type.kind) {
    case Kind::Bool:
      return 1;
    case Kind::Int8:
    case Kind::UInt8:
      return 3;
    case Kind::Int16:
    case Kind::UInt16:
      return 5;
    case Kind::Int32:
    case Kind::UInt32:
      return 10;
    case Kind::Int64:
      return 19;
    case Kind::UInt64:
      return 20;
    default:
      return type.precision - type.scale;
  }
}

bool is_exact(Kind kind) {
  return is_integer(kind) || is_decimal(kind) || kind == Kind::Bool;
}

// Whether every value of `from` lies in `to`.
bool proven(const Node& node) {
  const Type& from = node.arg_types[0];
  const Type& to = node.type;
  if (to.scale < from.scale) return false;
  if (is_decimal(to.kind)) return whole_digits(from) <= whole_digits(to);
  if (is_decimal(from.kind)) return false;
  const Range inner = range_of(from, 0);
  const Range outer = range_of(to, 0);
  return outer.low <= inner.low && inner.high <= outer.high;
}

template <typename Visit>
bool visit_exact(Kind kind, Visit visit) {
  if (kind == Kind::Bool) {
    visit(uint8_t{});
    return true;
  }
  return visit_number(physical_of(kind), visit);
}

void resolve_exact(Node& node) {
  const Type& from = node.arg_types[0];
  node.numbers[0] = node.type.scale - from.scale;
  const bool fits = proven(node);
  node.can_raise |= !fits && !node.safe;
  if (!fits && from.kind == Kind::Decimal64 && node.type.kind == Kind::Decimal64 && node.numbers[0] < 0) {
    node.kernel = decimals_rounded;
  } else if (fits && node.physical == Physical::I64) {
    visit_exact(from.kind, [&node]<typename In>(In) { node.kernel = exact_widened<In, int64_t>; });
  } else if (fits && node.physical == Physical::I128) {
    visit_exact(from.kind, [&node]<typename In>(In) { node.kernel = exact_widened<In, int128>; });
  } else {
    auto passage = std::make_shared<Passage>();
    visit_exact(from.kind, [&passage]<typename In>(In) { passage->load = load_exact<In>; });
    visit_exact(node.type.kind, [&passage]<typename Out>(Out) { passage->store = store_exact<Out>; });
    node.state = std::move(passage);
    node.kernel = exact_to_exact;
  }
}

template <typename In>
void to_bool(Call& call) {
  map_unary<In, uint8_t>(call, [](In value) { return static_cast<uint8_t>(value != 0); });
}

// ------------------------------------------------------------------------------------------------ floats

// Both are doubles without loss up to here, so that one division rounds once.
constexpr int64_t kExactDoubleMax = int64_t{1} << 53;
constexpr int kExactPowerMax = 22;

// The double nearest to a decimal whose digits or whose power of ten a double does not hold.
double nearest_double(int128 unscaled, int scale) {
  std::array<char, 64> text;  // the digits, up to a place in the middle, and the exponent after them
  char* past = text.data() + 48;
  char* start = past;
  const bool negative = unscaled < 0;
  auto rest = static_cast<uint128>(unscaled);
  if (negative) rest = -rest;
  for (; rest != 0; rest /= 10) *--start = static_cast<char>('0' + static_cast<int>(rest % 10));
  if (start == past) return 0.0;
  *past++ = 'e';
  past = std::to_chars(past, text.data() + text.size(), -scale).ptr;
  double value = 0;
  std::from_chars(start, past, value);
  return negative ? -value : value;
}

// The double nearest to a count over a power of ten, `divisor`, which is that of `scale`.
template <typename In>
double quotient(In value, int scale, double divisor) {
  if constexpr (!std::is_unsigned_v<In> && sizeof(In) >= sizeof(int64_t)) {
    const bool plain = scale <= kExactPowerMax && value <= kExactDoubleMax && value >= -kExactDoubleMax;
    if (!plain && scale != 0) return nearest_double(static_cast<int128>(value), scale);
  }
  return static_cast<double>(value) / divisor;
}

template <typename Out, typename In>
void exact_to_float(Call& call) {
  const int scale = call.node.arg_types[0].scale;
  const double divisor = static_cast<double>(power_of_ten(scale));
  map_unary<In, Out>(call, [=](In value) { return static_cast<Out>(quotient(value, scale, divisor)); });
}

void narrow_float(Call& call) {
  convert<double, float>(call, [](double value, float& out) {
    out = static_cast<float>(value);
    return std::isfinite(value) && !std::isfinite(out);
  });
}

void widen_float(Call& call) {
  map_unary<float, double>(call, [](float value) { return static_cast<double>(value); });
}

// 2^126 and beyond fits no type here, and int128 holds what is below.
constexpr double kDoubleMax = 0x1p126;

template <typename In, typename Out>
void float_to_exact(Call& call) {
  const Range range = range_of(call.node.type, call.node.bound);
  const bool decimal = is_decimal(call.node.type.kind);
  const double factor = static_cast<double>(power_of_ten(call.node.type.scale));
  convert<In, Out>(call, [=](In value, Out& out) {
    const double scaled = decimal ? static_cast<double>(value) * factor : static_cast<double>(value);
    if (!(std::abs(scaled) < kDoubleMax)) {
      out = 0;
      return true;
    }
    const auto count = static_cast<int128>(decimal ? std::round(scaled) : std::nearbyint(scaled));
    out = static_cast<Out>(count);
    return count < range.low || count > range.high;
  });
}

void resolve_to_float(Node& node) {
  const Kind from = node.arg_types[0].kind;
  const bool to_double = node.type.kind == Kind::Float64;
  if (from == Kind::Float32) {
    node.kernel = widen_float;
  } else if (from == Kind::Float64) {
    node.kernel = narrow_float;
    node.can_raise |= !node.safe;
  } else {
    visit_exact(from, [&]<typename In>(In) {
      node.kernel = to_double ? exact_to_float<double, In> : exact_to_float<float, In>;
    });
  }
}

void resolve_from_float(Node& node) {
  node.can_raise |= !node.safe;
  const bool from_double = node.arg_types[0].kind == Kind::Float64;
  visit_exact(node.type.kind, [&]<typename Out>(Out) {
    if constexpr (!std::is_floating_point_v<Out>) {
      node.kernel = from_double ? float_to_exact<double, Out> : float_to_exact<float, Out>;
    }
  });
}

// -------------------------------------------------------------------------------------------------- time

using moments::floor_divide;
using moments::ticks_a_second;

// numbers[0]: the factor to multiply by, or (negated) to divide by; timestamps of a coarser unit are rounded,
// dates rounded down.
template <typename In, typename Out>
void rescale_time(Call& call) {
  const int64_t factor = call.node.numbers[0];
  const bool rounds = call.node.type.kind == Kind::Timestamp;
  convert<In, Out>(call, [factor, rounds](In value, Out& out) {
    int64_t count;
    bool wrong = false;
    if (factor > 0) {
      wrong = __builtin_mul_overflow(static_cast<int64_t>(value), factor, &count);
    } else if (rounds) {
      count = divide_rounded(static_cast<int64_t>(value), -factor);
    } else {
      count = floor_divide(static_cast<int64_t>(value), -factor);
    }
    out = static_cast<Out>(count);
    // The ends of the range of 32 bits are not dates; no time comes near them.
    if constexpr (sizeof(Out) == 4) wrong |= count <= -INT32_MAX || count >= INT32_MAX;
    return wrong;
  });
}

// numbers[0]: the factor to multiply by, or (negated) to divide by, cutting off; numbers[1]: a day's ticks.
template <typename Out>
void time_of_timestamp(Call& call) {
  const int64_t factor = call.node.numbers[0];
  const int64_t day = call.node.numbers[1];
  map_unary<int64_t, Out>(call, [factor, day](int64_t value) {
    const int64_t rest = value % day;
    const int64_t ticks = rest < 0 ? rest + day : rest;
    return static_cast<Out>(factor > 0 ? ticks * factor : ticks / -factor);
  });
}

bool is_time_of_day(Kind kind) {
  return kind == Kind::Time32 || kind == Kind::Time64;
}

void resolve_time_of_day(Node& node) {
  const bool is_from_32 = node.arg_types[0].kind == Kind::Time32;
  if (node.type.kind == Kind::Time32) {
    node.kernel = is_from_32 ? rescale_time<int32_t, int32_t> : rescale_time<int64_t, int32_t>;
  } else {
    node.kernel = is_from_32 ? rescale_time<int32_t, int64_t> : rescale_time<int64_t, int64_t>;
  }
}

bool resolve_time(Node& node) {
  const Type& from = node.arg_types[0];
  const int64_t a = ticks_a_second(from.unit);
  const int64_t b = ticks_a_second(node.type.unit);
  if (from.kind == Kind::Date32 && node.type.kind == Kind::Timestamp) {
    node.numbers[0] = 86'400 * b;
    node.kernel = rescale_time<int32_t, int64_t>;
  } else if (from.kind == Kind::Timestamp && node.type.kind == Kind::Date32) {
    node.numbers[0] = -86'400 * a;
    node.kernel = rescale_time<int64_t, int32_t>;
  } else if (from.kind == Kind::Timestamp && node.type.kind == Kind::Timestamp) {
    node.numbers[0] = b >= a ? b / a : -(a / b);
    node.kernel = rescale_time<int64_t, int64_t>;
  } else if (from.kind == Kind::Timestamp && is_time_of_day(node.type.kind)) {
    node.numbers[0] = b >= a ? b / a : -(a / b);
    node.numbers[1] = 86'400 * a;
    node.kernel = node.type.kind == Kind::Time32 ? time_of_timestamp<int32_t> : time_of_timestamp<int64_t>;
    return true;
  } else if (is_time_of_day(from.kind) && is_time_of_day(node.type.kind)) {
    node.numbers[0] = b >= a ? b / a : -(a / b);
    resolve_time_of_day(node);
    return true;  // a day's ticks fit any unit
  } else {
    return false;
  }
  node.can_raise |= !node.safe;
  return true;
}

void resolve_cast(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Kind from = node.arg_types[0].kind;
  const Kind to = node.type.kind;
  if (is_exact(from) && to == Kind::Bool) {
    visit_exact(from, [&node]<typename In>(In) { node.kernel = to_bool<In>; });
  } else if (is_exact(from) && is_exact(to)) {
    resolve_exact(node);
  } else if (is_float(from) && to == Kind::Bool) {
    node.kernel = from == Kind::Float64 ? to_bool<double> : to_bool<float>;
  } else if ((is_exact(from) || is_float(from)) && is_float(to)) {
    resolve_to_float(node);
  } else if (is_float(from) && is_exact(to)) {
    resolve_from_float(node);
  } else if (from == Kind::String ? !resolve_from_text(node) : to == Kind::String && !resolve_to_text(node)) {
    no_kernel(node);
  } else if (from != Kind::String && to != Kind::String && !resolve_time(node)) {
    no_kernel(node);
  }
}

constexpr Function kFunctions[] = {{"cast", resolve_cast}};

}  // namespace

std::span<const Function> cast_functions() {
  return kFunctions;
}

}  // namespace bireme
