#include "kernels/dispatch.hpp"

#include <cstdlib>
#include <cstring>

namespace bireme {

namespace {

Isa detect() {
  const char* forced = std::getenv("BIREME_ISA");
  if (forced != nullptr && std::strcmp(forced, "baseline") == 0) return Isa::Baseline;
#ifdef BIREME_HAS_AVX2
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) return Isa::Avx2;
#endif
  return Isa::Baseline;
}

}  // namespace

Isa isa() {
  static const Isa chosen = detect();
  return chosen;
}

}  // namespace bireme
