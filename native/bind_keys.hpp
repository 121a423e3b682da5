// Sort keys as Python gives them.
#pragma once

#include <vector>

#include "arrow/errors.hpp"
#include "kernels/sort_codes.hpp"

namespace bireme {

inline std::vector<SortKey> sort_keys(const std::vector<bool>& descending, const std::vector<bool>& nulls_first) {
  if (descending.size() != nulls_first.size())
    throw EngineBug("a sort has another number of directions than of NULL places");
  std::vector<SortKey> keys;
  for (size_t index = 0; index < descending.size(); ++index)
    keys.push_back({descending[index], nulls_first[index]});
  return keys;
}

}  // namespace bireme
