// eq ne lt le gt ge is_distinct is_not_distinct in.
#include <algorithm>
#include <vector>

#include "kernels/expression/resolve.hpp"
#include "kernels/hash.hpp"

namespace bireme {

namespace {

constexpr Comparison kFlipped[] = {Comparison::Eq, Comparison::Ne, Comparison::Gt,
                                   Comparison::Ge, Comparison::Lt, Comparison::Le};

int order_of(const Str& a, const Str& b) {
  return a.view().compare(b.view());
}

bool equal(const Str& a, const Str& b) {
  return a.size == b.size && (a.size == 0 || std::memcmp(a.data, b.data, a.size) == 0);
}

template <typename Test>
void compare_strings(const Vector& a, const Vector& b, int64_t rows, uint8_t* out, Test test) {
  for (int64_t row = 0; row < rows; ++row) out[row] = test(a.at<Str>(row), b.at<Str>(row));
}

void compare_strings(Comparison comparison, const Vector& a, const Vector& b, int64_t rows, uint8_t* out) {
  const auto run = [&](auto test) { compare_strings(a, b, rows, out, test); };
  switch (comparison) {
    case Comparison::Eq:
      return run(equal);
    case Comparison::Ne:
      return run([](const Str& x, const Str& y) { return !equal(x, y); });
    case Comparison::Lt:
      return run([](const Str& x, const Str& y) { return order_of(x, y) < 0; });
    case Comparison::Le:
      return run([](const Str& x, const Str& y) { return order_of(x, y) <= 0; });
    case Comparison::Gt:
      return run([](const Str& x, const Str& y) { return order_of(x, y) > 0; });
    case Comparison::Ge:
      return run([](const Str& x, const Str& y) { return order_of(x, y) >= 0; });
  }
}

void compare(Comparison comparison, Physical physical, const Vector& a, const Vector& b, int64_t rows,
             uint8_t* out) {
  if (physical == Physical::Str) return compare_strings(comparison, a, b, rows, out);
  const auto loop = [physical](Comparison which, bool constant) {
    return loops().compare[static_cast<int>(which)][static_cast<int>(physical)][constant];
  };
  switch (form_of(a, b)) {
    case Form::VectorVector:
      return loop(comparison, false)(a.data, b.data, out, rows);
    case Form::VectorConstant:
      return loop(comparison, true)(a.data, b.data, out, rows);
    case Form::ConstantVector:
      return loop(kFlipped[static_cast<int>(comparison)], true)(b.data, a.data, out, rows);
  }
}

template <Comparison comparison>
void compare_kernel(Call& call) {
  const Physical physical = physical_of(call.node.arg_types[0].kind);
  compare(comparison, physical, *call.args[0], *call.args[1], call.rows, call.out_as<uint8_t>());
}

bool comparable(const Node& node) {
  if (node.args.size() != 2 || node.type.kind != Kind::Bool) return false;
  const Type& a = node.arg_types[0];
  const Type& b = node.arg_types[1];
  return a.kind == b.kind && a.scale == b.scale && a.unit == b.unit && a.kind != Kind::Null &&
         a.kind != Kind::Interval && a.kind != Kind::Other;
}

template <Comparison comparison>
void resolve_comparison(Node& node, std::span<const Node* const>) {
  if (!comparable(node)) no_kernel(node);
  node.kernel = compare_kernel<comparison>;
}

// NULL equals NULL and nothing else.
template <bool distinct>
void distinct_kernel(Call& call) {
  const Vector& a = *call.args[0];
  const Vector& b = *call.args[1];
  uint8_t* out = call.out_as<uint8_t>();
  compare(Comparison::Eq, physical_of(call.node.arg_types[0].kind), a, b, call.rows, out);
  for (int64_t row = 0; row < call.rows; ++row) {
    const bool valid_a = a.is_valid(row);
    const bool valid_b = b.is_valid(row);
    const bool same = (valid_a == valid_b) & (!valid_a | (out[row] != 0));
    out[row] = same != distinct;
  }
}

template <bool distinct>
void resolve_distinct(Node& node, std::span<const Node* const>) {
  if (!comparable(node)) no_kernel(node);
  node.strict = false;
  node.kernel = distinct_kernel<distinct>;
}

// ------------------------------------------------------------------------------------------------------ IN

// The items of an IN list that are not NULL.
struct Items {
  std::vector<unsigned char> values;  // packed, as in a vector
  int64_t count = 0;
  bool has_null = false;
  // A set of the items' hashes and positions, where there are too many to compare with each.
  std::vector<int32_t> slots;  // -1: empty
  uint64_t mask = 0;
};

constexpr int64_t kLinearItemsMax = 8;

template <typename T>
uint64_t hash_item(const T& value) {
  if constexpr (std::is_same_v<T, Str>) {
    return hash_bytes(value.view());
  } else if constexpr (std::is_floating_point_v<T>) {
    return hash_double(static_cast<double>(value));
  } else if constexpr (sizeof(T) == 16) {
    return hash_int128(value);
  } else {
    return hash_word(static_cast<uint64_t>(value));
  }
}

template <typename T>
bool same_item(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Str>) {
    return equal(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return a == b || (a != a && b != b);
  } else {
    return a == b;
  }
}

template <typename T>
void build_slots(Items& items) {
  uint64_t size = 16;
  while (size < static_cast<uint64_t>(items.count) * 2) size *= 2;
  items.mask = size - 1;
  items.slots.assign(size, -1);
  const T* values = reinterpret_cast<const T*>(items.values.data());
  for (int32_t item = 0; item < items.count; ++item) {
    uint64_t slot = hash_item(values[item]) & items.mask;
    while (items.slots[slot] >= 0) slot = (slot + 1) & items.mask;
    items.slots[slot] = item;
  }
}

template <typename T>
void probe_items(const Items& items, const Vector& vector, int64_t rows, uint8_t* out) {
  const T* values = reinterpret_cast<const T*>(items.values.data());
  for (int64_t row = 0; row < rows; ++row) {
    const T& value = vector.at<T>(row);
    uint64_t slot = hash_item(value) & items.mask;
    while (items.slots[slot] >= 0 && !same_item(values[items.slots[slot]], value))
      slot = (slot + 1) & items.mask;
    out[row] = items.slots[slot] >= 0;
  }
}

template <typename Visit>
void visit_item_type(Physical physical, Visit visit) {
  if (visit_number(physical, visit)) return;
  if (physical == Physical::Str) return visit(Str{});
  visit(uint8_t{});
}

void compare_with_each(const Items& items, Physical physical, Call& call) {
  uint8_t* out = call.out_as<uint8_t>();
  std::memset(out, 0, static_cast<size_t>(call.rows));
  auto* one = call.arena.take_array<uint8_t>(call.rows);
  for (int64_t item = 0; item < items.count; ++item) {
    const Vector value{items.values.data() + item * width_of(physical), nullptr, true};
    compare(Comparison::Eq, physical, *call.args[0], value, call.rows, one);
    loops().or_bytes(out, one, out, call.rows);
  }
}

void in_kernel(Call& call) {
  const auto& items = *static_cast<const Items*>(call.node.state.get());
  const Physical physical = physical_of(call.node.arg_types[0].kind);
  uint8_t* out = call.out_as<uint8_t>();
  if (items.slots.empty()) {
    compare_with_each(items, physical, call);
  } else {
    visit_item_type(physical, [&]<typename T>(T) { probe_items<T>(items, *call.args[0], call.rows, out); });
  }
  if (!items.has_null) return;
  auto* valid = call.arena.take_array<uint8_t>(call.rows);
  std::memcpy(valid, out, static_cast<size_t>(call.rows));
  if (call.valid != nullptr) loops().and_bytes(valid, call.valid, valid, call.rows);
  call.valid = valid;
}

// Arguments: the value, then literals.
void resolve_in(Node& node, std::span<const Node* const> args) {
  if (args.empty() || node.type.kind != Kind::Bool) no_kernel(node);
  const Type type = node.arg_types[0];
  if (type.kind == Kind::Null || type.kind == Kind::Interval || type.kind == Kind::Other) no_kernel(node);
  const Physical physical = physical_of(type.kind);
  const auto width = static_cast<size_t>(width_of(physical));
  auto items = std::make_shared<Items>();
  for (const Node* arg : args.subspan(1)) {
    if (arg->node_class != NodeClass::Literal) no_kernel(node);
    if (arg->is_null) {
      items->has_null = true;
      continue;
    }
    if (arg->type.kind != type.kind || arg->type.scale != type.scale || arg->type.unit != type.unit)
      no_kernel(node);
    items->values.insert(items->values.end(), arg->value, arg->value + width);
    ++items->count;
  }
  if (items->count > kLinearItemsMax) {
    visit_item_type(physical, [&items]<typename T>(T) { build_slots<T>(*items); });
  }
  // The texts of the items belong to their literals; keep those alive by staying in the same program.
  node.state = std::move(items);
  node.args.resize(1);
  node.arg_types.resize(1);
  node.kernel = in_kernel;
}

constexpr Function kFunctions[] = {
    {"eq", resolve_comparison<Comparison::Eq>},
    {"ne", resolve_comparison<Comparison::Ne>},
    {"lt", resolve_comparison<Comparison::Lt>},
    {"le", resolve_comparison<Comparison::Le>},
    {"gt", resolve_comparison<Comparison::Gt>},
    {"ge", resolve_comparison<Comparison::Ge>},
    {"is_distinct", resolve_distinct<true>},
    {"is_not_distinct", resolve_distinct<false>},
    {"in", resolve_in},
};

}  // namespace

std::span<const Function> comparison_functions() {
  return kFunctions;
}

}  // namespace bireme
