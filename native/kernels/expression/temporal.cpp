#include "kernels/expression/resolve.hpp"

namespace bireme {

std::span<const Function> temporal_functions() { return {}; }

}  // namespace bireme
