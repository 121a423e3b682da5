// A residual's verdict on pairs of rows.
#pragma once

#include <cstdint>

#include "arrow/batch.hpp"

namespace bireme {

class Program;

// Keeps the pairs for which the residual's predicate is TRUE, in order, and returns how many. The predicate
// is over the columns of `stream`, `stream_columns` of them, followed by those of `build`; only those that it
// reads are gathered.
int64_t keep_true(const Program& residual, int stream_columns, const Batch& stream, const Batch& build,
                  uint32_t* positions, uint32_t* found, int64_t pairs);

}  // namespace bireme
