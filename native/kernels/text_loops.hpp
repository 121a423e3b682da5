// Searching in texts with wider vectors than every machine has (kernels/dispatch.hpp).
#pragma once

#include <cstddef>

namespace bireme {

struct TextLoops {
  // So many places are compared at once: a text must have as many at which the needle could begin.
  static constexpr size_t kPlaces = 32;

  // Where `needle` (of at least one byte) first occurs in such a text; SIZE_MAX where it does not. Null where
  // the instruction set has no vectors of 32 bytes.
  size_t (*find)(const char* text, size_t size, const char* needle, size_t needle_size);
};

const TextLoops& text_loops();

}  // namespace bireme
