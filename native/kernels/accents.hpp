// Letters without accents: of Latin, Greek, Cyrillic and their combining marks, and of what has none.
#pragma once

#include <cstdint>

namespace bireme {

struct Accentless {
  bool is_known;  // here; else nothing is said
  bool stays;     // a combining mark does not
  uint32_t letter;
};

// What a character is without accents, whatever is around it.
Accentless without_accent(uint32_t code);

}  // namespace bireme
