// Computing nodes over a set of rows of one batch.
//
// A Scope is a set of rows, at most kVectorRows, of the batch, of a column's dictionary, or of another scope;
// each node is computed at most once in a scope, and taken from the scope around it where it is known there
// already. A function of one dictionary column is computed once per entry of the dictionary, and looked up by
// code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "arrow/batch.hpp"
#include "kernels/expression/allowance.hpp"
#include "kernels/expression/arena.hpp"
#include "kernels/expression/node.hpp"

namespace bireme {

struct Scope {
  Scope* outer = nullptr;
  const uint32_t* positions = nullptr;  // of the rows in `outer`
  // Rows of the batch: `rows[i]`, or first + i where `rows` is null.
  const uint32_t* rows = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  int dictionary = -1;      // not rows but entries first … of this column's dictionary,
  bool null_entry = false;  // or the one row in which that column is NULL

  std::vector<Vector> vectors;     // by node
  std::vector<uint8_t> known;      // by node
  void* const* targets = nullptr;  // by node: where to put its values, or null

  explicit Scope(size_t nodes) : vectors(nodes), known(nodes, 0) {}
  void start_range(int64_t from, int64_t rows_count) {
    rows = nullptr;
    first = from;
    count = rows_count;
    std::fill(known.begin(), known.end(), uint8_t{0});
  }
  void start_rows(const uint32_t* which, int64_t rows_count) {
    rows = which;
    count = rows_count;
    std::fill(known.begin(), known.end(), uint8_t{0});
  }
};

class Evaluation {
 public:
  // `work_rows` is about how many rows will be computed: a dictionary with more entries is not worth
  // computing up front.
  Evaluation(const std::vector<Node>& nodes, const std::vector<Column>& columns, int64_t work_rows)
      : nodes_(nodes),
        columns_(columns),
        work_rows_(work_rows),
        arena_(allowance_),
        tables_(nodes.size()) {}

  const Vector& value(Scope& scope, int node);
  // The mask of rows where a BOOL node is TRUE: bytes of 0 and 1, valid until `reset`.
  const uint8_t* truth(Scope& scope, int node);
  void set_work_rows(int64_t rows) { work_rows_ = rows; }

  // Scratch of the current vector; `reset` between vectors.
  Arena& arena() { return arena_; }
  Allowance& allowance() { return allowance_; }
  void reset() { arena_.reset(); }

 private:
  // A node computed for every entry of a dictionary, and for NULL as entry `count`.
  struct Table {
    explicit Table(Allowance& allowance) : arena(allowance) {}
    void* data = nullptr;
    uint8_t* valid = nullptr;  // null: all are
    Arena arena;               // owns both, and the texts they point to
  };

  Vector compute(Scope& scope, int node);
  Vector from_outer(Scope& scope, int node);
  Vector load(const Scope& scope, const Node& node, void* target);
  Vector load_strings(const Scope& scope, const Column& column);
  Vector load_validity(const Scope& scope, const Column& column, Vector vector);
  Vector lookup(const Scope& scope, int node);
  const Table& table_of(int node);
  bool fill_table(Table& table, int node, Scope& scope, int64_t first);
  Vector call(Scope& scope, int node);
  Vector choose(Scope& scope, int node);
  Vector choose_lazily(Scope& scope, int node);
  bool known(const Scope& scope, int node) const;
  bool lifted(const Scope& scope, const Node& node) const;
  void* room(const Scope& scope, int node);
  const uint8_t* combined_validity(std::span<const Vector* const> args, int64_t rows, bool& all_null);

  const std::vector<Node>& nodes_;
  const std::vector<Column>& columns_;
  int64_t work_rows_;
  Allowance allowance_;
  Arena arena_;
  std::vector<std::unique_ptr<Table>> tables_;  // by node
};

}  // namespace bireme
