// Which of a page's values are wanted.
#pragma once

#include <cstdint>

namespace bireme::parquet {

// Ascending positions, or, where there is no list, `count` in a row from `begin` on.
struct Positions {
  const uint32_t* list = nullptr;
  uint32_t begin = 0;
  uint32_t count = 0;

  bool is_range() const { return list == nullptr; }
  uint32_t operator[](uint32_t index) const { return list == nullptr ? begin + index : list[index]; }
  // A part of them.
  Positions slice(uint32_t first, uint32_t length) const {
    return {list == nullptr ? nullptr : list + first, begin + first, length};
  }
};

}  // namespace bireme::parquet
