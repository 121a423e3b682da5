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

// Understood, but not offered.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An invariant of ours broke.
struct EngineBug : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace bireme
