// Memory for output columns: aligned, padded, and reused.
//
// Rule: a page touched for the first time costs about ten times as much as one that is reused, so blocks of
// 16 KiB and more go back to a bounded pool instead of the operating system. Blocks are 64-byte aligned and
// readable (not meaningful) for 64 bytes past `size`, so kernels may read whole vectors; they may never write
// there.
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

// What somebody who counts memory lets the pool keep. While there are quotas, the pool keeps at most their
// sum; without any, a limit of its own. One thread at a time.
class PoolQuota {
 public:
  PoolQuota();
  ~PoolQuota();
  PoolQuota(const PoolQuota&) = delete;
  PoolQuota& operator=(const PoolQuota&) = delete;

  // Starts at 0. What is above the sum goes back to the operating system at once.
  void set(int64_t bytes);

 private:
  int64_t bytes_ = 0;
};

// Gives everything kept for reuse back to the operating system.
void trim_pool();

}  // namespace bireme
