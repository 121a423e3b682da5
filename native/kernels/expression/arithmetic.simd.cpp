// Addition, subtraction and multiplication of fixed-width vectors.
#include "kernels/expression/loops.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace bireme::BIREME_ISA {

namespace {

// Checked integer arithmetic. Narrow types compute in int64, where nothing overflows, and check once: that
// loop vectorises.
template <typename T>
constexpr bool kNarrow = sizeof(T) <= 4;

template <typename T>
constexpr bool fits(int64_t wide) {
  return wide == static_cast<int64_t>(static_cast<T>(wide));
}

struct Add {
  template <typename T>
  static bool checked(T a, T b, T& out) {
    if constexpr (kNarrow<T>) {
      const int64_t wide = static_cast<int64_t>(a) + static_cast<int64_t>(b);
      out = static_cast<T>(wide);
      return !fits<T>(wide);
    } else {
      return __builtin_add_overflow(a, b, &out);
    }
  }
  template <typename T>
  static T plain(T a, T b) {
    return a + b;
  }
};

struct Subtract {
  template <typename T>
  static bool checked(T a, T b, T& out) {
    if constexpr (kNarrow<T>) {
      const int64_t wide = static_cast<int64_t>(a) - static_cast<int64_t>(b);
      out = static_cast<T>(wide);
      return !fits<T>(wide);
    } else {
      return __builtin_sub_overflow(a, b, &out);
    }
  }
  template <typename T>
  static T plain(T a, T b) {
    return a - b;
  }
};

struct Multiply {
  template <typename T>
  static bool checked(T a, T b, T& out) {
    if constexpr (sizeof(T) < 4) {
      const int64_t wide = static_cast<int64_t>(a) * static_cast<int64_t>(b);
      out = static_cast<T>(wide);
      return !fits<T>(wide);
    } else {
      return __builtin_mul_overflow(a, b, &out);
    }
  }
  template <typename T>
  static T plain(T a, T b) {
    return a * b;
  }
};

// The ways to compute one row; each returns whether the result is bad.
template <typename Op>
struct Checked {
  template <typename In, typename Out>
  static bool run(In a, In b, Out& out, Out) {
    return Op::checked(a, b, out);
  }
};

template <typename Op>
struct Plain {
  template <typename In, typename Out>
  static bool run(In a, In b, Out& out, Out) {
    out = Op::plain(a, b);
    return false;
  }
};

// Wrapping, where types prove that valid rows do not wrap.
template <typename Op>
struct Exact {
  static bool run(int64_t a, int64_t b, int64_t& out, int64_t) {
    out = static_cast<int64_t>(Op::plain(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    return false;
  }
};

template <typename Op>
struct Bounded {
  template <typename T>
  static bool run(T a, T b, T& out, T bound) {
    const bool wrapped = Op::checked(a, b, out);
    return wrapped | (out > bound) | (out < -bound);
  }
};

struct Wide {
  static bool run(int64_t a, int64_t b, int128& out, int128) {
    out = static_cast<int128>(a) * b;
    return false;
  }
};

template <typename In, typename Out, typename Row, Form form>
bool apply(const void* left, const void* right, void* result, uint8_t* bad, int64_t rows, int128 limit) {
  const In* __restrict a = static_cast<const In*>(left);
  const In* __restrict b = static_cast<const In*>(right);
  Out* __restrict out = static_cast<Out*>(result);
  const Out bound = static_cast<Out>(limit);
  const In a_constant = form == Form::ConstantVector ? a[0] : In{};
  const In b_constant = form == Form::VectorConstant ? b[0] : In{};
  const auto one = [&](int64_t row) -> bool {
    const In x = form == Form::ConstantVector ? a_constant : a[row];
    const In y = form == Form::VectorConstant ? b_constant : b[row];
    Out value;
    const bool wrong = Row::run(x, y, value, bound);
    out[row] = value;
    return wrong;
  };
  unsigned any = 0;
  if (bad == nullptr) {
    for (int64_t row = 0; row < rows; ++row) any |= one(row);
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      const bool wrong = one(row);
      bad[row] = wrong;
      any |= wrong;
    }
  }
  return any != 0;
}

// Products of decimals. Most columns hold values far below what their types allow, so the operands'
// magnitudes are looked at first: where both fit 31 bits and the product cannot reach the bound, one
// instruction multiplies four rows.
struct Magnitude {
  static int bits(const int64_t* values, int64_t rows) {
    uint64_t any = 0;
    for (int64_t row = 0; row < rows; ++row) any |= static_cast<uint64_t>(values[row] ^ (values[row] >> 63));
    return any == 0 ? 0 : 64 - __builtin_clzll(any);
  }
};

template <Form form>
void multiply_short(const int64_t* __restrict a, const int64_t* __restrict b, int64_t* __restrict out,
                    int64_t rows) {
  int64_t row = 0;
#ifdef __AVX2__
  const __m256i a_constant = _mm256_set1_epi64x(a[0]);
  const __m256i b_constant = _mm256_set1_epi64x(b[0]);
  for (; row + 4 <= rows; row += 4) {
    const __m256i x = form == Form::ConstantVector
                          ? a_constant
                          : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + row));
    const __m256i y = form == Form::VectorConstant
                          ? b_constant
                          : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + row));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + row), _mm256_mul_epi32(x, y));
  }
#endif
  for (; row < rows; ++row) {
    out[row] = a[form == Form::ConstantVector ? 0 : row] * b[form == Form::VectorConstant ? 0 : row];
  }
}

template <Form form>
bool multiply_decimals(const void* left, const void* right, void* result, uint8_t* bad, int64_t rows,
                       int128 limit) {
  const int64_t* a = static_cast<const int64_t*>(left);
  const int64_t* b = static_cast<const int64_t*>(right);
  const int a_bits = Magnitude::bits(a, form == Form::ConstantVector ? 1 : rows);
  const int b_bits = Magnitude::bits(b, form == Form::VectorConstant ? 1 : rows);
  const bool below_bound =
      a_bits + b_bits < 63 && (uint64_t{1} << (a_bits + b_bits)) <= static_cast<uint64_t>(limit);
  if (a_bits > 31 || b_bits > 31 || !below_bound) {
    return apply<int64_t, int64_t, Bounded<Multiply>, form>(left, right, result, bad, rows, limit);
  }
  multiply_short<form>(a, b, static_cast<int64_t*>(result), rows);
  if (bad != nullptr) __builtin_memset(bad, 0, static_cast<uint64_t>(rows));
  return false;
}

template <typename In, typename Out, typename Row>
void fill_forms(ArithmeticLoop (&table)[kFormCount]) {
  table[static_cast<int>(Form::VectorVector)] = apply<In, Out, Row, Form::VectorVector>;
  table[static_cast<int>(Form::VectorConstant)] = apply<In, Out, Row, Form::VectorConstant>;
  table[static_cast<int>(Form::ConstantVector)] = apply<In, Out, Row, Form::ConstantVector>;
}

template <typename Op>
void fill_op(Loops& loops, Arithmetic which) {
  const int op = static_cast<int>(which);
  auto& by_physical = loops.arithmetic[op];
  const auto set = [&by_physical]<typename T>(Physical physical, T) {
    fill_forms<T, T, Checked<Op>>(by_physical[static_cast<int>(physical)]);
  };
  set(Physical::I8, int8_t{});
  set(Physical::I16, int16_t{});
  set(Physical::I32, int32_t{});
  set(Physical::I64, int64_t{});
  set(Physical::U8, uint8_t{});
  set(Physical::U16, uint16_t{});
  set(Physical::U32, uint32_t{});
  set(Physical::U64, uint64_t{});
  fill_forms<float, float, Plain<Op>>(by_physical[static_cast<int>(Physical::F32)]);
  fill_forms<double, double, Plain<Op>>(by_physical[static_cast<int>(Physical::F64)]);
  fill_forms<int64_t, int64_t, Bounded<Op>>(loops.bounded64[op]);
  fill_forms<int64_t, int64_t, Exact<Op>>(loops.exact64[op]);
  fill_forms<int128, int128, Bounded<Op>>(loops.bounded128[op]);
}

}  // namespace

void fill_arithmetic(Loops& loops) {
  fill_op<Add>(loops, Arithmetic::Add);
  fill_op<Subtract>(loops, Arithmetic::Subtract);
  fill_op<Multiply>(loops, Arithmetic::Multiply);
  fill_forms<int64_t, int128, Wide>(loops.multiply_wide);
  auto& products = loops.bounded64[static_cast<int>(Arithmetic::Multiply)];
  products[static_cast<int>(Form::VectorVector)] = multiply_decimals<Form::VectorVector>;
  products[static_cast<int>(Form::VectorConstant)] = multiply_decimals<Form::VectorConstant>;
  products[static_cast<int>(Form::ConstantVector)] = multiply_decimals<Form::ConstantVector>;
}

}  // namespace bireme::BIREME_ISA
