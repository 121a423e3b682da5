#include "kernels/expression/arena.hpp"

#include <algorithm>

namespace bireme {

namespace {

constexpr int64_t kBlockBytes = 256 * 1024 - 64;  // with its padding, one block of the pool
// What is kept from vector to vector. More would pile up where each needs longer blocks than those before.
constexpr int64_t kKeptBytes = int64_t{4} << 20;

}  // namespace

void Arena::next_block(int64_t bytes) {
  // Blocks too small for this request are passed over until the next reset.
  while (used_ < blocks_.size() && blocks_[used_].size() < bytes) ++used_;
  if (used_ == blocks_.size()) {
    const int64_t size = std::max(bytes, kBlockBytes);
    allowance_->take(size);
    held_ += size;
    blocks_.emplace_back(size);
  }
  at_ = blocks_[used_].as<char>();
  left_ = blocks_[used_].size();
  ++used_;
}

void Arena::reset() {
  while (held_ > kKeptBytes) {
    held_ -= blocks_.back().size();
    allowance_->give(blocks_.back().size());
    blocks_.pop_back();
  }
  used_ = 0;
  at_ = nullptr;
  left_ = 0;
}

}  // namespace bireme
