// Putting values that lie close together to the rows that have one.
#pragma once

#include <cstdint>

#include "arrow/buffer.hpp"
#include "arrow/output.hpp"
#include "parquet/levels.hpp"

namespace bireme::parquet {

// cells[row] = the next of `dense` where the bit of the row is set. `dense` has one readable cell behind its
// last.
void spread_cells(const void* dense, const uint8_t* bitmap, int64_t rows, int cell_bytes, void* cells);
// The same of where values end; a row without one ends where the row before it does, the first where `start`
// says.
void spread_ends(const int32_t* dense, const uint8_t* bitmap, int64_t rows, int32_t start, int32_t* ends);

// The validity of an output column, page by page.
class ValidityWriter {
 public:
  explicit ValidityWriter(int64_t rows) : rows_(rows) {}
  void append(const Validity::Located& located, int64_t rows);
  void finish(OutputColumn& column);

 private:
  int64_t rows_;
  int64_t done_ = 0;
  int64_t nulls_ = 0;
  Buffer bitmap_;  // from the first NULL on
};

}  // namespace bireme::parquet
