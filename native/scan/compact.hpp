// Columns of fewer rows.
#pragma once

#include <cstdint>

#include "arrow/output.hpp"

namespace bireme::scan {

// The values at `count` ascending places of a column, whose memory is given up.
OutputColumn compact(OutputColumn column, const uint32_t* places, int64_t count);

}  // namespace bireme::scan
