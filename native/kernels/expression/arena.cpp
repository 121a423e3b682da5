#include "kernels/expression/arena.hpp"

#include <algorithm>

namespace bireme {

namespace {

constexpr int64_t kBlockBytes = 256 * 1024 - 64;  // with its padding, one block of the pool

}  // namespace

void Arena::next_block(int64_t bytes) {
  // Blocks too small for this request are passed over until the next reset.
  while (used_ < blocks_.size() && blocks_[used_].size() < bytes) ++used_;
  if (used_ == blocks_.size()) blocks_.emplace_back(std::max(bytes, kBlockBytes));
  at_ = blocks_[used_].as<char>();
  left_ = blocks_[used_].size();
  ++used_;
}

void Arena::reset() {
  used_ = 0;
  at_ = nullptr;
  left_ = 0;
}

}  // namespace bireme
