// A key filter as Python holds it: JoinTable.key_filter() gives one, a scan takes any number.
#pragma once

#include <memory>

#include "kernels/key_filter.hpp"

namespace bireme {

struct KeyFilterHandle {
  std::shared_ptr<const KeyFilter> filter;  // never null
};

}  // namespace bireme
