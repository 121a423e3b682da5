// The loops of decoding that gain from wider vectors, once per instruction set (kernels/dispatch.hpp).
#pragma once

#include <cstdint>

namespace bireme::parquet {

// Which codes are kept.
struct Keep {
  const uint8_t* flags = nullptr;  // 0 or 1 a code
  int64_t count = 0;
  uint32_t bits[8] = {};  // the first 256 flags
};

struct Loops {
  // Unpacks `groups` groups of eight codes of `width` (1 to 32) bits each, lowest bits first, from `in`, of
  // which 16 bytes past the last group are readable. Returns the largest code.
  uint32_t (*unpack)(const uint8_t* in, int width, int64_t groups, uint32_t* out);
  // Writes the rows, first_row onwards or rows[i], whose code is kept, to `out`, which has room for all and
  // may be `rows` or lie before it; returns how many.
  int64_t (*select_range)(const uint32_t* codes, int64_t count, uint32_t first_row, const Keep& keep,
                          uint32_t* out);
  int64_t (*select_list)(const uint32_t* codes, int64_t count, const uint32_t* rows, const Keep& keep,
                         uint32_t* out);
  // out[i] = values[codes[i]] for values of 4 and 8 bytes.
  void (*gather4)(const uint32_t* codes, int64_t count, const uint32_t* values, uint32_t* out);
  void (*gather8)(const uint32_t* codes, int64_t count, const uint64_t* values, uint64_t* out);
};

const Loops& loops();

}  // namespace bireme::parquet

// The tables of the instruction sets; for tests.
namespace bireme::baseline {
const parquet::Loops& parquet_loops();
}
#ifdef BIREME_HAS_AVX2
namespace bireme::avx2 {
const parquet::Loops& parquet_loops();
}
#endif
