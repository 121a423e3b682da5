// The keys of a join's build side, to be looked up: what backends/base.py calls a JoinTable.
//
// Rule: distinct keys are numbered by `group_keys`; beside that lie the build rows of each key, in order. Once built it never changes, so
// any number of threads may look keys up at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/group_keys.hpp"
#include "kernels/key_filter.hpp"

namespace bireme {

class JoinTable {
 public:
  // In the first `null_equal_count` columns NULL is a key and equals NULL; rows with NULL elsewhere match nothing.
  JoinTable(Batch keys, int null_equal_count);

  int64_t rows() const { return rows_; }
  int64_t nbytes() const { return keys_->nbytes() + starts_.nbytes() + rows_of_.nbytes() + filter_bytes_; }
  bool has_null_key() const { return has_null_key_; }

  // All pairs of equal keys as two int64 columns, by probe row, then by build row.
  std::vector<OutputColumn> match(const Batch& keys) const;
  // A bool per probe row: whether there is a build row.
  OutputColumn contains(const Batch& keys) const;

  // Made by the first that asks. Null where NULL is a key, or keys of these types have no filter.
  std::shared_ptr<const KeyFilter> key_filter() const;

 private:
  void group_rows(const uint32_t* entries);
  void find(const Batch& keys, uint32_t* entries) const;
  void emit_single(const uint32_t* entries, int64_t rows, std::vector<OutputColumn>& out) const;
  void emit_many(const uint32_t* entries, int64_t rows, std::vector<OutputColumn>& out) const;

  Batch build_keys_;
  bool can_filter_;
  mutable std::atomic<int64_t> filter_bytes_ = 0;
  mutable std::once_flag filter_once_;
  mutable std::shared_ptr<const KeyFilter> filter_;
  std::unique_ptr<KeyIndex> keys_;
  int64_t rows_ = 0;
  bool has_null_key_ = false;
  bool is_identity_ = false;  // the key number is the row
  bool is_unique_ = true;
  Cells<uint32_t> starts_;  // where the rows of a key start in `rows_of_`; not kept for unique keys
  Cells<uint32_t> rows_of_;  // by key number
};

}  // namespace bireme
