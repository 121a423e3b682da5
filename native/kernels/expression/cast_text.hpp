// Casts from text and to text, parts of the function `cast`.
#pragma once

#include "kernels/expression/node.hpp"

namespace bireme {

// Fill in the kernel of a cast from (to) text; false where there is none for the other type.
bool resolve_from_text(Node& node);
bool resolve_to_text(Node& node);

// Of timestamps, whose format is "tsu:" and the zone.
inline bool has_zone(const Type& type) {
  return type.format.size() > 4;
}

}  // namespace bireme
