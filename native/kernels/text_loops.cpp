#include "kernels/text_loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const TextLoops& text_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const TextLoops& text_loops();
}
#endif

const TextLoops& text_loops() {
  static const TextLoops& chosen = BIREME_DISPATCH(text_loops);
  return chosen;
}

}  // namespace bireme
