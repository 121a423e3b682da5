// Whether bytes are text.
#pragma once

#include <cstdint>

namespace bireme::parquet {

// Whether the words that lie one behind the other in `bytes` from `begin` on, each up to its end, are all
// valid UTF-8.
bool are_utf8(const uint8_t* bytes, int64_t begin, const int32_t* ends, int64_t count);

}  // namespace bireme::parquet
