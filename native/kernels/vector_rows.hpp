// How many rows kernels handle at a time.
#pragma once

#include <cstdint>

namespace bireme {

// Few enough that a dozen vectors of 8-byte values stay in the second-level cache, many enough that a call per vector costs nothing.
inline constexpr int64_t kVectorRows = 1024;

}  // namespace bireme
