// From values as Parquet stores them to the engine's layout.
#pragma once

#include <cstdint>

#include "parquet/chunk.hpp"

namespace bireme::parquet {

class Conversion {
 public:
  // Throws Unsupported where the engine's type cannot be made from the stored one.
  explicit Conversion(const ChunkSpec& spec);

  int stored_bytes() const { return stored_bytes_; }
  // Of a value in the engine's layout; Bool: 1, for a byte that is 0 or 1.
  int cell_bytes() const { return cell_bytes_; }
  // Whether both layouts are the same.
  bool is_copy() const { return run_ == nullptr; }

  // Converts `count` values. Throws Corrupt where one does not fit. Neither side needs to be aligned.
  void run(const uint8_t* stored, int64_t count, void* cells) const;

 private:
  using Function = bool (*)(const Conversion& self, const uint8_t* stored, int64_t count, uint8_t* cells);
  struct Functions;

  int stored_bytes_;
  int cell_bytes_;
  int64_t multiplier_;
  int64_t divisor_;
  Function run_ = nullptr;
};

}  // namespace bireme::parquet
