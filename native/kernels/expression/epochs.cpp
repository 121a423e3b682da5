// Points in time as counts since a fixed day, and back.
#include <cmath>

#include "kernels/expression/moments.hpp"
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

using namespace moments;

constexpr double kMicrosecondsASecond = 1e6;

bool is_microseconds(const Type& type) {
  return (type.kind == Kind::Timestamp || type.kind == Kind::Time64) && type.unit == 'u';
}

// ---------------------------------------------------------------------------------------- whole numbers

template <int64_t divisor>
void whole_counts(Call& call) {
  map_unary<int64_t, int64_t>(call, [](int64_t moment) { return toward_zero(moment, divisor); });
}

template <int64_t divisor>
void resolve_count(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (!is_microseconds(node.arg_types[0]) || node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = whole_counts<divisor>;
}

void nanoseconds(Call& call) {
  map_checked<NeedsReference, int64_t, int64_t>(call, [](int64_t moment, int64_t& out) {
    return static_cast<bool>(__builtin_mul_overflow(moment, int64_t{1'000}, &out));
  });
}

void resolve_nanoseconds(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  if (type.kind != Kind::Timestamp || node.type.kind != Kind::Int64) no_kernel(node);
  if (type.unit == 'u') {
    node.kernel = nanoseconds;
  } else if (type.unit == 'n') {
    node.kernel = whole_counts<1>;
  } else {
    no_kernel(node);
  }
}

// ---------------------------------------------------------------------------------------------- doubles

double seconds_of_day(int32_t days) {
  return days * 86'400.0;
}
double seconds_of_moment(int64_t moment) {
  return static_cast<double>(moment) / kMicrosecondsASecond;
}

constexpr double kJulianDay = 2'440'588;

double julian_of_day(int32_t days) {
  return days + kJulianDay;
}
double julian_of_moment(int64_t moment) {
  return static_cast<double>(moment) / static_cast<double>(kMicrosecondsADay) + kJulianDay;
}

template <typename In, double (*count)(In)>
void double_counts(Call& call) {
  map_unary<In, double>(call, [](In value) { return count(value); });
}

template <double (*of_day)(int32_t), double (*of_moment)(int64_t)>
void resolve_double_count(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Type& type = node.arg_types[0];
  if (node.type.kind != Kind::Float64) no_kernel(node);
  if (type.kind == Kind::Date32) {
    node.kernel = double_counts<int32_t, of_day>;
  } else if (is_microseconds(type)) {
    node.kernel = double_counts<int64_t, of_moment>;
  } else {
    no_kernel(node);
  }
}

// --------------------------------------------------------------------------------------------- instants

void instants(Call& call) {
  constexpr double kSecondsMax = 1e12;
  map_checked<NeedsReference, double, int64_t>(call, [](double seconds, int64_t& out) {
    const bool wrong = !(std::abs(seconds) <= kSecondsMax);
    out = wrong ? 0 : static_cast<int64_t>(std::nearbyint(seconds * kMicrosecondsASecond));
    return wrong;
  });
}

void resolve_instant(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  if (node.arg_types[0].kind != Kind::Float64 || !is_microseconds(node.type)) no_kernel(node);
  node.kernel = instants;
  node.can_raise = true;
}

constexpr Function kFunctions[] = {
    {"epoch", resolve_double_count<seconds_of_day, seconds_of_moment>},
    {"epoch_ms", resolve_count<1'000>},
    {"epoch_us", resolve_count<1>},
    {"epoch_ns", resolve_nanoseconds},
    {"julian", resolve_double_count<julian_of_day, julian_of_moment>},
    {"to_timestamp", resolve_instant},
};

}  // namespace

std::span<const Function> epoch_functions() {
  return kFunctions;
}

}  // namespace bireme
