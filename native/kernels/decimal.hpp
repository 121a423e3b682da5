// Exact decimal arithmetic on unscaled integers.
//
// Rule: rounding is half away from zero, as SQL's casts do it; nothing wraps.
#pragma once

#include <cstdint>
#include <string>

#include "arrow/type.hpp"

namespace bireme {

struct PowersOfTen {
  int128 value[39];
  constexpr PowersOfTen() : value() {
    value[0] = 1;
    for (int power = 1; power < 39; ++power) value[power] = value[power - 1] * 10;
  }
};
inline constexpr PowersOfTen kPowersOfTen;

constexpr int128 power_of_ten(int digits) {
  return kPowersOfTen.value[digits];
}

// value / divisor, rounded half away from zero; divisor > 0.
template <typename T>
constexpr T divide_rounded(T value, T divisor) {
  const T quotient = value / divisor;
  const T remainder = value % divisor;
  const T magnitude = remainder < 0 ? -remainder : remainder;
  // Written without doubling, which could overflow.
  const bool up = magnitude >= divisor - magnitude;
  return up ? (value < 0 ? quotient - 1 : quotient + 1) : quotient;
}

// "-12.30": the unscaled `value` with `scale` digits behind the point.
std::string format_decimal(int128 value, int scale);

}  // namespace bireme
