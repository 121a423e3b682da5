// Columns that kernels make, and handing them out through the C data interface.
//
// Rule: an exported array owns exactly its own buffers (never its input), so nothing outlives its use by
// accident. Codes of a dictionary that belongs to the input therefore leave as plain int32: the Python side
// puts the dictionary back
// (`tables`, `program`). Where the dictionary was made too, several columns may share it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrow/abi.hpp"
#include "arrow/buffer.hpp"
#include "arrow/column.hpp"
#include "arrow/type.hpp"

namespace bireme {

// Fixed-width: `values` has rows values. Bool: a bitmap from bit 0. Strings: rows + 1 `offsets` from 0, and
// the bytes in `values`. An empty `validity` means that all rows are valid; otherwise a bitmap from bit 0.
struct OutputColumn {
  Type type;
  int64_t rows = 0;
  int64_t null_count = 0;  // -1: not counted
  Buffer validity;
  Buffer values;
  Buffer offsets;
  // Of int32 codes: what they stand for; the column then leaves as dictionary<int32, …>.
  std::shared_ptr<const OutputColumn> dictionary = nullptr;
};

// The column as kernels take it, while it lives; of codes the codes alone.
Column view_of(const OutputColumn& output);

// Moves the columns into a struct array (a record batch, unnamed where no names are given). On return both
// structs are the caller's to release.
void export_batch(std::vector<OutputColumn> columns, int64_t rows, ArrowArray* array, ArrowSchema* schema,
                  std::span<const std::string> names = {});

// Moves one column out.
void export_column(OutputColumn column, ArrowArray* array, ArrowSchema* schema);

// Bytes a bitmap of `bits` needs.
constexpr int64_t bitmap_bytes(int64_t bits) {
  return (bits + 7) / 8;
}

}  // namespace bireme
