// Which instruction sets there are, and which this machine has.
//
// A file kernels/<family>.simd.cpp is compiled once per instruction set, each time with BIREME_ISA set to its name, and defines its
// functions in namespace bireme::BIREME_ISA. Such files include no standard library code with out-of-line functions: the
// linker keeps one copy of an inline function, and must not keep one with instructions that a machine lacks.
#pragma once

namespace bireme {

enum class Isa { Baseline, Avx2 };

// The best instruction set that this build and this machine have; BIREME_ISA=baseline in the environment forces the baseline (tests do).
Isa isa();

// Picks a table by instruction set: BIREME_DISPATCH(vector_table) is avx2::vector_table() or baseline::vector_table().
#ifdef BIREME_HAS_AVX2
#define BIREME_DISPATCH(function) \
  (::bireme::isa() == ::bireme::Isa::Avx2 ? ::bireme::avx2::function() : ::bireme::baseline::function())
#else
#define BIREME_DISPATCH(function) (::bireme::baseline::function())
#endif

}  // namespace bireme
