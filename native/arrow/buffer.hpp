// Memory for output columns: aligned, padded, and reused.
//
// Rule: a page touched for the first time costs about ten times as much as one that is reused, so blocks of
// a page and more go back to a bounded pool instead of the operating system. What the pool keeps gives way to
// what is in use, so that both together stay below a limit. Blocks are 64-byte aligned and readable (not
// meaningful) for 64 bytes past `size`, so kernels may read whole vectors; they may never write there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace bireme {

class Buffer {
 public:
  Buffer() = default;
  // `size` bytes, of undefined content. Throws std::bad_alloc.
  explicit Buffer(int64_t size);
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  static Buffer zeroed(int64_t size);

  void* data() { return data_; }
  const void* data() const { return data_; }
  template <typename T>
  T* as() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  int64_t size() const { return size_; }
  int64_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }

  // Grows to at least `size` bytes, doubling; keeps the content.
  void grow(int64_t size);
  // Says how many bytes are in use, of those there are.
  void shrink(int64_t size) { size_ = size; }
  void reset() noexcept;
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void* data_ = nullptr;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

struct PoolStatistics {
  int64_t bytes_in_use;  // in live buffers, whatever their size
  int64_t bytes_pooled;  // kept for reuse
  int64_t bytes_pooled_max;
};

PoolStatistics pool_statistics();

// How much more this thread holds in buffers than when it called `start_meter`, at the peak.
void start_meter();
int64_t metered_peak();

// Whether a kernel may take so many more bytes that nobody reserved, beside `had` that it took so before: for
// what it makes of values whose sizes show only then. A share is always there for it, more only as far as half
// of the limit is free. Without anybody who counts, all is.
bool may_have(int64_t bytes, int64_t had);

// What somebody who counts memory allows. While there are quotas, the pool keeps blocks for reuse only as far
// as these are at most the sum of `kept_max`, and they and all live buffers at most the sum of `held_max`;
// without any quota, as far as a limit of its own. One thread at a time.
class PoolQuota {
 public:
  PoolQuota();
  ~PoolQuota();
  PoolQuota(const PoolQuota&) = delete;
  PoolQuota& operator=(const PoolQuota&) = delete;

  // Both start at 0. What is kept above the sums goes back to the operating system at once.
  void set(int64_t held_max, int64_t kept_max);
  // What `may_have` goes by: kernels may take together what live buffers leave of half of `limit`, and each a
  // `share` whatever they leave. Both start at 0, which counts nothing.
  void hold_to(int64_t limit, int64_t share);

 private:
  int64_t held_max_ = 0;
  int64_t kept_max_ = 0;
  int64_t limit_ = 0;
  int64_t share_ = 0;
};

// Gives everything kept for reuse back to the operating system.
void trim_pool();

// For tests: of the buffers that are made from here on, the one of this number finds no memory; 0: none.
void fail_allocation(int64_t count);

}  // namespace bireme
