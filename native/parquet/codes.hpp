// Reading codes: runs of one code (RLE) or of codes packed into bits.
//
// Rule: a reader only moves forward. Codes are not compared with the size of any dictionary here; readers say
// what the largest was.
#pragma once

#include <cstdint>

#include "parquet/bytes.hpp"
#include "parquet/loops.hpp"
#include "parquet/positions.hpp"

namespace bireme::parquet {

class CodeReader {
 public:
  // Codes of `width` bits. Throws Corrupt for more than 32.
  CodeReader(Bytes runs, int width);

  // The codes at ascending positions, none before the last one read; returns the largest of those that were
  // looked at. Throws Corrupt where there are not so many.
  uint32_t read(const Positions& positions, uint32_t* out);

  // Of the rows first_row + i (or rows[i]) of the i-th position, those with keep[code] != 0, a test a run
  // where a run is one code. `codes_max` is the size of `keep`; a larger code is Corrupt. Returns how many
  // were written to `out`, which has room for all and may be `rows`.
  int64_t select(const Positions& positions, uint32_t first_row, const uint32_t* rows, const Keep& keep,
                 uint32_t* out);

  // A run: its codes start at position `begin` and end before `end`.
  struct Run {
    int64_t begin = 0;
    int64_t end = 0;
    bool is_packed = false;
    uint32_t code = 0;
    Bytes packed;
  };
  // The run that holds a position that is not before the current run.
  const Run& run_at(int64_t position);

 private:
  void next_run();
  void next_packed(uint64_t groups);
  // Codes [first, first + count) of the current run, which is packed; returns the largest.
  uint32_t unpack(int64_t first, int64_t count, uint32_t* out) const;
  uint32_t code_at(int64_t index) const;
  uint32_t read_list(const uint32_t* list, int64_t count, uint32_t* out) const;

  Cursor in_;
  const uint8_t* readable_end_;
  int width_;
  uint32_t mask_;
  uint32_t code_bytes_;  // the bits of the whole bytes in which a run's code is
  Run run_;
};

}  // namespace bireme::parquet
