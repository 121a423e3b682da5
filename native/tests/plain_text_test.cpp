// Numbers and points in time in texts: those written read back, and drawn bytes are read within their bounds.
#include "kernels/expression/plain_text.hpp"

#include <array>
#include <charconv>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/decimal.hpp"
#include "tests/check.hpp"

using namespace bireme;

namespace {

void numbers_read_back() {
  std::mt19937_64 random(7);
  for (int round = 0; round < 100'000; ++round) {
    const auto count = static_cast<int64_t>(random()) >> (random() % 63);
    int128 value = 0;
    CHECK(read_scaled(format_decimal(count, 5), 5, INT64_MIN, INT64_MAX, value) == Reading::Good);
    CHECK(value == count);
    std::array<char, 40> text;
    const double number = static_cast<double>(count) / 1024;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
    double back = 0;
    CHECK(read_double({text.data(), static_cast<size_t>(end.ptr - text.data())}, back) == Reading::Good);
    CHECK(back == number);
  }
}

// Each text lies in a block of memory of just its size, so that a byte read behind it is found.
void drawn_bytes_are_read_within_their_bounds() {
  constexpr std::string_view kBytes = "0123456789+-.:/ T_eEnaifxZUC\t\x1f\x80\xc2\xa0";
  std::mt19937_64 random(11);
  int good = 0;
  for (int round = 0; round < 400'000; ++round) {
    std::vector<char> bytes(random() % 24);
    for (char& byte : bytes) byte = kBytes[random() % kBytes.size()];
    const std::string_view text(bytes.data(), bytes.size());
    int128 exact = 0;
    double number = 0;
    Moment moment;
    int64_t nanoseconds = 0;
    good += read_scaled(text, static_cast<int>(random() % 39), -1000, 1000, exact) == Reading::Good;
    good += read_double(text, number) == Reading::Good;
    good += read_moment(text, moment) == Reading::Good;
    good += read_time_of_day(text, nanoseconds) == Reading::Good;
  }
  CHECK(good > 1000);
}

}  // namespace

int main() {
  numbers_read_back();
  drawn_bytes_are_read_within_their_bounds();
  return test::finish();
}
