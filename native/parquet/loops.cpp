#include "parquet/loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme {

namespace baseline {
const parquet::Loops& parquet_loops();
}
#ifdef BIREME_HAS_AVX2
namespace avx2 {
const parquet::Loops& parquet_loops();
}
#endif

namespace parquet {

const Loops& loops() {
  static const Loops& chosen = BIREME_DISPATCH(parquet_loops);
  return chosen;
}

}  // namespace parquet

}  // namespace bireme
