// Rows of a batch by position.
#pragma once

#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"

namespace bireme {

// Checks that all positions (int32 or int64, NULL allowed) are rows of a batch with `rows` rows. Throws EngineBug.
void check_positions(const Column& positions, int64_t rows);

// The values of the column at the positions; NULL where the position is. Of a dictionary column the codes. The positions
// must have been checked. Throws Unsupported for Kind::Other.
OutputColumn take(const Column& column, const Column& positions);

}  // namespace bireme
