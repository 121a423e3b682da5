// Where one output of a program goes, vector by vector.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "kernels/expression/evaluation.hpp"

namespace bireme {

class Sink {
 public:
  // For `rows` rows in all. The sink keeps references to `node`, `columns` and `allowance`.
  Sink(const Node& node, int index, const std::vector<Column>& columns, int64_t rows, Allowance& allowance);

  // Has the next values written straight into the output, where its layout is that of vectors.
  void offer_target(std::vector<void*>& targets, int64_t first);
  // Appends the node's values over `scope`, which are rows `first` … of the output; `first` is a multiple of
  // kVectorRows.
  void append(Evaluation& evaluation, Scope& scope, int64_t first);
  OutputColumn finish();

 private:
  void append_validity(const Vector& vector, int64_t first, int64_t count);
  void append_fixed(const Vector& vector, int64_t first, int64_t count);
  void append_bools(Evaluation& evaluation, const Vector& vector, int64_t first, int64_t count);
  void append_strings(const Vector& vector, int64_t first, int64_t count);
  void append_codes(Evaluation& evaluation, const Scope& scope, int64_t first);
  char* room_for_text(int64_t bytes);

  const Node* node_;
  int index_;
  const Column* passed_;  // the dictionary column that is passed through as codes, or null
  Allowance* allowance_;   // of texts
  OutputColumn column_;
  int64_t text_bytes_ = 0;
};

}  // namespace bireme
