// Joining batches of a stream with a table: what backends/base.py calls a Prober.
//
// Rule: everything happens per batch of the stream, in pieces of bounded size however many matches a row has;
// output rows are in the order of the stream's rows, and for each of them in the order of the build's, or of
// the first range key. Pairs that a residual must judge are gathered by blocks, and only the columns it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/join_matches.hpp"
#include "kernels/join_table.hpp"

namespace bireme {

class Program;

enum class ProbeKind { Inner, Left, Single, Semi, Anti, Mark };

// How a stream meets a table. The table, the program and the marks must outlive it.
struct ProbePlan {
  const JoinTable* table = nullptr;
  ProbeKind kind = ProbeKind::Inner;
  std::vector<int> left_output;   // columns of the stream
  std::vector<int> right_output;  // columns of the build side; of Mark: any means the mark
  // The marks of IN over one key: NULL where an equal row may exist. Of Anti and Mark only, without a
  // residual.
  bool null_aware = false;
  // A predicate over the stream's columns followed by the build's; null: none.
  const Program* residual = nullptr;
  int stream_columns = 0;
  uint8_t* matched = nullptr;  // a byte per build row, set to 1 where a pair has it; null: nobody asks
  // What build rows have to be within, besides having equal keys; the table has ranges where there are some.
  std::vector<RangeBound> bounds;
};

// Some rows of the output.
struct JoinPiece {
  int64_t rows = 0;
  bool all = false;  // the stream's columns are those of the batch as they are, and `left` is empty
  std::vector<OutputColumn> left;
  std::vector<OutputColumn> right;
};

// One batch of the stream on its way through the join.
class ProbeRun {
 public:
  // `keys`: the keys, then the value of each bound.
  ProbeRun(const ProbePlan& plan, Batch stream, Batch keys);

  // The next piece, or none.
  std::optional<JoinPiece> next();
  // Only marks the build rows that pairs have.
  void mark_matches();

 private:
  std::optional<JoinPiece> next_pairs();
  void fill_pairs();
  void fill_judged();
  JoinPiece chosen_rows();
  JoinPiece marked_rows();
  std::vector<uint8_t> found_rows();
  template <typename Use>
  void with_matches(Use use) const;
  template <typename Matches>
  void judge_found(Matches& matches, std::vector<uint8_t>& found);
  std::vector<uint8_t> unknown_rows(const std::vector<uint8_t>& found) const;
  int64_t judge(uint32_t* positions, uint32_t* found, int64_t pairs);
  JoinPiece gathered(int64_t rows);
  void gather_left(JoinPiece& piece, const uint32_t* positions, int64_t rows) const;
  void give(uint32_t position, uint32_t row);

  const ProbePlan& plan_;
  Batch stream_;
  Batch keys_;
  std::unique_ptr<PairCursor> cursor_;
  bool done_ = false;
  Cells<uint32_t> positions_;
  Cells<uint32_t> found_;
  int64_t pairs_ = 0;
  // Of Left and Single with a residual: the row that is next to be given, and whether a pair of it was.
  int64_t open_row_ = 0;
  bool open_matched_ = false;
  Cells<uint32_t> block_positions_;
  Cells<uint32_t> block_found_;
};

}  // namespace bireme
