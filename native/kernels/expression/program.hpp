// A compiled filter and projection over batches.
//
// Two phases. The predicate's conjuncts make the list of rows that count: those that cannot fail come first,
// cheap ones before costly ones, over whole vectors while many rows are left and over the rows left once they
// are few. Then outputs are computed for these rows only, vector by vector, straight into their final
// buffers. A program is immutable once built, so any number of threads may run it.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/expression/evaluation.hpp"
#include "kernels/expression/node.hpp"

namespace bireme {

class Program {
 public:
  // Adds a node, which comes after its arguments, and returns its index. Throws Unsupported where no kernel
  // takes these types.
  int add_column(int column, const Type& type);
  int add_literal(const Type& type, const void* value, bool is_null, std::string text);
  int add(Node node);
  void set_predicate(std::vector<int> conjuncts);
  // What to compute. Columns among the outputs are copied for the rows that count (a dictionary's codes).
  void set_outputs(std::vector<int> outputs) { outputs_ = std::move(outputs); }

  struct Result {
    int64_t rows = 0;
    bool all = false;                   // every row counts: columns among the outputs are left out
    std::vector<OutputColumn> columns;  // one per output that is not left out, in order
    Buffer selection;                   // the rows that count, as uint32; empty if `all`
  };

  // `with_columns` false leaves out all outputs: only the selection is made.
  Result run(const std::vector<Column>& columns, int64_t rows, bool with_columns) const;

  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  int64_t select(Evaluation& evaluation, int64_t rows, uint32_t* selection) const;
  int64_t select_vector(Evaluation& evaluation, Scope& scope, uint32_t* out) const;
  void check(const std::vector<Column>& columns) const;
  void compute(Evaluation& evaluation, const std::vector<Column>& columns, Result& result) const;

  std::vector<Node> nodes_;
  std::vector<int> conjuncts_;
  std::vector<int> outputs_;
};

}  // namespace bireme
