// The bits of integers, divisors and multiples, and digits to other bases.
//
// Rows that fail are left to the reference backend, which says what is wrong with them.
#include <array>
#include <bit>
#include <numeric>

#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

template <typename T>
using Bits = std::make_unsigned_t<T>;

// Calls `visit` with a value of the C++ type of an integer; returns false for others.
template <typename Visit>
bool visit_integer(Kind kind, Visit visit) {
  if (!is_integer(kind)) return false;
  return visit_number(physical_of(kind), [&visit]<typename T>(T value) {
    if constexpr (std::is_integral_v<T>) visit(value);
  });
}

// ------------------------------------------------------------------------------------------------- bits

enum class Bitwise { And, Or, Xor };

template <Bitwise op, typename T>
T combined(T a, T b) {
  if (op == Bitwise::And) return static_cast<T>(a & b);
  if (op == Bitwise::Or) return static_cast<T>(a | b);
  return static_cast<T>(a ^ b);
}

template <Bitwise op, typename T>
void combine(Call& call) {
  const bool turned = call.args[0]->constant;
  const Vector& a = *call.args[turned ? 1 : 0];
  const Vector& b = *call.args[turned ? 0 : 1];
  const T* __restrict left = a.as<T>();
  T* __restrict out = call.out_as<T>();
  if (b.constant) {
    const T right = b.at<T>(0);
    for (int64_t row = 0; row < call.rows; ++row) out[row] = combined<op>(left[row], right);
  } else {
    const T* __restrict right = b.as<T>();
    for (int64_t row = 0; row < call.rows; ++row) out[row] = combined<op>(left[row], right[row]);
  }
}

bool of_one_type(const Node& node, size_t count) {
  if (node.args.size() != count) return false;
  for (const Type& type : node.arg_types) {
    if (type.kind != node.type.kind) return false;
  }
  return true;
}

template <Bitwise op>
void resolve_bitwise(Node& node, std::span<const Node* const>) {
  const bool fits = of_one_type(node, 2) &&
                    visit_integer(node.type.kind, [&node]<typename T>(T) { node.kernel = combine<op, T>; });
  if (!fits) no_kernel(node);
}

template <typename T>
void flip(Call& call) {
  map_unary<T, T>(call, [](T value) { return static_cast<T>(~value); });
}

void resolve_not(Node& node, std::span<const Node* const>) {
  const bool fits = of_one_type(node, 1) &&
                    visit_integer(node.type.kind, [&node]<typename T>(T) { node.kernel = flip<T>; });
  if (!fits) no_kernel(node);
}

template <typename T>
constexpr int kBits = std::numeric_limits<Bits<T>>::digits;

template <typename T>
bool is_negative(T value) {
  return std::is_signed_v<T> && static_cast<int64_t>(value) < 0;
}

// Whether a bit leaves the type, or the shift has no meaning.
template <typename T>
bool shift_up(T value, T by, T& out) {
  out = 0;
  if (is_negative(value) || is_negative(by)) return true;
  if (value == 0) return false;
  if (static_cast<uint64_t>(by) >= static_cast<uint64_t>(kBits<T>)) return true;
  out = static_cast<T>(static_cast<Bits<T>>(value) << by);
  return is_negative(out) || static_cast<T>(static_cast<Bits<T>>(out) >> by) != value;
}

template <typename T>
void shift_left(Call& call) {
  map_rows<NeedsReference, T>(call, [&call](int64_t row, T& out) {
    return shift_up<T>(call.args[0]->at<T>(row), call.args[1]->at<T>(row), out);
  });
}

template <typename T>
void shift_right(Call& call) {
  map_rows<NeedsReference, T>(call, [&call](int64_t row, T& out) {
    const T by = call.args[1]->at<T>(row);
    const bool within = !is_negative(by) && static_cast<uint64_t>(by) < static_cast<uint64_t>(kBits<T>);
    out = within ? static_cast<T>(call.args[0]->at<T>(row) >> by) : T{0};
    return false;
  });
}

template <bool up>
void resolve_shift(Node& node, std::span<const Node* const>) {
  const bool fits = of_one_type(node, 2) && visit_integer(node.type.kind, [&node]<typename T>(T) {
                      node.kernel = up ? shift_left<T> : shift_right<T>;
                    });
  if (!fits) no_kernel(node);
  node.can_raise |= up;
}

template <typename T>
void count_bits(Call& call) {
  map_unary<T, int8_t>(
      call, [](T value) { return static_cast<int8_t>(std::popcount(static_cast<Bits<T>>(value))); });
}

void resolve_bit_count(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const bool fits =
      node.type.kind == Kind::Int8 &&
      visit_integer(node.arg_types[0].kind, [&node]<typename T>(T) { node.kernel = count_bits<T>; });
  if (!fits) no_kernel(node);
}

// --------------------------------------------------------------------------------- divisors and multiples

uint64_t magnitude(int64_t value) {
  return value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// Halving, since division is slow (Stein).
uint64_t common_divisor(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return a | b;
  const int twos = std::countr_zero(a | b);
  a >>= std::countr_zero(a);
  while (b != 0) {
    b >>= std::countr_zero(b);
    const uint64_t less = std::min(a, b);
    b = a > b ? a - b : b - a;
    a = less;
  }
  return a << twos;
}

// Whether it does not fit.
bool common_multiple(uint64_t a, uint64_t b, uint64_t& out) {
  out = 0;
  if (a == 0 || b == 0) return false;
  return __builtin_mul_overflow(a / common_divisor(a, b), b, &out);
}

template <bool multiple>
void common(Call& call) {
  map_rows<NeedsReference, int64_t>(call, [&call](int64_t row, int64_t& out) {
    const uint64_t a = magnitude(call.args[0]->at<int64_t>(row));
    const uint64_t b = magnitude(call.args[1]->at<int64_t>(row));
    uint64_t found = 0;
    bool wrong = false;
    if (multiple) {
      wrong = common_multiple(a, b, found);
    } else {
      found = common_divisor(a, b);
    }
    out = static_cast<int64_t>(found);
    return wrong || found > static_cast<uint64_t>(INT64_MAX);
  });
}

template <bool multiple>
void resolve_common(Node& node, std::span<const Node* const>) {
  if (!of_one_type(node, 2) || node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = common<multiple>;
  node.can_raise = true;
}

// The largest whose factorial has 38 digits.
constexpr int kFactorialMax = 33;

constexpr auto kFactorials = [] {
  std::array<int128, kFactorialMax + 1> values{};
  values[0] = 1;
  for (int number = 1; number <= kFactorialMax; ++number) {
    values[static_cast<size_t>(number)] = values[static_cast<size_t>(number - 1)] * number;
  }
  return values;
}();

void factorials(Call& call) {
  map_checked<NeedsReference, int32_t, int128>(call, [](int32_t value, int128& out) {
    const bool wrong = value < 0 || value > kFactorialMax;
    out = wrong ? 0 : kFactorials[static_cast<size_t>(value)];
    return wrong;
  });
}

void resolve_factorial(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const bool fits =
      node.arg_types[0].kind == Kind::Int32 && node.type.kind == Kind::Decimal128 && node.type.scale == 0;
  if (!fits) no_kernel(node);
  node.kernel = factorials;
  node.can_raise = true;
}

// ----------------------------------------------------------------------------------------------- digits

// Negative numbers as their 64 bits.
template <int digit_bits, typename T>
void write_bits(Call& call) {
  constexpr int kMost = (64 + digit_bits - 1) / digit_bits;
  const T* in = call.args[0]->as<T>();
  Str* out = call.out_as<Str>();
  auto* at = call.arena.take_array<char>(call.rows * kMost);
  for (int64_t row = 0; row < call.rows; ++row) {
    auto rest = static_cast<uint64_t>(static_cast<int64_t>(in[row]));
    const int size = std::max(1, (64 - std::countl_zero(rest) + digit_bits - 1) / digit_bits);
    for (int place = size; place-- > 0; rest >>= digit_bits) {
      at[place] = "0123456789ABCDEF"[rest & ((1u << digit_bits) - 1)];
    }
    out[row] = {at, static_cast<uint32_t>(size), 0};
    at += size;
  }
}

template <int digit_bits>
void resolve_digits(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const bool fits = node.type.kind == Kind::String &&
                    visit_integer(node.arg_types[0].kind,
                                  [&node]<typename T>(T) { node.kernel = write_bits<digit_bits, T>; });
  if (!fits) no_kernel(node);
}

constexpr Function kFunctions[] = {
    {"bitwise_and", resolve_bitwise<Bitwise::And>},
    {"bitwise_or", resolve_bitwise<Bitwise::Or>},
    {"bitwise_xor", resolve_bitwise<Bitwise::Xor>},
    {"bitwise_not", resolve_not},
    {"shift_left", resolve_shift<true>},
    {"shift_right", resolve_shift<false>},
    {"bit_count", resolve_bit_count},
    {"gcd", resolve_common<false>},
    {"lcm", resolve_common<true>},
    {"factorial", resolve_factorial},
    {"hex_of_integer", resolve_digits<4>},
    {"bin_of_integer", resolve_digits<1>},
};

}  // namespace

std::span<const Function> integer_functions() {
  return kFunctions;
}

}  // namespace bireme
