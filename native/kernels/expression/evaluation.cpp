#include "kernels/expression/evaluation.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "arrow/errors.hpp"
#include "kernels/expression/loops.hpp"

namespace bireme {

namespace {

int log_width(Physical physical) {
  return std::countr_zero(static_cast<uint64_t>(width_of(physical)));
}

const uint8_t kNo = 0;

Vector null_constant() {
  static const uint64_t zeros[2] = {0, 0};
  return {zeros, &kNo, true};
}

}  // namespace

const Vector& Evaluation::value(Scope& scope, int node) {
  const auto index = static_cast<size_t>(node);
  if (!scope.known[index]) {
    scope.vectors[index] = compute(scope, node);
    scope.known[index] = 1;
  }
  return scope.vectors[index];
}

const uint8_t* Evaluation::truth(Scope& scope, int node) {
  const Vector& vector = value(scope, node);
  if (!vector.constant && vector.valid == nullptr) return vector.as<uint8_t>();
  auto* mask = arena_.take_array<uint8_t>(scope.count);
  if (vector.constant) {
    const bool is_true = vector.is_valid(0) && vector.at<uint8_t>(0) != 0;
    std::memset(mask, is_true, static_cast<size_t>(scope.count));
  } else {
    loops().and_bytes(vector.as<uint8_t>(), vector.valid, mask, scope.count);
  }
  return mask;
}

void* Evaluation::room(const Scope& scope, int node) {
  if (scope.targets != nullptr && scope.targets[node] != nullptr) return scope.targets[node];
  return arena_.take(scope.count * width_of(nodes_[static_cast<size_t>(node)].physical));
}

bool Evaluation::known(const Scope& scope, int node) const {
  if (scope.known[static_cast<size_t>(node)]) return true;
  return scope.outer != nullptr && known(*scope.outer, node);
}

bool Evaluation::lifted(const Scope& scope, const Node& node) const {
  if (!node.liftable || scope.dictionary >= 0) return false;
  const Column& column = columns_[static_cast<size_t>(node.column)];
  return column.is_dictionary() && column.dictionary->rows <= work_rows_;
}

Vector Evaluation::compute(Scope& scope, int node) {
  const Node& made = nodes_[static_cast<size_t>(node)];
  if (made.node_class == NodeClass::Literal) {
    return made.is_null ? null_constant() : Vector{made.value, nullptr, true};
  }
  if (scope.outer != nullptr && known(*scope.outer, node)) return from_outer(scope, node);
  if (made.node_class == NodeClass::Column) return load(scope, made, room(scope, node));
  if (lifted(scope, made)) return lookup(scope, node);
  if (made.node_class == NodeClass::Case) return choose(scope, node);
  return call(scope, node);
}

Vector Evaluation::from_outer(Scope& scope, int node) {
  const Vector& whole = value(*scope.outer, node);
  if (whole.constant) return whole;
  const Physical physical = nodes_[static_cast<size_t>(node)].physical;
  void* data = room(scope, node);
  loops().gather[log_width(physical)](whole.data, scope.positions, scope.count, data);
  uint8_t* valid = nullptr;
  if (whole.valid != nullptr) {
    valid = arena_.take_array<uint8_t>(scope.count);
    loops().gather[0](whole.valid, scope.positions, scope.count, valid);
  }
  return {data, valid, false};
}

// ------------------------------------------------------------------------------------------------- columns

Vector Evaluation::load(const Scope& scope, const Node& node, void* target) {
  const Column& whole = columns_[static_cast<size_t>(node.column)];
  if (whole.type.kind == Kind::Null) return null_constant();
  if (scope.dictionary == node.column && scope.null_entry) return null_constant();
  const Column& column = scope.dictionary == node.column ? *whole.dictionary : whole;
  if (is_string(column.type.kind)) return load_validity(scope, column, load_strings(scope, column));
  if (column.is_dictionary())
    throw Unsupported("a dictionary of '" + column.type.format + "' in an expression");
  Vector vector{target, nullptr, false};
  if (column.type.kind == Kind::Bool) {
    auto* out = static_cast<uint8_t*>(target);
    if (scope.rows != nullptr) {
      loops().gather_bits(column.as<uint8_t>(), column.bool_offset, scope.rows, scope.count, out);
    } else {
      loops().unpack(column.as<uint8_t>(), column.bool_offset + scope.first, scope.count, out);
    }
  } else if (scope.rows != nullptr) {
    loops().gather[log_width(node.physical)](column.values, scope.rows, scope.count, target);
  } else {
    vector.data = column.as<char>() + scope.first * width_of(node.physical);
  }
  return load_validity(scope, column, vector);
}

Vector Evaluation::load_validity(const Scope& scope, const Column& column, Vector vector) {
  if (!column.may_have_nulls()) return vector;
  auto* valid = arena_.take_array<uint8_t>(scope.count);
  if (scope.rows != nullptr) {
    loops().gather_bits(column.validity, column.validity_offset, scope.rows, scope.count, valid);
  } else {
    loops().unpack(column.validity, column.validity_offset + scope.first, scope.count, valid);
  }
  vector.valid = valid;
  return vector;
}

Vector Evaluation::load_strings(const Scope& scope, const Column& column) {
  auto* out = arena_.take_array<Str>(scope.count);
  const auto row_of = [&scope](int64_t index) {
    return scope.rows != nullptr ? static_cast<int64_t>(scope.rows[index]) : scope.first + index;
  };
  if (column.is_dictionary()) {
    const Column& dictionary = *column.dictionary;
    const int32_t* codes = column.codes();
    for (int64_t index = 0; index < scope.count; ++index) {
      const int64_t row = row_of(index);
      out[index] = column.is_valid(row) ? str_of(dictionary.string_at(codes[row])) : Str{"", 0, 0};
    }
    return {out, nullptr, false};
  }
  for (int64_t index = 0; index < scope.count; ++index) out[index] = str_of(column.string_at(row_of(index)));
  return {out, nullptr, false};
}

// -------------------------------------------------------------------------------------------- dictionaries

Vector Evaluation::lookup(const Scope& scope, int node) {
  const Node& made = nodes_[static_cast<size_t>(node)];
  const Column& column = columns_[static_cast<size_t>(made.column)];
  const Table& table = table_of(node);
  const int64_t null_entry = column.dictionary->rows;
  auto* entry = arena_.take_array<uint32_t>(scope.count);
  const int32_t* codes = column.codes();
  for (int64_t index = 0; index < scope.count; ++index) {
    const int64_t row = scope.rows != nullptr ? static_cast<int64_t>(scope.rows[index]) : scope.first + index;
    entry[index] = static_cast<uint32_t>(column.is_valid(row) ? codes[row] : null_entry);
  }
  void* data = room(scope, node);
  loops().look_up[log_width(made.physical)](table.data, entry, scope.count, data);
  uint8_t* valid = nullptr;
  if (table.valid != nullptr) {
    valid = arena_.take_array<uint8_t>(scope.count);
    loops().look_up[0](table.valid, entry, scope.count, valid);
  }
  return {data, valid, false};
}

const Evaluation::Table& Evaluation::table_of(int node) {
  auto& table = tables_[static_cast<size_t>(node)];
  if (table != nullptr) return *table;
  table = std::make_unique<Table>(allowance_);
  const Node& made = nodes_[static_cast<size_t>(node)];
  const int64_t entries = columns_[static_cast<size_t>(made.column)].dictionary->rows;
  table->data = table->arena.take((entries + 1) * width_of(made.physical));
  table->valid = table->arena.take_array<uint8_t>(entries + 1);
  // Texts that kernels make must live as long as the table, so the scratch arena is the table's for the time
  // being.
  std::swap(arena_, table->arena);
  bool has_null = false;
  Scope scope(nodes_.size());
  scope.dictionary = made.column;
  for (int64_t first = 0; first < entries; first += kVectorRows) {
    scope.start_range(first, std::min(kVectorRows, entries - first));
    has_null |= fill_table(*table, node, scope, first);
  }
  scope.null_entry = true;
  scope.start_range(0, 1);
  has_null |= fill_table(*table, node, scope, entries);
  std::swap(arena_, table->arena);
  if (!has_null) table->valid = nullptr;
  return *table;
}

// Copies the values of `scope` to the table from entry `first` on; returns whether one is NULL.
bool Evaluation::fill_table(Table& table, int node, Scope& scope, int64_t first) {
  const auto width = width_of(nodes_[static_cast<size_t>(node)].physical);
  const Vector& vector = value(scope, node);
  bool has_null = false;
  for (int64_t row = 0; row < scope.count; ++row) {
    const bool valid = vector.is_valid(row);
    has_null |= !valid;
    table.valid[first + row] = valid;
    std::memcpy(static_cast<char*>(table.data) + (first + row) * width,
                static_cast<const char*>(vector.data) + (vector.constant ? 0 : row * width),
                static_cast<size_t>(width));
  }
  return has_null;
}

// ----------------------------------------------------------------------------------------------- functions

const uint8_t* Evaluation::combined_validity(std::span<const Vector* const> args, int64_t rows,
                                             bool& all_null) {
  const uint8_t* combined = nullptr;
  for (const Vector* arg : args) {
    if (arg->valid == nullptr) continue;
    if (arg->constant) {
      all_null |= arg->valid[0] == 0;
    } else if (combined == nullptr) {
      combined = arg->valid;
    } else if (combined != arg->valid) {
      auto* both = arena_.take_array<uint8_t>(rows);
      loops().and_bytes(combined, arg->valid, both, rows);
      combined = both;
    }
  }
  return combined;
}

Vector Evaluation::call(Scope& scope, int node) {
  const Node& made = nodes_[static_cast<size_t>(node)];
  const Vector* args[8];
  std::vector<const Vector*> many;
  const Vector** arg = args;
  if (made.args.size() > std::size(args)) {
    many.resize(made.args.size());
    arg = many.data();
  }
  bool constant = true;
  for (size_t index = 0; index < made.args.size(); ++index) {
    arg[index] = &value(scope, made.args[index]);
    constant &= arg[index]->constant;
  }
  const std::span<const Vector* const> given(arg, made.args.size());
  const int64_t rows = constant ? 1 : scope.count;
  const uint8_t* valid = nullptr;
  if (made.strict) {
    bool all_null = false;
    valid = combined_validity(given, rows, all_null);
    if (all_null) return null_constant();
  }
  Call call{made, given, rows, arena_, constant ? arena_.take(width_of(made.physical)) : room(scope, node),
            valid};
  made.kernel(call);
  return {call.out, call.valid, constant};
}

// ---------------------------------------------------------------------------------------------------- CASE

Vector Evaluation::choose(Scope& scope, int node) {
  const Node& made = nodes_[static_cast<size_t>(node)];
  if (made.variant != 0) return choose_lazily(scope, node);
  const size_t branches = made.args.size() / 2;
  Vector result = value(scope, made.args.back());
  const auto width = log_width(made.physical);
  for (size_t branch = branches; branch-- > 0;) {
    const uint8_t* mask = truth(scope, made.args[2 * branch]);
    const Vector& taken = value(scope, made.args[2 * branch + 1]);
    void* data = branch == 0 ? room(scope, node) : arena_.take(scope.count << width);
    loops().blend[width](mask, taken.data, !taken.constant, result.data, !result.constant, scope.count, data);
    uint8_t* valid = nullptr;
    if (taken.valid != nullptr || result.valid != nullptr) {
      static const uint8_t yes = 1;
      const bool taken_steps = taken.valid != nullptr && !taken.constant;
      const bool result_steps = result.valid != nullptr && !result.constant;
      valid = arena_.take_array<uint8_t>(scope.count);
      loops().blend[0](mask, taken.valid != nullptr ? taken.valid : &yes, taken_steps,
                       result.valid != nullptr ? result.valid : &yes, result_steps, scope.count, valid);
    }
    result = {data, valid, false};
  }
  return result;
}

namespace {

// Puts the values of a scope within another back to where its rows came from.
void scatter(const Vector& from, const Scope& inner, int64_t width, char* data, uint8_t* valid) {
  for (int64_t row = 0; row < inner.count; ++row) {
    const uint32_t position = inner.positions[row];
    const char* source = static_cast<const char*>(from.data) + (from.constant ? 0 : row * width);
    std::memcpy(data + position * width, source, static_cast<size_t>(width));
    valid[position] = from.is_valid(row);
  }
}

// The scope of the rows at `positions` of `outer`.
void narrow(Scope& outer, const uint32_t* positions, int64_t count, Arena& arena, Scope& inner) {
  auto* rows = arena.take_array<uint32_t>(count);
  for (int64_t index = 0; index < count; ++index) {
    rows[index] = outer.rows != nullptr ? outer.rows[positions[index]]
                                        : static_cast<uint32_t>(outer.first) + positions[index];
  }
  inner.outer = &outer;
  inner.positions = positions;
  inner.dictionary = outer.dictionary;
  inner.null_entry = outer.null_entry;
  inner.start_rows(rows, count);
}

}  // namespace

Vector Evaluation::choose_lazily(Scope& scope, int node) {
  const Node& made = nodes_[static_cast<size_t>(node)];
  const int64_t width = width_of(made.physical);
  auto* data = static_cast<char*>(room(scope, node));
  auto* valid = arena_.take_array<uint8_t>(scope.count);
  auto* left = arena_.take_array<uint32_t>(scope.count);
  std::iota(left, left + scope.count, 0u);
  int64_t left_count = scope.count;
  for (size_t branch = 0; branch + 1 < made.args.size() && left_count > 0; branch += 2) {
    Scope reaching(nodes_.size());
    narrow(scope, left, left_count, arena_, reaching);
    const uint8_t* mask = truth(reaching, made.args[branch]);
    auto* taken = arena_.take_array<uint32_t>(left_count);
    auto* rest = arena_.take_array<uint32_t>(left_count);
    std::memcpy(taken, left, static_cast<size_t>(left_count) * sizeof *left);
    std::memcpy(rest, left, static_cast<size_t>(left_count) * sizeof *left);
    auto* others = arena_.take_array<uint8_t>(left_count);
    loops().not_bytes(mask, others, left_count);
    const int64_t taken_count = loops().refine(mask, left_count, taken);
    left_count = loops().refine(others, left_count, rest);
    left = rest;
    if (taken_count == 0) continue;
    Scope inner(nodes_.size());
    narrow(scope, taken, taken_count, arena_, inner);
    scatter(value(inner, made.args[branch + 1]), inner, width, data, valid);
  }
  if (left_count > 0) {
    Scope inner(nodes_.size());
    narrow(scope, left, left_count, arena_, inner);
    scatter(value(inner, made.args.back()), inner, width, data, valid);
  }
  return {data, valid, false};
}

}  // namespace bireme
