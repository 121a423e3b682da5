// Rounding, signs, and the functions of doubles whose results are the same bits on every machine. Others
// (logarithms, trigonometry) depend on the C library, so they run in the reference backend.
#include <cmath>
#include <limits>

#include "kernels/decimal.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

// ---------------------------------------------------------------------------------------------- rounding

enum class Rounding { Round, Trunc, Floor, Ceil };

template <Rounding mode, typename T>
T divide(T value, T divisor) {
  if constexpr (mode == Rounding::Round) {
    return divide_rounded(value, divisor);
  } else {
    const T quotient = value / divisor;
    const T rest = value % divisor;
    if (mode == Rounding::Floor) return quotient - (rest < 0);
    if (mode == Rounding::Ceil) return quotient + (rest > 0);
    return quotient;
  }
}

// To numbers[0] digits (of which at most the scale count): divide by a power of ten, and multiply for
// negative digits.
template <Rounding mode, typename In, typename Out>
void round_exact(Call& call) {
  const int scale = call.node.arg_types[0].scale;
  const auto digits = static_cast<int>(std::min<int64_t>(call.node.numbers[0], scale));
  const int lost = scale - digits;
  const int128 bound_low =
      is_decimal(call.node.type.kind) ? -call.node.bound : int128{std::numeric_limits<Out>::min()};
  const int128 bound_high =
      is_decimal(call.node.type.kind) ? call.node.bound : int128{std::numeric_limits<Out>::max()};
  // Powers beyond 38 are larger than every value: all but the sign is lost.
  const int128 divisor = power_of_ten(std::min(lost, 38));
  const int128 factor = digits < 0 ? power_of_ten(std::min(-digits, 38)) : 1;
  const bool beyond = lost > 38;
  map_checked<Overflow, In, Out>(call, [=](In value, Out& out) {
    int128 count;
    if constexpr (sizeof(In) <= 4) {
      count = lost == 0 ? int128{value} : divide<mode, int128>(value, divisor);
    } else {
      count =
          lost == 0 ? static_cast<int128>(value) : divide<mode, int128>(static_cast<int128>(value), divisor);
    }
    if (beyond) count = 0;
    const bool wrapped = __builtin_mul_overflow(count, factor, &count);
    out = static_cast<Out>(count);
    return wrapped | (count < bound_low) | (count > bound_high);
  });
}

double half_away(double value) {
  const double whole = std::trunc(value);
  return std::abs(value - whole) >= 0.5 ? whole + std::copysign(1.0, value) : whole;
}

template <Rounding mode>
double round_whole(double value) {
  switch (mode) {
    case Rounding::Round:
      return half_away(value);
    case Rounding::Trunc:
      return std::trunc(value);
    case Rounding::Floor:
      return std::floor(value);
    case Rounding::Ceil:
      return std::ceil(value);
  }
}

// A product or quotient that ends in .5 may have been rounded to it: `error` is what is exact, less `scaled`.
double half_away(double scaled, double error) {
  const double whole = std::trunc(scaled);
  const bool is_tie = std::abs(scaled - whole) == 0.5;
  return is_tie && error != 0 && std::signbit(error) != std::signbit(scaled) ? whole : half_away(scaled);
}

template <Rounding mode>
double round_double(double value, int64_t digits) {
  if (digits == 0) return round_whole<mode>(value);
  const int64_t places = digits < 0 ? -digits : digits;
  const double power =
      places <= 308 ? std::pow(10.0, static_cast<double>(places)) : std::numeric_limits<double>::infinity();
  double scaled = 0;
  if (digits > 0) {
    const double product = value * power;
    scaled = mode == Rounding::Round ? half_away(product, std::fma(value, power, -product)) / power
                                     : round_whole<mode>(product) / power;
  } else if (!std::isinf(power)) {
    const double quotient = value / power;
    scaled = mode == Rounding::Round ? half_away(quotient, std::fma(-quotient, power, value)) * power
                                     : round_whole<mode>(quotient) * power;
  }
  return std::isfinite(scaled) ? scaled : value;
}

template <Rounding mode, typename T>
void round_floats(Call& call) {
  const int64_t digits = call.node.numbers[0];
  map_unary<T, T>(call, [digits](T value) {
    return static_cast<T>(round_double<mode>(static_cast<double>(value), digits));
  });
}

template <Rounding mode>
void resolve_rounding(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Kind from = node.arg_types[0].kind;
  const Kind to = node.type.kind;
  if (is_float(from) && from == to) {
    node.kernel = to == Kind::Float64 ? round_floats<mode, double> : round_floats<mode, float>;
    return;
  }
  const bool fits = (is_integer(from) && from == to) || (is_decimal(from) && is_decimal(to));
  if (!fits) no_kernel(node);
  node.can_raise = true;
  visit_number(physical_of(from), [&]<typename In>(In) {
    if constexpr (sizeof(In) >= 8 && std::is_signed_v<In> && !std::is_floating_point_v<In>) {
      node.kernel = to == Kind::Decimal128 ? round_exact<mode, In, int128> : round_exact<mode, In, int64_t>;
    } else if constexpr (!std::is_floating_point_v<In>) {
      if constexpr (sizeof(In) == 16) {
        node.kernel = to == Kind::Decimal128 ? round_exact<mode, In, int128> : round_exact<mode, In, int64_t>;
      } else {
        node.kernel = round_exact<mode, In, In>;
      }
    }
  });
}

// ------------------------------------------------------------------------------------------------- signs

template <typename T>
void sign_kernel(Call& call) {
  map_unary<T, int8_t>(call, [](T value) { return static_cast<int8_t>((value > 0) - (value < 0)); });
}

void resolve_sign(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Kind kind = node.arg_types[0].kind;
  if (node.type.kind != Kind::Int8 || !(is_integer(kind) || is_float(kind) || is_decimal(kind)))
    no_kernel(node);
  visit_number(physical_of(kind), [&node]<typename T>(T) { node.kernel = sign_kernel<T>; });
}

// ----------------------------------------------------------------------------------------------- doubles

template <double (*function)(double)>
void double_kernel(Call& call) {
  map_unary<double, double>(call, [](double value) { return function(value); });
}

double square_root(double value) {
  return std::sqrt(value);
}

template <double (*function)(double)>
void resolve_double(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (node.arg_types[0].kind != Kind::Float64 || node.type.kind != Kind::Float64) no_kernel(node);
  node.kernel = double_kernel<function>;
}

template <bool (*test)(double)>
void test_kernel(Call& call) {
  map_unary<double, uint8_t>(call, [](double value) { return static_cast<uint8_t>(test(value)); });
}

bool nan_test(double value) {
  return std::isnan(value);
}
bool infinite_test(double value) {
  return std::isinf(value);
}
bool finite_test(double value) {
  return std::isfinite(value);
}

template <bool (*test)(double)>
void resolve_test(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (node.arg_types[0].kind != Kind::Float64 || node.type.kind != Kind::Bool) no_kernel(node);
  node.kernel = test_kernel<test>;
}

constexpr Function kFunctions[] = {
    {"round", resolve_rounding<Rounding::Round>},
    {"trunc", resolve_rounding<Rounding::Trunc>},
    {"floor", resolve_rounding<Rounding::Floor>},
    {"ceil", resolve_rounding<Rounding::Ceil>},
    {"sign", resolve_sign},
    {"sqrt", resolve_double<square_root>},
    {"is_nan", resolve_test<nan_test>},
    {"is_inf", resolve_test<infinite_test>},
    {"is_finite", resolve_test<finite_test>},
};

}  // namespace

std::span<const Function> math_functions() {
  return kFunctions;
}

}  // namespace bireme
