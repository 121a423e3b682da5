#include "kernels/expression/program.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arrow/errors.hpp"
#include "kernels/expression/loops.hpp"
#include "kernels/expression/sink.hpp"

namespace bireme {

namespace {

const Function* find_function(const std::string& name) {
  for (const auto family :
       {arithmetic_functions(), comparison_functions(), logic_functions(), string_functions(),
         text_part_functions(), text_code_functions(), text_distance_functions(), text_edit_functions(),
         text_spelling_functions(), template_functions(), json_functions(), regex_functions(),
         temporal_functions(), cast_functions(), math_functions(), integer_functions(), date_functions(),
         epoch_functions(), time_format_functions(), time_parse_functions()}) {
    for (const Function& function : family) {
      if (name == function.name) return &function;
    }
  }
  return nullptr;
}

// The largest value of a decimal type.
int128 bound_of(const Type& type) {
  int128 bound = 1;
  for (int digit = 0; digit < type.precision; ++digit) bound *= 10;
  return bound - 1;
}

// A CASE whose branches may fail or cost much computes each for the rows that reach it only.
void resolve_case(Node& node, const std::vector<Node>& nodes) {
  node.node_class = NodeClass::Case;
  node.strict = false;
  for (int arg : node.args) {
    const Node& made = nodes[static_cast<size_t>(arg)];
    if (made.can_raise || made.costly) node.variant = 1;
  }
}

// Whether a node depends on exactly one string column, so that it may be computed per dictionary entry.
void find_column(Node& node, const std::vector<Node>& nodes) {
  bool several = false;
  for (int arg : node.args) {
    const Node& made = nodes[static_cast<size_t>(arg)];
    if (made.node_class == NodeClass::Literal) continue;
    const bool usable = made.liftable || (made.node_class == NodeClass::Column && is_string(made.type.kind));
    several |= !usable || (node.column >= 0 && node.column != made.column);
    node.column = made.column;
  }
  if (several) node.column = -1;
  node.liftable = node.column >= 0 && !node.can_raise;
}

}  // namespace

int Program::add_column(int column, const Type& type) {
  Node node;
  node.function = "column";
  node.type = type;
  node.node_class = NodeClass::Column;
  node.physical = physical_of(type.kind);
  node.column = column;
  node.costly = is_string(type.kind);
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

int Program::add_literal(const Type& type, const void* value, bool is_null, std::string text) {
  Node node;
  node.function = "literal";
  node.type = type;
  node.node_class = NodeClass::Literal;
  node.physical = physical_of(type.kind);
  node.is_null = is_null;
  node.text = std::move(text);
  if (!is_null && !is_string(type.kind)) {
    std::memcpy(node.value, value, static_cast<size_t>(width_of(node.physical)));
  }
  // Texts live on the heap, where moving the node does not move them.
  if (is_string(type.kind)) {
    auto owned = std::make_shared<const std::string>(std::move(node.text));
    const Str str = str_of(*owned);
    std::memcpy(node.value, &str, sizeof str);
    node.state = std::move(owned);
  }
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

int Program::add(Node node) {
  node.physical = physical_of(node.type.kind);
  if (node.type.kind == Kind::Decimal64 || node.type.kind == Kind::Decimal128)
    node.bound = bound_of(node.type);
  std::vector<const Node*> args;
  for (int arg : node.args) {
    if (arg < 0 || arg >= static_cast<int>(nodes_.size()))
      throw EngineBug("a node comes before its argument");
    const Node& made = nodes_[static_cast<size_t>(arg)];
    args.push_back(&made);
    node.arg_types.push_back(made.type);
    node.can_raise |= made.can_raise;
    node.costly |= made.costly;
  }
  if (node.function == "case") {
    resolve_case(node, nodes_);
  } else {
    const Function* function = find_function(node.function);
    if (function == nullptr) no_kernel(node);
    function->resolve(node, args);
  }
  find_column(node, nodes_);
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

void Program::set_predicate(std::vector<int> conjuncts) {
  conjuncts_ = std::move(conjuncts);
  const auto rank = [this](int node) {
    const Node& made = nodes_[static_cast<size_t>(node)];
    return made.can_raise ? 2 : made.costly ? 1 : 0;
  };
  std::stable_sort(conjuncts_.begin(), conjuncts_.end(), [&](int a, int b) { return rank(a) < rank(b); });
}

int64_t Program::select_vector(Evaluation& evaluation, Scope& scope, uint32_t* out) const {
  const uint8_t* mask = nullptr;
  int64_t kept = scope.count;
  size_t next = 0;
  for (; next < conjuncts_.size() && kept > 0; ++next) {
    const Node& node = nodes_[static_cast<size_t>(conjuncts_[next])];
    // Over whole vectors a cheap conjunct costs a fraction of gathering the rows that are left.
    const bool few = node.costly ? kept < scope.count - scope.count / 8 : kept < scope.count / 8;
    if (node.can_raise || few) break;
    const uint8_t* truth = evaluation.truth(scope, conjuncts_[next]);
    if (mask != nullptr) {
      auto* both = evaluation.arena().take_array<uint8_t>(scope.count);
      loops().and_bytes(mask, truth, both, scope.count);
      truth = both;
    }
    mask = truth;
    // How many are left matters only to the next conjunct.
    if (next + 1 < conjuncts_.size()) kept = loops().count_bytes(mask, scope.count);
  }
  if (mask == nullptr) {
    std::iota(out, out + scope.count, static_cast<uint32_t>(scope.first));
  } else {
    kept = loops().select(mask, scope.count, static_cast<uint32_t>(scope.first), out);
  }
  for (; next < conjuncts_.size() && kept > 0; ++next) {
    Scope left(nodes_.size());
    left.start_rows(out, kept);
    kept = loops().refine(evaluation.truth(left, conjuncts_[next]), kept, out);
  }
  return kept;
}

int64_t Program::select(Evaluation& evaluation, int64_t rows, uint32_t* selection) const {
  Scope scope(nodes_.size());
  int64_t total = 0;
  for (int64_t first = 0; first < rows; first += kVectorRows) {
    scope.start_range(first, std::min(kVectorRows, rows - first));
    total += select_vector(evaluation, scope, selection + total);
    evaluation.reset();
  }
  return total;
}

// Kernels were chosen by type, so a batch must have the types it was compiled for.
void Program::check(const std::vector<Column>& columns) const {
  for (const Node& node : nodes_) {
    if (node.node_class != NodeClass::Column) continue;
    const auto index = static_cast<size_t>(node.column);
    if (index >= columns.size())
      throw EngineBug("a batch has fewer columns than its program was compiled for");
    const Type& have = columns[index].type;
    if (have.kind != node.type.kind || have.scale != node.type.scale) {
      throw EngineBug("column " + std::to_string(index) + " has Arrow format '" + have.format +
                      "', but its program was compiled for '" + node.type.format + "'");
    }
  }
}

void Program::compute(Evaluation& evaluation, const std::vector<Column>& columns, Result& result) const {
  std::vector<Sink> sinks;
  for (int output : outputs_) {
    const Node& node = nodes_[static_cast<size_t>(output)];
    if (node.node_class == NodeClass::Column && result.all) continue;
    sinks.emplace_back(node, output, columns, result.rows, evaluation.allowance());
  }
  std::vector<void*> targets(nodes_.size(), nullptr);
  Scope scope(nodes_.size());
  scope.targets = targets.data();
  for (int64_t first = 0; first < result.rows && !sinks.empty(); first += kVectorRows) {
    const int64_t count = std::min(kVectorRows, result.rows - first);
    if (result.all) {
      scope.start_range(first, count);
    } else {
      scope.start_rows(result.selection.as<uint32_t>() + first, count);
    }
    for (Sink& sink : sinks) sink.offer_target(targets, first);
    for (Sink& sink : sinks) sink.append(evaluation, scope, first);
    evaluation.reset();
  }
  for (Sink& sink : sinks) result.columns.push_back(sink.finish());
}

Program::Result Program::run(const std::vector<Column>& columns, int64_t rows, bool with_columns) const {
  check(columns);
  if (rows > INT32_MAX) throw Unsupported("a batch has more than 2147483647 rows");
  Evaluation evaluation(nodes_, columns, rows);
  Result result;
  result.rows = rows;
  result.all = true;
  if (!conjuncts_.empty()) {
    result.selection = Buffer(rows * static_cast<int64_t>(sizeof(uint32_t)));
    result.rows = select(evaluation, rows, result.selection.as<uint32_t>());
    result.all = result.rows == rows;
    evaluation.set_work_rows(result.rows);
  }
  if (with_columns) compute(evaluation, columns, result);
  if (result.all) {
    result.selection.reset();
  } else {
    result.selection.shrink(result.rows * static_cast<int64_t>(sizeof(uint32_t)));
  }
  return result;
}

}  // namespace bireme
