// Every loop of every instruction set against one plain statement of what it does.
#include "kernels/expression/loops.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/check.hpp"

using namespace bireme;

namespace {

constexpr int64_t kRows = 203;

template <typename T>
std::vector<T> draw(std::mt19937_64& random) {
  std::vector<T> values(kRows);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      const T corners[] = {0,
                           static_cast<T>(-0.0),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           1,
                           -1};
      value = corners[random() % 7];
    } else {
      const T corners[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max()};
      value = random() % 2 == 0 ? corners[random() % 5] : static_cast<T>(random());
    }
  }
  return values;
}

template <typename T>
int order(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) - std::isnan(b);
  }
  return (a > b) - (a < b);
}

bool holds(Comparison comparison, int order) {
  switch (comparison) {
    case Comparison::Eq:
      return order == 0;
    case Comparison::Ne:
      return order != 0;
    case Comparison::Lt:
      return order < 0;
    case Comparison::Le:
      return order <= 0;
    case Comparison::Gt:
      return order > 0;
    case Comparison::Ge:
      return order >= 0;
  }
  return false;
}

template <typename T>
void check_compare(const Loops& table, Physical physical, std::mt19937_64& random) {
  const std::vector<T> a = draw<T>(random);
  const std::vector<T> b = draw<T>(random);
  for (int comparison = 0; comparison < kComparisonCount; ++comparison) {
    for (int constant = 0; constant < 2; ++constant) {
      uint8_t out[kRows];
      table.compare[comparison][static_cast<int>(physical)][constant](a.data(), b.data(), out, kRows);
      for (int64_t row = 0; row < kRows; ++row) {
        CHECK(out[row] == holds(static_cast<Comparison>(comparison), order(a[row], b[constant ? 0 : row])));
      }
    }
  }
}

template <typename T>
void check_arithmetic(const Loops& table, Physical physical, std::mt19937_64& random) {
  const std::vector<T> a = draw<T>(random);
  const std::vector<T> b = draw<T>(random);
  for (int op = 0; op < kArithmeticCount; ++op) {
    for (int form = 0; form < kFormCount; ++form) {
      T out[kRows];
      uint8_t bad[kRows];
      const bool any =
          table.arithmetic[op][static_cast<int>(physical)][form](a.data(), b.data(), out, bad, kRows, 0);
      bool expected = false;
      for (int64_t row = 0; row < kRows; ++row) {
        const T x = a[form == static_cast<int>(Form::ConstantVector) ? 0 : row];
        const T y = b[form == static_cast<int>(Form::VectorConstant) ? 0 : row];
        T wanted{};
        bool wrong = false;
        if constexpr (std::is_floating_point_v<T>) {
          wanted = op == 0 ? x + y : op == 1 ? x - y : x * y;
        } else {
          wrong = op == 0   ? __builtin_add_overflow(x, y, &wanted)
                  : op == 1 ? __builtin_sub_overflow(x, y, &wanted)
                            : __builtin_mul_overflow(x, y, &wanted);
        }
        expected |= wrong;
        CHECK((bad[row] != 0) == wrong);
        // NaNs differ in their bits from machine to machine; whether there is one does not.
        if (!wrong) CHECK(out[row] == wanted || (out[row] != out[row] && wanted != wanted));
      }
      CHECK(any == expected);
    }
  }
}

std::vector<uint8_t> draw_mask(std::mt19937_64& random, int percent) {
  std::vector<uint8_t> mask(kRows);
  for (uint8_t& byte : mask) byte = random() % 100 < static_cast<uint64_t>(percent);
  return mask;
}

void check_selection(const Loops& table, std::mt19937_64& random, int percent) {
  const std::vector<uint8_t> mask = draw_mask(random, percent);
  std::vector<uint32_t> wanted;
  wanted.reserve(kRows);  // memcmp takes no null pointers
  for (uint32_t row = 0; row < kRows; ++row) {
    if (mask[row]) wanted.push_back(1000 + row);
  }
  std::vector<uint32_t> out(kRows);
  const int64_t kept = table.select(mask.data(), kRows, 1000, out.data());
  CHECK(kept == static_cast<int64_t>(wanted.size()) && kept == table.count_bytes(mask.data(), kRows));
  CHECK(std::memcmp(out.data(), wanted.data(), wanted.size() * 4) == 0);
  std::vector<uint32_t> all(kRows);
  for (uint32_t row = 0; row < kRows; ++row) all[row] = 1000 + row;
  CHECK(table.refine(mask.data(), kRows, all.data()) == kept);
  CHECK(std::memcmp(all.data(), wanted.data(), wanted.size() * 4) == 0);
  std::vector<uint64_t> source(kRows + 1000);
  for (uint64_t& value : source) value = random();
  std::vector<uint64_t> gathered(kRows);
  table.gather[3](source.data(), wanted.data(), kept, gathered.data());
  for (int64_t index = 0; index < kept; ++index) CHECK(gathered[index] == source[wanted[index]]);
}

void check_bits(const Loops& table, std::mt19937_64& random) {
  std::vector<uint8_t> bits(40);
  for (uint8_t& byte : bits) byte = static_cast<uint8_t>(random());
  for (int64_t offset = 0; offset < 9; ++offset) {
    for (int64_t count : {0, 1, 7, 8, 9, 64, 203}) {
      std::vector<uint8_t> bytes(static_cast<size_t>(count) + 1, 9);
      table.unpack(bits.data(), offset, count, bytes.data());
      for (int64_t row = 0; row < count; ++row) {
        CHECK(bytes[row] == ((bits[(offset + row) / 8] >> ((offset + row) % 8)) & 1));
      }
      CHECK(bytes[count] == 9);
      std::vector<uint8_t> packed(static_cast<size_t>(count + 7) / 8 + 1, 0xaa);
      table.pack(bytes.data(), count, packed.data());
      for (int64_t row = 0; row < count; ++row) CHECK(((packed[row / 8] >> (row % 8)) & 1) == bytes[row]);
      CHECK(packed[(count + 7) / 8] == 0xaa);
    }
  }
}

void check_blend(const Loops& table, std::mt19937_64& random) {
  const std::vector<uint8_t> mask = draw_mask(random, 50);
  std::vector<uint64_t> a(kRows);
  std::vector<uint64_t> b(kRows);
  for (int64_t row = 0; row < kRows; ++row) a[row] = random(), b[row] = random();
  for (int steps = 0; steps < 4; ++steps) {
    std::vector<uint64_t> out(kRows);
    const int a_step = steps & 1;
    const int b_step = steps >> 1;
    table.blend[3](mask.data(), a.data(), a_step, b.data(), b_step, kRows, out.data());
    for (int64_t row = 0; row < kRows; ++row)
      CHECK(out[row] == (mask[row] ? a[row * a_step] : b[row * b_step]));
  }
}

void check_table(const Loops& table) {
  std::mt19937_64 random(7);
  const auto numbers = [&](Physical physical, auto value) {
    using T = decltype(value);
    check_compare<T>(table, physical, random);
    check_arithmetic<T>(table, physical, random);
  };
  numbers(Physical::I8, int8_t{});
  numbers(Physical::I16, int16_t{});
  numbers(Physical::I32, int32_t{});
  numbers(Physical::I64, int64_t{});
  numbers(Physical::U8, uint8_t{});
  numbers(Physical::U16, uint16_t{});
  numbers(Physical::U32, uint32_t{});
  numbers(Physical::U64, uint64_t{});
  numbers(Physical::F32, float{});
  numbers(Physical::F64, double{});
  for (int percent : {0, 2, 50, 97, 100}) check_selection(table, random, percent);
  check_bits(table, random);
  check_blend(table, random);
}

}  // namespace

int main() {
  check_table(loops_of(Isa::Baseline));
  check_table(loops_of(isa()));
  return test::finish();
}
