// Columns that kernels make, and handing them out through the C data interface.
//
// Rule: an exported array owns exactly its own buffers (never its input), so nothing outlives its use by accident.
// Dictionary columns therefore leave as plain int32 codes: the Python side puts the dictionary back (`tables`, `program`).
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/abi.hpp"
#include "arrow/buffer.hpp"
#include "arrow/type.hpp"

namespace bireme {

// Fixed-width: `values` has rows values. Bool: a bitmap from bit 0. Strings: rows + 1 `offsets` from 0, and the bytes in
// `values`. An empty `validity` means that all rows are valid; otherwise a bitmap from bit 0.
struct OutputColumn {
  Type type;
  int64_t rows = 0;
  int64_t null_count = 0;  // -1: not counted
  Buffer validity;
  Buffer values;
  Buffer offsets;
};

// Moves the columns into a struct array (a record batch of unnamed columns). On return both structs are the caller's to
// release.
void export_batch(std::vector<OutputColumn> columns, int64_t rows, ArrowArray* array, ArrowSchema* schema);

// Moves one column out.
void export_column(OutputColumn column, ArrowArray* array, ArrowSchema* schema);

// Bytes a bitmap of `bits` needs.
constexpr int64_t bitmap_bytes(int64_t bits) { return (bits + 7) / 8; }

}  // namespace bireme
