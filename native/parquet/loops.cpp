#include "parquet/loops.hpp"

#include "kernels/dispatch.hpp"

namespace bireme::parquet {

const Loops& loops() {
  static const Loops& chosen = BIREME_DISPATCH(parquet_loops);
  return chosen;
}

}  // namespace bireme::parquet
