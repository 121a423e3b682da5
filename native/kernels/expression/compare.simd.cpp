// Comparisons of fixed-width vectors.
#include "kernels/expression/loops.hpp"

namespace bireme::BIREME_ISA {

namespace {

template <typename T>
constexpr bool kFloat = static_cast<T>(0.5) != 0;

// Written with & and | so that loops have no branches.
struct Eq {
  template <typename T>
  static bool run(T a, T b) {
    if constexpr (kFloat<T>) return (a == b) | ((a != a) & (b != b));
    return a == b;
  }
};

struct Ne {
  template <typename T>
  static bool run(T a, T b) {
    return !Eq::run(a, b);
  }
};

struct Lt {
  template <typename T>
  static bool run(T a, T b) {
    if constexpr (kFloat<T>) return (a < b) | ((b != b) & (a == a));
    return a < b;
  }
};

struct Ge {
  template <typename T>
  static bool run(T a, T b) {
    return !Lt::run(a, b);
  }
};

struct Gt {
  template <typename T>
  static bool run(T a, T b) {
    return Lt::run(b, a);
  }
};

struct Le {
  template <typename T>
  static bool run(T a, T b) {
    return !Lt::run(b, a);
  }
};

template <typename T, typename Op, bool kConstant>
void compare(const void* left, const void* right, uint8_t* __restrict out, int64_t rows) {
  const T* __restrict a = static_cast<const T*>(left);
  const T* __restrict b = static_cast<const T*>(right);
  if constexpr (kConstant) {
    const T constant = *b;
    for (int64_t row = 0; row < rows; ++row) out[row] = Op::run(a[row], constant);
  } else {
    for (int64_t row = 0; row < rows; ++row) out[row] = Op::run(a[row], b[row]);
  }
}

template <typename Op>
void fill_op(CompareLoop (&table)[kPhysicalCount][2]) {
  const auto set = [&table]<typename T>(Physical physical, T) {
    table[static_cast<int>(physical)][0] = compare<T, Op, false>;
    table[static_cast<int>(physical)][1] = compare<T, Op, true>;
  };
  set(Physical::B8, uint8_t{});
  set(Physical::I8, int8_t{});
  set(Physical::I16, int16_t{});
  set(Physical::I32, int32_t{});
  set(Physical::I64, int64_t{});
  set(Physical::U8, uint8_t{});
  set(Physical::U16, uint16_t{});
  set(Physical::U32, uint32_t{});
  set(Physical::U64, uint64_t{});
  set(Physical::F32, float{});
  set(Physical::F64, double{});
  set(Physical::I128, int128{});
}

}  // namespace

void fill_compare(Loops& loops) {
  fill_op<Eq>(loops.compare[static_cast<int>(Comparison::Eq)]);
  fill_op<Ne>(loops.compare[static_cast<int>(Comparison::Ne)]);
  fill_op<Lt>(loops.compare[static_cast<int>(Comparison::Lt)]);
  fill_op<Le>(loops.compare[static_cast<int>(Comparison::Le)]);
  fill_op<Gt>(loops.compare[static_cast<int>(Comparison::Gt)]);
  fill_op<Ge>(loops.compare[static_cast<int>(Comparison::Ge)]);
}

}  // namespace bireme::BIREME_ISA
