// The order of rows by several keys.
#pragma once

#include <vector>

#include "arrow/batch.hpp"
#include "arrow/output.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

// The positions of the rows in order, as int64; rows with equal keys keep their order. With `limit` >= 0 only the first that many.
OutputColumn sort_rows(const Batch& batch, const std::vector<SortKey>& keys, int64_t limit);

}  // namespace bireme
