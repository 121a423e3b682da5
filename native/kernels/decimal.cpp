#include "kernels/decimal.hpp"

#include <algorithm>

namespace bireme {

std::string format_decimal(int128 value, int scale) {
  const bool negative = value < 0;
  uint128 rest = negative ? -static_cast<uint128>(value) : static_cast<uint128>(value);
  std::string reversed;
  for (int digit = 0; rest != 0 || digit <= scale; ++digit) {
    if (digit == scale && scale > 0) reversed.push_back('.');
    reversed.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  }
  if (negative) reversed.push_back('-');
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

}  // namespace bireme
