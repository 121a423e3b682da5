// Rows of chunks with the same columns, put together in their order.
//
// Rule: memory is laid out once, when all chunks are known; then each chunk is copied to its place, by any
// thread. Dictionary-encoded strings stay codes where the chunks' dictionaries together are small; else they
// become text.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"

namespace bireme {

class JoinedChunks {
 public:
  // Whether the columns of these chunks can be put together here: of each the same kind in all.
  static bool possible(const std::vector<const Batch*>& chunks);

  // The chunks must outlive it, and there is at least one. Throws Unsupported where text exceeds what 32-bit
  // offsets reach.
  explicit JoinedChunks(std::vector<const Batch*> chunks);
  ~JoinedChunks();

  void copy(size_t chunk);

  // What was made, when all chunks are copied. Of a column of codes, `dictionaries` has the entries at its
  // position.
  struct Result {
    int64_t rows = 0;
    std::vector<OutputColumn> columns;
    std::vector<std::pair<int, OutputColumn>> dictionaries;
  };
  Result take();

 private:
  struct Target;

  void lay_out(Target& target, int column);
  bool unify(Target& target, int column);
  void lay_out_text(Target& target, int column);
  void copy_column(Target& target, int column, size_t chunk) const;
  void copy_text(Target& target, const Column& source, size_t chunk) const;
  void copy_codes(Target& target, const Column& source, size_t chunk) const;

  std::vector<const Batch*> chunks_;
  std::vector<int64_t> first_rows_;  // one more than chunks
  std::vector<Target> targets_;
};

}  // namespace bireme
