// Building a join table on many threads: chunks come in any order, then units of work are done by whoever is
// free.
//
// Rule: what is built depends on the sequence numbers of the chunks alone, never on threads. A call that
// throws for want of memory may be made again. Calls of `add` and of `work` may be made by many threads at
// once, but all `add`s come before `start`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "arrow/batch.hpp"
#include "kernels/joined_chunks.hpp"
#include "kernels/join_table.hpp"

namespace bireme {

class JoinBuild {
 public:
  explicit JoinBuild(int null_equal_count) : null_equal_count_(null_equal_count) {}

  // Rows of the build side and their keys, chunk by chunk: all are added, or none. Chunks of one sequence
  // number count in the order in which they are added.
  void add(int64_t sequence, std::vector<Batch> keys, std::vector<Batch> columns);
  int64_t rows() const { return rows_; }

  // All has come, at least one chunk, and so many threads may work; returns how many are worth it.
  int start(int threads);
  // Does units of work until none is left to begin. True for the one call that ends the last of them: then
  // the results may be taken.
  bool work();

  std::unique_ptr<JoinTable> take_table() { return std::move(table_); }
  // Where the rows are those of one chunk, or have columns that only others can put together, there is none.
  bool has_payload() const { return payload_ != nullptr; }
  JoinedChunks::Result take_payload() { return payload_->take(); }

  // The keys of a part of the build side.
  struct Part {
    std::span<const Column> keys;
    int64_t first_row = 0;
    int64_t rows = 0;
    KeyFacts facts;
  };
  static void build_at_once(JoinTable& table, std::span<const Part> parts);

 private:
  struct Chunk {
    int64_t sequence;
    Batch keys;
    Batch columns;
    KeyFacts facts;
  };
  // One thread's share of a look-up, all of an index, or some chunks to be copied.
  struct Unit {
    enum class Kind { Lookup, Index, Copy } kind;
    size_t first;
    size_t last;
  };

  void prepare();
  void plan_copies();
  void run(const Unit& unit);
  void finish();

  int null_equal_count_;
  std::mutex lock_;
  std::atomic<int64_t> rows_ = 0;
  std::vector<Chunk> chunks_;
  int threads_ = 1;
  bool prepared_ = false;
  std::vector<Unit> waiting_;
  size_t unfinished_ = 0;
  WordSource source_;
  std::unique_ptr<JoinTable> table_;
  std::unique_ptr<JoinedChunks> payload_;
};

}  // namespace bireme
