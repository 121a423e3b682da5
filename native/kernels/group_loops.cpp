#include "kernels/group_loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const GroupLoops& group_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const GroupLoops& group_loops();
}
#endif

const GroupLoops& group_loops() {
  static const GroupLoops& chosen = BIREME_DISPATCH(group_loops);
  return chosen;
}

}  // namespace bireme
