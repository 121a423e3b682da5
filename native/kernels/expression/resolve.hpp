// What resolvers of several families share: picking a loop by layout, and calling it in its form.
#pragma once

#include <type_traits>

#include "arrow/errors.hpp"
#include "kernels/expression/loops.hpp"
#include "kernels/expression/node.hpp"

namespace bireme {

inline Form form_of(const Vector& a, const Vector& b) {
  if (a.constant == b.constant) return Form::VectorVector;
  return a.constant ? Form::ConstantVector : Form::VectorConstant;
}

inline bool is_integer(Kind kind) {
  return kind >= Kind::Int8 && kind <= Kind::UInt64;
}
inline bool is_float(Kind kind) {
  return kind == Kind::Float32 || kind == Kind::Float64;
}
inline bool is_decimal(Kind kind) {
  return kind == Kind::Decimal64 || kind == Kind::Decimal128;
}

// Calls `visit` with a value of the C++ type of a numeric layout; returns false for others.
template <typename Visit>
bool visit_number(Physical physical, Visit visit) {
  switch (physical) {
    case Physical::I8:
      visit(int8_t{});
      return true;
    case Physical::I16:
      visit(int16_t{});
      return true;
    case Physical::I32:
      visit(int32_t{});
      return true;
    case Physical::I64:
      visit(int64_t{});
      return true;
    case Physical::U8:
      visit(uint8_t{});
      return true;
    case Physical::U16:
      visit(uint16_t{});
      return true;
    case Physical::U32:
      visit(uint32_t{});
      return true;
    case Physical::U64:
      visit(uint64_t{});
      return true;
    case Physical::F32:
      visit(float{});
      return true;
    case Physical::F64:
      visit(double{});
      return true;
    case Physical::I128:
      visit(int128{});
      return true;
    default:
      return false;
  }
}

inline void expect_args(const Node& node, size_t count) {
  if (node.args.size() != count) no_kernel(node);
}

// out[row] = function(a[row]), for a one-argument kernel that cannot fail.
template <typename In, typename Out, typename Row>
void map_unary(Call& call, Row row_function) {
  const In* __restrict in = call.args[0]->as<In>();
  Out* __restrict out = call.out_as<Out>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = row_function(in[row]);
}

// As map_unary, for row(in, &out) that says whether the row is bad; bad rows are rejected with `Fault`.
template <typename Fault, typename In, typename Out, typename Row>
void map_checked(Call& call, Row row_function) {
  const In* in = call.args[0]->as<In>();
  Out* out = call.out_as<Out>();
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  unsigned any = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool wrong = row_function(in[row], out[row]);
    bad[row] = wrong;
    any |= wrong;
  }
  if (any != 0) call.reject<Fault>(bad);
}

// As map_checked, for row(index, &out) of any number of arguments, some of which may be constant.
template <typename Fault, typename Out, typename Row>
void map_rows(Call& call, Row row_function) {
  Out* out = call.out_as<Out>();
  auto* bad = call.arena.take_array<uint8_t>(call.rows);
  unsigned any = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool wrong = row_function(row, out[row]);
    bad[row] = wrong;
    any |= wrong;
  }
  if (any != 0) call.reject<Fault>(bad);
}

}  // namespace bireme
