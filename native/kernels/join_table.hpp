// A join's build side, to be looked up: what backends/base.py calls a JoinTable.
//
// Rule: a key leads to the link of its first build row (join_chain.hpp), by its word where keys have words
// (join_lookup.hpp), else by a number that an index gives it (group_keys.hpp). Once built it never changes,
// so any number of threads may look up at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/group_keys.hpp"
#include "kernels/join_chain.hpp"
#include "kernels/join_lookup.hpp"
#include "kernels/join_words.hpp"
#include "kernels/key_filter.hpp"
#include "kernels/range_index.hpp"

namespace bireme {

class JoinTable {
 public:
  // In the first `null_equal_count` columns NULL is a key and equals NULL; rows with NULL elsewhere match
  // nothing.
  JoinTable(std::vector<Type> types, int null_equal_count, int64_t rows);
  // Builds at once, from one batch.
  JoinTable(const Batch& keys, int null_equal_count);

  int64_t rows() const { return chains_.rows(); }
  int64_t nbytes() const;
  bool has_null_key() const { return has_null_key_; }
  bool is_unique() const { return !chains_.open(); }
  // How keys are found, for explain.
  std::string form() const;

  // All pairs of equal keys as two int64 columns, by probe row, then by build row.
  std::vector<OutputColumn> match(const Batch& keys) const;
  // A bool per probe row: whether there is a build row.
  OutputColumn contains(const Batch& keys) const;

  // Made by the first that asks. Null where NULL is a key, or keys of these types have no filter.
  std::shared_ptr<const KeyFilter> key_filter() const;

  // All columns of the build side, in the order of its rows; put here once, before anyone probes.
  const Batch& payload() const { return payload_; }
  void set_payload(Batch payload) { payload_ = std::move(payload); }

  // Has rows be found by bounds of `ranges` as well, which are one or two values of every row; `keys` are those
  // that the table was built of. Before anyone probes.
  void index_ranges(const Batch& keys, Batch ranges, bool is_bounded_above);
  const RangeIndex* ranges() const { return ranges_.get(); }

  // The link after one that has more.
  uint32_t next(uint32_t link) const { return chains_.next()[row_of(link)]; }
  const uint32_t* links_after() const { return chains_.next(); }

 private:
  friend class JoinBuild;
  friend class JoinHeads;

  void build_index(const std::vector<std::span<const Column>>& chunks);
  void chain_everything();

  std::vector<Type> types_;
  int null_equal_count_;
  Chains chains_;
  bool has_null_key_ = false;
  // One of: words and their look-up; an index of keys, and the link of each; no keys at all, when every row
  // matches.
  KeyWords words_;
  std::unique_ptr<WordLookup> lookup_;
  std::unique_ptr<KeyIndex> index_;
  Cells<uint32_t> links_;
  Batch payload_;
  std::unique_ptr<const RangeIndex> ranges_;
  mutable std::atomic<int64_t> filter_bytes_ = 0;
  mutable std::once_flag filter_once_;
  mutable std::shared_ptr<const KeyFilter> filter_;
};

// The probe keys of one batch, to be looked up vector by vector. The columns must outlive it.
class JoinHeads {
 public:
  // Throws EngineBug for columns of other types than the build side's.
  JoinHeads(const JoinTable& table, std::span<const Column> keys);

  // Sets heads[row] to the link of the first build row for rows [begin, begin + rows), at most kVectorRows;
  // kNoRow where none is.
  void find(int64_t begin, int64_t rows, uint32_t* heads);

 private:
  const JoinTable& table_;
  std::unique_ptr<WordReader> words_;
  std::unique_ptr<KeyRows> rows_;
};

}  // namespace bireme
