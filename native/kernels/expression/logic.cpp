// and or not, and the tests for NULL and truth. BOOL bytes are 0 or 1 also where NULL, so they combine
// without branches.
#include "kernels/expression/resolve.hpp"

namespace bireme {

namespace {

// The bytes and the validity bytes of a BOOL vector over all rows, whatever it was.
struct Truth {
  const uint8_t* value;
  const uint8_t* valid;  // null: all
};

Truth spread(const Vector& vector, int64_t rows, Arena& arena) {
  if (!vector.constant) return {vector.as<uint8_t>(), vector.valid};
  auto* value = arena.take_array<uint8_t>(rows);
  std::memset(value, vector.at<uint8_t>(0), static_cast<size_t>(rows));
  if (vector.is_valid(0)) return {value, nullptr};
  auto* valid = arena.take_array<uint8_t>(rows);
  std::memset(valid, 0, static_cast<size_t>(rows));
  return {value, valid};
}

// a AND b is known where both are, and where one is known to be FALSE; OR likewise with TRUE.
template <bool conjunction>
Truth combine(const Truth& a, const Truth& b, int64_t rows, Arena& arena) {
  auto* value = arena.take_array<uint8_t>(rows);
  if (a.valid == nullptr && b.valid == nullptr) {
    (conjunction ? loops().and_bytes : loops().or_bytes)(a.value, b.value, value, rows);
    return {value, nullptr};
  }
  auto* valid = arena.take_array<uint8_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t known_a = a.valid == nullptr ? 1 : a.valid[row];
    const uint8_t known_b = b.valid == nullptr ? 1 : b.valid[row];
    const uint8_t decides_a = known_a & (conjunction ? a.value[row] ^ 1 : a.value[row]);
    const uint8_t decides_b = known_b & (conjunction ? b.value[row] ^ 1 : b.value[row]);
    const uint8_t decided = decides_a | decides_b;
    valid[row] = (known_a & known_b) | decided;
    value[row] = conjunction ? decided ^ 1 : decided;
  }
  return {value, valid};
}

template <bool conjunction>
void connective(Call& call) {
  Truth result = spread(*call.args[0], call.rows, call.arena);
  for (size_t index = 1; index < call.args.size(); ++index) {
    result =
        combine<conjunction>(result, spread(*call.args[index], call.rows, call.arena), call.rows, call.arena);
  }
  std::memcpy(call.out, result.value, static_cast<size_t>(call.rows));
  call.valid = result.valid;
}

bool all_bool(const Node& node) {
  for (const Type& type : node.arg_types) {
    if (type.kind != Kind::Bool) return false;
  }
  return !node.args.empty() && node.type.kind == Kind::Bool;
}

template <bool conjunction>
void resolve_connective(Node& node, std::span<const Node* const>) {
  if (!all_bool(node)) no_kernel(node);
  node.strict = false;
  node.kernel = connective<conjunction>;
}

void not_kernel(Call& call) {
  loops().not_bytes(call.args[0]->as<uint8_t>(), call.out_as<uint8_t>(), call.rows);
}

void resolve_not(Node& node, std::span<const Node* const>) {
  if (!all_bool(node) || node.args.size() != 1) no_kernel(node);
  node.kernel = not_kernel;
}

template <bool null>
void null_kernel(Call& call) {
  const Vector& a = *call.args[0];
  uint8_t* out = call.out_as<uint8_t>();
  if (a.valid == nullptr) {
    std::memset(out, !null, static_cast<size_t>(call.rows));
  } else if (null) {
    loops().not_bytes(a.valid, out, call.rows);
  } else {
    std::memcpy(out, a.valid, static_cast<size_t>(call.rows));
  }
}

template <bool null>
void resolve_null(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  node.strict = false;
  node.kernel = null_kernel<null>;
}

// Whether the argument is known and `wanted`, or (negated) is not.
template <bool wanted, bool negated>
void truth_kernel(Call& call) {
  const Vector& a = *call.args[0];
  uint8_t* out = call.out_as<uint8_t>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool is_wanted = a.is_valid(row) & ((a.at<uint8_t>(row) != 0) == wanted);
    out[row] = is_wanted != negated;
  }
}

template <bool wanted, bool negated>
void resolve_truth(Node& node, std::span<const Node* const>) {
  if (!all_bool(node) || node.args.size() != 1) no_kernel(node);
  node.strict = false;
  node.kernel = truth_kernel<wanted, negated>;
}

constexpr Function kFunctions[] = {
    {"and", resolve_connective<true>},
    {"or", resolve_connective<false>},
    {"not", resolve_not},
    {"is_null", resolve_null<true>},
    {"is_not_null", resolve_null<false>},
    {"is_true", resolve_truth<true, false>},
    {"is_not_true", resolve_truth<true, true>},
    {"is_false", resolve_truth<false, false>},
    {"is_not_false", resolve_truth<false, true>},
};

}  // namespace

std::span<const Function> logic_functions() {
  return kFunctions;
}

}  // namespace bireme
