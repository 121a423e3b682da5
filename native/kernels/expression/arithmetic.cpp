// add subtract multiply negate abs divide int_divide modulo.
#include <cmath>
#include <limits>

#include "kernels/decimal.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

void run_loop(Call& call, const ArithmeticLoop (&table)[kFormCount]) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  const ArithmeticLoop loop = table[static_cast<int>(form_of(a, b))];
  if (!loop(a.data, b.data, call.out, nullptr, call.rows, call.node.bound)) return;
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  loop(a.data, b.data, call.out, bad, call.rows, call.node.bound);
  call.reject<Overflow>(bad);
}

template <Arithmetic op>
void typed(Call& call) {
  run_loop(call, loops().arithmetic[static_cast<int>(op)][static_cast<int>(call.node.physical)]);
}

template <Arithmetic op>
void bounded64(Call& call) {
  run_loop(call, loops().bounded64[static_cast<int>(op)]);
}

template <Arithmetic op>
void exact64(Call& call) {
  run_loop(call, loops().exact64[static_cast<int>(op)]);
}

template <Arithmetic op>
void bounded128(Call& call) {
  run_loop(call, loops().bounded128[static_cast<int>(op)]);
}

void multiply_wide(Call& call) {
  run_loop(call, loops().multiply_wide);
}

// Whether the argument types prove that every result fits the result type.
bool proven(const Node& node, Arithmetic op) {
  const int a = node.arg_types[0].precision;
  const int b = node.arg_types[1].precision;
  return (op == Arithmetic::Multiply ? a + b : std::max(a, b) + 1) <= node.type.precision;
}

template <Arithmetic op>
void resolve_decimal(Node& node) {
  const Type& a = node.arg_types[0];
  const Type& b = node.arg_types[1];
  const bool scales_fit = op == Arithmetic::Multiply ? a.scale + b.scale == node.type.scale
                                                     : a.scale == b.scale && a.scale == node.type.scale;
  if (!scales_fit || a.kind != b.kind || !is_decimal(a.kind)) no_kernel(node);
  const bool fits = proven(node, op);
  node.can_raise |= !fits;
  if (a.kind == node.type.kind) {
    node.kernel = a.kind == Kind::Decimal128 ? bounded128<op> : fits ? exact64<op> : bounded64<op>;
  } else if (a.kind == Kind::Decimal64 && op == Arithmetic::Multiply && fits) {
    node.kernel = multiply_wide;
  } else {
    no_kernel(node);
  }
}

// The ends of the range of 32 bits stand for infinity elsewhere, and are not dates here.
constexpr int64_t kDateMax = std::numeric_limits<int32_t>::max() - 1;

template <Arithmetic op>
void move_date(Call& call) {
  int32_t* out = call.out_as<int32_t>();
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  unsigned any = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    const int64_t days = call.args[1]->at<int32_t>(row);
    const int64_t moved = call.args[0]->at<int32_t>(row) + (op == Arithmetic::Add ? days : -days);
    out[row] = static_cast<int32_t>(moved);
    bad[row] = moved < -kDateMax || moved > kDateMax;
    any |= bad[row];
  }
  if (any != 0) call.reject<Overflow>(bad);
}

template <Arithmetic op>
void resolve_arithmetic(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  // A date and a count of days.
  const bool moves_date = node.type.kind == Kind::Date32 && node.arg_types[0].kind == Kind::Date32 &&
                          node.arg_types[1].kind == Kind::Int32 && op != Arithmetic::Multiply;
  if (moves_date) {
    node.can_raise = true;
    node.kernel = move_date<op>;
    return;
  }
  if (is_decimal(node.type.kind)) return resolve_decimal<op>(node);
  const Kind kind = node.type.kind;
  const bool same = node.arg_types[0].kind == kind && node.arg_types[1].kind == kind;
  if (!same || !(is_integer(kind) || is_float(kind))) no_kernel(node);
  node.can_raise |= is_integer(kind);
  node.kernel = typed<op>;
}

template <typename T>
void negate(Call& call) {
  if constexpr (std::is_floating_point_v<T>) {
    map_unary<T, T>(call, [](T value) { return -value; });
  } else if constexpr (sizeof(T) == 16) {
    map_unary<T, T>(call, [](T value) { return static_cast<T>(-static_cast<uint128>(value)); });
  } else {
    map_checked<Overflow, T, T>(call,
                                [](T value, T& out) { return __builtin_sub_overflow(T{0}, value, &out); });
  }
}

template <typename T>
void absolute(Call& call) {
  if constexpr (std::is_floating_point_v<T>) {
    map_unary<T, T>(call, [](T value) { return std::abs(value); });
  } else if constexpr (sizeof(T) == 16) {
    map_unary<T, T>(call,
                    [](T value) { return value < 0 ? static_cast<T>(-static_cast<uint128>(value)) : value; });
  } else if constexpr (std::is_signed_v<T>) {
    map_checked<Overflow, T, T>(call, [](T value, T& out) {
      if (value < 0) return __builtin_sub_overflow(T{0}, value, &out);
      out = value;
      return false;
    });
  } else {
    map_unary<T, T>(call, [](T value) { return value; });
  }
}

// Kernels of one numeric argument whose type is that of the result.
template <template <typename> typename Kernels>
void resolve_same(Node& node) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  const bool numeric = is_integer(type.kind) || is_float(type.kind) || is_decimal(type.kind);
  if (!numeric || type.kind != node.type.kind || type.scale != node.type.scale) no_kernel(node);
  node.can_raise |= is_integer(type.kind);
  visit_number(node.physical, [&node]<typename T>(T) { node.kernel = Kernels<T>::run; });
}

template <typename T>
struct Negate {
  static void run(Call& call) { negate<T>(call); }
};

template <typename T>
struct Absolute {
  static void run(Call& call) { absolute<T>(call); }
};

void resolve_negate(Node& node, std::span<const Node* const>) {
  resolve_same<Negate>(node);
}
void resolve_abs(Node& node, std::span<const Node* const>) {
  resolve_same<Absolute>(node);
}

template <typename T>
void divide_floats(Call& call) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  T* out = call.out_as<T>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = a.at<T>(row) / b.at<T>(row);
}

void resolve_divide(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  const Kind kind = node.type.kind;
  if (!is_float(kind) || node.arg_types[0].kind != kind || node.arg_types[1].kind != kind) no_kernel(node);
  node.kernel = kind == Kind::Float64 ? divide_floats<double> : divide_floats<float>;
}

struct Quotient {
  // The one quotient that overflows is that of the smallest value by -1.
  template <typename T>
  static bool run(T a, T b, T& out) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return __builtin_sub_overflow(T{0}, a, &out);
    }
    out = static_cast<T>(a / b);
    return false;
  }
};

struct Remainder {
  template <typename T>
  static bool run(T a, T b, T& out) {
    if constexpr (std::is_signed_v<T> || sizeof(T) == 16) {
      if (b == -1) {
        out = 0;
        return false;
      }
    }
    out = static_cast<T>(a % b);
    return false;
  }
};

template <typename T, typename Op>
void divide_integers(Call& call) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  T* out = call.out_as<T>();
  auto* zero = call.arena.take_array<uint8_t>(call.rows);
  auto* over = call.arena.take_array<uint8_t>(call.rows);
  unsigned any_zero = 0;
  unsigned any_over = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    const T divisor = b.at<T>(row);
    zero[row] = divisor == 0;
    over[row] = Op::run(a.at<T>(row), divisor == 0 ? T{1} : divisor, out[row]);
    any_zero |= zero[row];
    any_over |= over[row];
  }
  if (any_zero != 0) call.reject<DomainFault>(zero);
  if (any_over != 0) call.reject<Overflow>(over);
}

template <typename T>
void remainder_floats(Call& call) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  T* out = call.out_as<T>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = std::fmod(a.at<T>(row), b.at<T>(row));
}

template <typename Op>
void resolve_division(Node& node) {
  const bool fits = [&node] {
    for (const Type& type : node.arg_types) {
      if (type.kind != node.type.kind || type.scale != node.type.scale) return false;
    }
    return true;
  }();
  if (!fits) no_kernel(node);
  node.can_raise = true;
  visit_number(node.physical, [&node]<typename T>(T) {
    if constexpr (!std::is_floating_point_v<T>) node.kernel = divide_integers<T, Op>;
  });
}

void resolve_int_divide(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  if (!is_integer(node.type.kind)) no_kernel(node);
  resolve_division<Quotient>(node);
}

void resolve_modulo(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  if (is_float(node.type.kind)) {
    if (node.arg_types[0].kind != node.type.kind || node.arg_types[1].kind != node.type.kind) no_kernel(node);
    node.kernel = node.type.kind == Kind::Float64 ? remainder_floats<double> : remainder_floats<float>;
    return;
  }
  if (!is_integer(node.type.kind) && !is_decimal(node.type.kind)) no_kernel(node);
  resolve_division<Remainder>(node);
}

constexpr Function kFunctions[] = {
    {"add", resolve_arithmetic<Arithmetic::Add>},
    {"subtract", resolve_arithmetic<Arithmetic::Subtract>},
    {"multiply", resolve_arithmetic<Arithmetic::Multiply>},
    {"negate", resolve_negate},
    {"abs", resolve_abs},
    {"divide", resolve_divide},
    {"int_divide", resolve_int_divide},
    {"modulo", resolve_modulo},
};

}  // namespace

std::span<const Function> arithmetic_functions() {
  return kFunctions;
}

}  // namespace bireme
