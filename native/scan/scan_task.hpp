// One task of a scan: from the chunks of a row group to the rows that are wanted of it.
//
// A task goes block by block. In each it keeps the positions of the rows that are left, and every step
// shrinks them: by the codes of a chunk where one question per dictionary entry answers it, else by decoding
// the columns asked about for the rows left so far. What was decoded shrinks along. The columns that are
// given are decoded last, for the rows that are left.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "parquet/chunk.hpp"
#include "scan/scan_plan.hpp"
#include "scan/scanned_column.hpp"

namespace bireme::scan {

// The bytes of a column are not what the footer says.
struct DamagedColumn : std::runtime_error {
  DamagedColumn(int index, const std::string& story) : std::runtime_error(story), column(index) {}
  int column;
};

// A column is stored in a way that is left to pyarrow.
struct UnreadColumn : std::runtime_error {
  UnreadColumn(int index, const std::string& story) : std::runtime_error(story), column(index) {}
  int column;
};

// Rows [first, first + count) of a row group.
struct RowRange {
  int64_t first;
  int64_t count;
};

struct ScanCounts {
  int64_t rows_in = 0;
  int64_t dropped_by_conditions = 0;
  int64_t dropped_by_filters = 0;
  int64_t dropped_by_bound = 0;
  int64_t pages_skipped = 0;
  int64_t bytes_decompressed = 0;
  int64_t bytes_held_max = 0;  // by decoded columns at once
};

// `as_they_are` are outputs that are columns of memory with all their rows (place among the outputs, column):
// they have no values here, only rows.
struct ScanBatch {
  std::vector<OutputColumn> columns;
  int64_t rows = 0;
  std::vector<std::pair<int, int>> as_they_are;
};

// Where a column comes from: a chunk of a file, or memory, where `memory` is not null. That may have only some of the
// `rows_in_all`, from `first` on: those that the ranges of the task lie in.
struct ColumnInput {
  parquet::ChunkSpec chunk;
  const Column* memory = nullptr;
  int64_t first = 0;
  int64_t rows_in_all = 0;
  int64_t rows() const { return memory != nullptr ? rows_in_all : chunk.rows; }
};

class ScanTask {
 public:
  // `inputs` are those of the plan's columns, in order. With `late` false all columns are decoded before the
  // first step. `bound`, which may be null and must outlive the task, is the condition of the plan's bound.
  ScanTask(const ScanPlan& plan, std::vector<ColumnInput> inputs, parquet::Decompressor* decompressor,
           bool late, const Program* bound = nullptr);

  // The rows of `ranges` that are left, in order, in batches of at most `rows_max`; none without rows.
  std::vector<ScanBatch> run(const std::vector<RowRange>& ranges, int64_t rows_max);

  ScanCounts counts() const;

 private:
  // A scanned column in this task.
  struct Slot {
    ColumnInput input;
    std::unique_ptr<ScannedColumn> reader;
    std::optional<OutputColumn> values;  // of the rows that are left; codes where `is_codes`
    bool is_codes = false;
    std::shared_ptr<const OutputColumn> entries;  // a copy of the dictionary that outlives the reader
  };
  // What a step says of each entry of its column's dictionary, once it was asked.
  struct Answers {
    std::vector<uint8_t> keep;
    bool keep_null = false;
    bool keep_any = false;
    bool known = false;
  };

  Slot& slot(int column) { return slots_[static_cast<size_t>(column)]; }
  template <typename Work>
  auto reading(int column, Work work);
  ScannedColumn& reader(int column);
  // Whether the rows that are left are those that memory holds of the column.
  bool is_whole(const Slot& wanted) const;
  parquet::Selection selection() const;

  void start(const std::vector<RowRange>& ranges);
  ScanBatch run_block(const std::vector<RowRange>& ranges);
  void take_step(const Step& step);
  const Program& condition(const Step& step) const { return step.is_bound() ? *bound_ : step.condition(); }
  int64_t& dropped_by(const Step& step);
  bool take_step_by_codes(const Step& step);
  const Answers& answers(const Step& step, int column);
  void decode(int column);
  std::vector<Column> views();
  void keep(const uint32_t* positions, int64_t count);
  ScanBatch made();
  void measure();

  const ScanPlan& plan_;
  parquet::Decompressor* decompressor_;
  bool late_;
  const Program* bound_;
  std::vector<Slot> slots_;
  std::vector<const Step*> order_;
  std::vector<Answers> answers_;  // by place in `order_`
  size_t next_step_ = 0;          // the first step that was not taken in this block
  bool is_last_ = false;          // whether it is the last block, after which no page is wanted again

  // The rows that are left: all of the row group where `is_all_`, else positions in it.
  bool is_all_ = false;
  int64_t count_ = 0;
  Buffer rows_;
  Buffer chosen_;  // scratch
  ScanCounts counts_;
};

}  // namespace bireme::scan
