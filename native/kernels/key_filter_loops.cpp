#include "kernels/key_filter_loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const KeyFilterLoops& key_filter_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const KeyFilterLoops& key_filter_loops();
}
#endif

const KeyFilterLoops& key_filter_loops() {
  static const KeyFilterLoops& chosen = BIREME_DISPATCH(key_filter_loops);
  return chosen;
}

}  // namespace bireme
