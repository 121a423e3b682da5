#include "kernels/expression/resolve.hpp"

namespace bireme {

std::span<const Function> string_functions() { return {}; }

}  // namespace bireme
