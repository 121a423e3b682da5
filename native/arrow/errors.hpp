// The errors kernels throw. bind.cpp turns each into the class of the same name in bireme.errors.
#pragma once

#include <stdexcept>
#include <string>

namespace bireme {

// A value left the range of its type.
struct Overflow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A value cannot be converted to the type asked for.
struct ConversionFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A function was given a value it is not defined for, such as a zero divisor.
struct DomainFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A scalar subquery gave more than one row.
struct CardinalityFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel met a value that it leaves to the reference backend, such as text that is not ASCII; the Python side runs the
// batch again without that kernel.
struct NeedsReference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What is computed of some rows takes more memory than there is for it; fewer rows at once may do.
struct TooMuchAtOnce : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Understood, but not offered.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An invariant of ours broke.
struct EngineBug : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace bireme
