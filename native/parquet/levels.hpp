// Which rows of a page have a value: definition levels of at most 1.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/buffer.hpp"
#include "parquet/bytes.hpp"
#include "parquet/positions.hpp"

namespace bireme::parquet {

class Validity {
 public:
  // Of a page without NULLs.
  explicit Validity(int64_t rows = 0) : rows_(rows), present_(rows) {}

  // From levels in runs. Throws Corrupt where they do not cover the rows.
  static Validity from_runs(Bytes runs, int64_t rows);
  // From levels in a bitmap, the upper bit first: the deprecated encoding BIT_PACKED.
  static Validity from_legacy_bits(Bytes bits, int64_t rows);

  int64_t present() const { return present_; }
  bool has_nulls() const { return present_ != rows_; }

  // Of wanted rows those that have a value.
  struct Located {
    Positions values;                 // where their values are
    const uint8_t* bitmap = nullptr;  // which they are; null: all of them
    int64_t nulls = 0;
  };
  // `positions` and `bitmap` get what the result points to.
  Located locate(const Positions& rows, Buffer& positions, Buffer& bitmap) const;

 private:
  void index_bitmap();
  // How many rows before `row` have a value.
  uint32_t rank(int64_t row) const;

  int64_t rows_;
  int64_t present_;
  Buffer bitmap_;                // with NULLs only
  std::vector<uint32_t> ranks_;  // at every 64th row
};

}  // namespace bireme::parquet
