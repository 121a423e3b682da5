#include "kernels/expression/allowance.hpp"

#include <string>

#include "arrow/buffer.hpp"
#include "arrow/errors.hpp"

namespace bireme {

void Allowance::take(int64_t bytes) {
  if (!may_have(bytes, taken_)) {
    throw TooMuchAtOnce("what is computed of some rows takes " + std::to_string((taken_ + bytes) >> 20) +
                        " MiB or more, and there is no room for it beside what is in memory");
  }
  taken_ += bytes;
}

}  // namespace bireme
