// Scratch memory of one run of a program: taken by bumping a pointer, given back all at once.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow/buffer.hpp"
#include "kernels/expression/allowance.hpp"

namespace bireme {

class Arena {
 public:
  // What it takes, it takes of an allowance, which must outlive it.
  explicit Arena(Allowance& allowance) : allowance_(&allowance) {}

  // `bytes` bytes, aligned to 64; valid until `reset`.
  void* take(int64_t bytes) {
    const int64_t rounded = (bytes + 63) & ~int64_t{63};
    if (rounded > left_) next_block(rounded);
    void* result = at_;
    at_ += rounded;
    left_ -= rounded;
    return result;
  }
  template <typename T>
  T* take_array(int64_t count) {
    return static_cast<T*>(take(count * static_cast<int64_t>(sizeof(T))));
  }
  // Forgets everything taken; the same memory, warm in cache, is given out again.
  void reset();

  Allowance& allowance() { return *allowance_; }

 private:
  void next_block(int64_t bytes);

  Allowance* allowance_;
  std::vector<Buffer> blocks_;
  size_t used_ = 0;  // blocks in use; the last of them is being cut
  char* at_ = nullptr;
  int64_t left_ = 0;
  int64_t held_ = 0;  // bytes of all blocks
};

}  // namespace bireme
