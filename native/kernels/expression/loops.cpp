#include "kernels/expression/loops.hpp"

namespace bireme {

Loops loops_of(Isa isa) {
  Loops table{};
#ifdef BIREME_HAS_AVX2
  if (isa == Isa::Avx2) {
    avx2::fill_compare(table);
    avx2::fill_arithmetic(table);
    avx2::fill_rows(table);
    return table;
  }
#endif
  (void)isa;
  baseline::fill_compare(table);
  baseline::fill_arithmetic(table);
  baseline::fill_rows(table);
  return table;
}

const Loops& loops() {
  static const Loops table = loops_of(isa());
  return table;
}

}  // namespace bireme
