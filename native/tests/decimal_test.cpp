// Decimal arithmetic at its edges: bounds, rounding half away from zero, and the loops against 128-bit
// arithmetic.
#include "kernels/decimal.hpp"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/expression/loops.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

void check_rounding() {
  CHECK(divide_rounded<int64_t>(25, 10) == 3);
  CHECK(divide_rounded<int64_t>(-25, 10) == -3);
  CHECK(divide_rounded<int64_t>(24, 10) == 2);
  CHECK(divide_rounded<int64_t>(-24, 10) == -2);
  CHECK(divide_rounded<int64_t>(std::numeric_limits<int64_t>::max(), 10) == 922337203685477581);
  CHECK(divide_rounded<int64_t>(std::numeric_limits<int64_t>::min(), 10) == -922337203685477581);
  CHECK(divide_rounded<int128>(power_of_ten(38) - 1, power_of_ten(38)) == 1);
  CHECK(divide_rounded<int128>(5, power_of_ten(38)) == 0);
}

void check_formats() {
  CHECK(format_decimal(0, 0) == "0");
  CHECK(format_decimal(5, 2) == "0.05");
  CHECK(format_decimal(-5, 2) == "-0.05");
  CHECK(format_decimal(1250, 2) == "12.50");
  CHECK(format_decimal(power_of_ten(38) - 1, 38) == "0.99999999999999999999999999999999999999");
  CHECK(format_decimal(-(power_of_ten(38) - 1), 0) == "-99999999999999999999999999999999999999");
}

int128 exact(Arithmetic op, int64_t a, int64_t b) {
  switch (op) {
    case Arithmetic::Add:
      return static_cast<int128>(a) + b;
    case Arithmetic::Subtract:
      return static_cast<int128>(a) - b;
    case Arithmetic::Multiply:
      return static_cast<int128>(a) * b;
  }
  return 0;
}

// Operands of every magnitude, and of the corners.
std::vector<int64_t> operands(std::mt19937_64& random, int64_t count, int bits_max) {
  std::vector<int64_t> values;
  for (int64_t index = 0; index < count; ++index) {
    const auto bits = static_cast<int>(random() % static_cast<uint64_t>(bits_max + 1));
    auto value = static_cast<int64_t>(bits == 0 ? 0 : random() >> (64 - bits));
    if (random() % 2 == 0) value = static_cast<int64_t>(-static_cast<uint64_t>(value));
    values.push_back(value);
  }
  if (bits_max == 64) {
    values[0] = std::numeric_limits<int64_t>::min();
    values[1] = std::numeric_limits<int64_t>::max();
    values[2] = -1;
  }
  return values;
}

void check_bounded(const Loops& table, Arithmetic op, Form form, int bits_max, uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int64_t kRows = 101;
  const auto bound = static_cast<int64_t>(power_of_ten(18) - 1);
  std::vector<int64_t> a = operands(random, kRows, bits_max);
  std::vector<int64_t> b = operands(random, kRows, bits_max);
  std::vector<int64_t> out(kRows);
  std::vector<uint8_t> bad(kRows, 2);
  const ArithmeticLoop loop = table.bounded64[static_cast<int>(op)][static_cast<int>(form)];
  const bool any = loop(a.data(), b.data(), out.data(), bad.data(), kRows, bound);
  std::vector<int64_t> again(kRows);
  CHECK(loop(a.data(), b.data(), again.data(), nullptr, kRows, bound) == any);
  bool expected_any = false;
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t x = a[form == Form::ConstantVector ? 0 : row];
    const int64_t y = b[form == Form::VectorConstant ? 0 : row];
    const int128 wanted = exact(op, x, y);
    const bool wrong = wanted > bound || wanted < -bound;
    expected_any |= wrong;
    CHECK((bad[row] != 0) == wrong);
    if (!wrong) CHECK(out[row] == wanted && again[row] == wanted);
  }
  CHECK(any == expected_any);
}

void check_wide(const Loops& table) {
  const int64_t a[] = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), -3, 0};
  int128 out[4];
  table.multiply_wide[static_cast<int>(Form::VectorVector)](a, a, out, nullptr, 4, 0);
  for (int row = 0; row < 4; ++row) CHECK(out[row] == static_cast<int128>(a[row]) * a[row]);
}

void check_128(const Loops& table) {
  const int128 bound = power_of_ten(38) - 1;
  const int128 a[] = {bound, bound, -bound, power_of_ten(19), 2};
  const int128 b[] = {1, 0, -1, power_of_ten(19), 3};
  int128 out[5];
  uint8_t bad[5];
  CHECK(table.bounded128[static_cast<int>(Arithmetic::Add)][0](a, b, out, bad, 5, bound));
  CHECK(bad[0] == 1 && bad[1] == 0 && bad[2] == 1 && bad[3] == 0 && bad[4] == 0);
  CHECK(table.bounded128[static_cast<int>(Arithmetic::Multiply)][0](a, b, out, bad, 5, bound));
  CHECK(bad[0] == 0 && bad[1] == 0 && bad[2] == 0 && bad[3] == 1 && bad[4] == 0 && out[4] == 6);
}

void check_table(const Loops& table) {
  for (Arithmetic op : {Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply}) {
    for (Form form : {Form::VectorVector, Form::VectorConstant, Form::ConstantVector}) {
      for (int bits_max : {8, 29, 31, 32, 45, 62, 64}) {
        for (uint64_t seed = 1; seed <= 5; ++seed) check_bounded(table, op, form, bits_max, seed);
      }
    }
  }
  check_wide(table);
  check_128(table);
}

}  // namespace

int main() {
  check_rounding();
  check_formats();
  check_table(loops_of(Isa::Baseline));
  check_table(loops_of(isa()));
  return test::finish();
}
