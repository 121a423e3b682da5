#include "kernels/join_loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const JoinLoops& join_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const JoinLoops& join_loops();
}
#endif

const JoinLoops& join_loops() {
  static const JoinLoops& chosen = BIREME_DISPATCH(join_loops);
  return chosen;
}

}  // namespace bireme
