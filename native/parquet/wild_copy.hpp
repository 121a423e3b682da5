// Copies of short pieces, made in whole words: they may write up to kWildCopyBytes past what was asked for.
#pragma once

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Room that output needs behind its end.
inline constexpr int64_t kWildCopyBytes = 64;
// Bytes past its end that a source must be readable for.
inline constexpr int64_t kWildReadBytes = 16;

inline void copy_16(uint8_t* to, const uint8_t* from) {
  store(to, load<uint128>(from));
}

// `from` must not overlap `to`, or be at least 16 bytes before it.
inline void wild_copy(uint8_t* to, const uint8_t* from, int64_t length) {
  copy_16(to, from);
  for (int64_t done = 16; done < length; done += 16) copy_16(to + done, from + done);
}

// Repeats what lies `offset` bytes back, byte by byte in effect: `length` may be more than `offset`.
inline void copy_back(uint8_t* to, int64_t offset, int64_t length) {
  if (offset >= 16) [[likely]] {
    wild_copy(to, to - offset, length);
    return;
  }
  // Nearer than a word: each step doubles what is repeated.
  const uint8_t* from = to - offset;
  while (offset < 8) {
    store(to, load<uint64_t>(from));
    if (length <= offset) return;
    to += offset;
    length -= offset;
    offset *= 2;
  }
  from = to - offset;
  for (int64_t done = 0; done < length; done += 8) store(to + done, load<uint64_t>(from + done));
}

}  // namespace bireme::parquet
