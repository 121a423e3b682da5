// The nodes of a compiled expression, and the kernels that compute them.
//
// A program is a list of nodes in which every node comes after its arguments; equal subexpressions are one
// node. Nodes are typed to the layout: casts and rescaling of decimals are nodes of their own, put there by
// backends/native/program.py.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrow/type.hpp"
#include "kernels/expression/arena.hpp"
#include "kernels/expression/vector.hpp"

namespace bireme {

struct Node;

// One computation of a node over `rows` rows.
//
// For strict nodes `valid` is where all arguments are (null: everywhere), and becomes the result's validity
// unless the kernel replaces it. `out` has room for `rows` values; a kernel may point `result` elsewhere
// instead.
struct Call {
  const Node& node;
  std::span<const Vector* const> args;
  int64_t rows;
  Arena& arena;
  void* out;
  const uint8_t* valid;

  template <typename T>
  T* out_as() const {
    return static_cast<T*>(out);
  }
  // Marks the rows where `bad` is set and which are valid: NULL where the node is safe, else throws `Fault`
  // for the first.
  template <typename Fault>
  void reject(const uint8_t* bad);
};

using Kernel = void (*)(Call& call);

enum class NodeClass : uint8_t { Column, Literal, Case, Function };

struct Node {
  // Given by the one who builds the program.
  std::string function;
  Type type;
  std::vector<int> args;
  std::string text;                // pattern, unit, …
  int64_t numbers[3] = {0, 0, 0};  // digits, interval parts, …
  bool safe = false;               // of casts: NULL instead of an error

  // Derived when it is added.
  NodeClass node_class = NodeClass::Function;
  Physical physical = Physical::I64;
  std::vector<Type> arg_types;
  Kernel kernel = nullptr;
  bool strict = true;      // NULL exactly where an argument is
  bool can_raise = false;  // this node or one below it
  bool costly = false;     // this node or one below it works on strings
  int column = -1;  // of columns: which; of others: the only STRING column below, or -1 if none or several
  bool liftable = false;              // may be computed once per dictionary entry of `column`
  int128 bound = 0;                   // of decimals: the largest value of the type
  int variant = 0;                    // for the kernel's own use
  std::shared_ptr<const void> state;  // for the kernel's own use: a matcher, a set
  // Of literals: the value, as in a vector; text literals point into `text`.
  alignas(16) unsigned char value[16] = {};
  bool is_null = false;
};

// Fills in what a function's nodes need: kernel, strict, can_raise, variant, state. `args` are the argument
// nodes. Throws Unsupported where there is no kernel for these types.
using Resolver = void (*)(Node& node, std::span<const Node* const> args);

struct Function {
  const char* name;
  Resolver resolve;
};

// The functions of each family.
std::span<const Function> arithmetic_functions();
std::span<const Function> comparison_functions();
std::span<const Function> logic_functions();
std::span<const Function> string_functions();
std::span<const Function> text_part_functions();
std::span<const Function> text_code_functions();
std::span<const Function> text_distance_functions();
std::span<const Function> text_edit_functions();
std::span<const Function> text_spelling_functions();
std::span<const Function> template_functions();
std::span<const Function> json_functions();
std::span<const Function> regex_functions();
std::span<const Function> temporal_functions();
std::span<const Function> cast_functions();
std::span<const Function> math_functions();
std::span<const Function> integer_functions();
std::span<const Function> date_functions();
std::span<const Function> epoch_functions();
std::span<const Function> time_format_functions();
std::span<const Function> time_parse_functions();

// Throws Unsupported, naming function and types.
[[noreturn]] void no_kernel(const Node& node);

// Prints a value for messages and for casts to text, as SQL shows it.
std::string format_value(const Type& type, const Vector& vector, int64_t row);

// "multiply(decimal(15,2) 1.50, decimal(15,2) 3.00)", the call at a row, for messages.
std::string describe_call(const Call& call, int64_t row);

template <typename Fault>
void Call::reject(const uint8_t* bad) {
  uint8_t* kept = nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    if (!bad[row] || (valid != nullptr && !valid[row])) continue;
    if (!node.safe) throw Fault(describe_call(*this, row));
    if (kept == nullptr) {
      kept = arena.take_array<uint8_t>(rows);
      if (valid != nullptr) {
        std::memcpy(kept, valid, static_cast<size_t>(rows));
      } else {
        std::memset(kept, 1, static_cast<size_t>(rows));
      }
    }
    kept[row] = 0;
  }
  if (kept != nullptr) valid = kept;
}

}  // namespace bireme
