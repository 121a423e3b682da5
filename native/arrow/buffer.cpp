#include "arrow/buffer.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "arrow/pages.hpp"

namespace bireme {

namespace {

constexpr int64_t kAlignment = kBlockAlignment;
constexpr int64_t kPadding = 64;
constexpr int64_t kPooledMin = 16 * 1024;
constexpr int64_t kPooledBytesMax = int64_t{128} << 20;
// Size classes: four steps per power of two, so at most a fifth of a block is unused.
constexpr int kClasses = 4 * 50;

int class_of(int64_t capacity) {
  const int log = 63 - std::countl_zero(static_cast<uint64_t>(capacity));
  return 4 * (log - 14) + static_cast<int>((capacity >> (log - 2)) & 3);
}

// The capacity of the block that serves `size` bytes plus padding.
int64_t block_size(int64_t size) {
  const int64_t wanted = size + kPadding;
  if (wanted < kPooledMin) return (wanted + kAlignment - 1) / kAlignment * kAlignment;
  const int log = 63 - std::countl_zero(static_cast<uint64_t>(wanted));
  const int64_t step = int64_t{1} << (log - 2);
  return (wanted + step - 1) / step * step;
}

// The one pool of the process. Never destroyed: buffers may outlive static destruction in an interpreter's exit.
class Pool {
 public:
  void* take(int64_t capacity) {
    in_use_.fetch_add(capacity, std::memory_order_relaxed);
    if (capacity >= kPooledMin) {
      std::lock_guard lock(mutex_);
      auto& free = free_[class_of(capacity)];
      if (!free.empty()) {
        void* block = free.back();
        free.pop_back();
        pooled_ -= capacity;
        return block;
      }
    }
    void* block = allocate_block(capacity);
    if (block == nullptr) {
      in_use_.fetch_sub(capacity, std::memory_order_relaxed);
      throw std::bad_alloc();
    }
    return block;
  }

  void give(void* block, int64_t capacity) noexcept {
    in_use_.fetch_sub(capacity, std::memory_order_relaxed);
    if (capacity >= kPooledMin) {
      std::lock_guard lock(mutex_);
      if (pooled_ + capacity <= limit_) {
        try {
          free_[class_of(capacity)].push_back(block);
          pooled_ += capacity;
          return;
        } catch (const std::bad_alloc&) {
          // No room to remember it: fall through and free it.
        }
      }
    }
    free_block(block, capacity);
  }

  // The block at a larger size, if that takes no copy; else null, and it is as it was.
  void* grow(void* block, int64_t from, int64_t to) noexcept {
    void* larger = grow_block(block, from, to);
    if (larger != nullptr) in_use_.fetch_add(to - from, std::memory_order_relaxed);
    return larger;
  }

  void set_limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
    shrink_to(bytes);
  }

  void trim() {
    std::lock_guard lock(mutex_);
    shrink_to(0);
  }

  PoolStatistics statistics() {
    std::lock_guard lock(mutex_);
    return {in_use_.load(std::memory_order_relaxed), pooled_, limit_};
  }

 private:
  void shrink_to(int64_t bytes) {
    for (int index = kClasses - 1; index >= 0 && pooled_ > bytes; --index) {
      auto& free = free_[index];
      const int64_t capacity = int64_t{4 + index % 4} << (index / 4 + 14 - 2);
      while (!free.empty() && pooled_ > bytes) {
        free_block(free.back(), capacity);
        free.pop_back();
        pooled_ -= capacity;
      }
    }
  }

  std::mutex mutex_;
  std::vector<void*> free_[kClasses];
  int64_t pooled_ = 0;
  int64_t limit_ = kPooledBytesMax;
  std::atomic<int64_t> in_use_{0};
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

Buffer::Buffer(int64_t size) : size_(size), capacity_(block_size(size)) { data_ = pool().take(capacity_); }

Buffer Buffer::zeroed(int64_t size) {
  Buffer buffer(size);
  std::memset(buffer.data(), 0, static_cast<size_t>(size));
  return buffer;
}

void Buffer::grow(int64_t size) {
  if (data_ != nullptr && size + kPadding <= capacity_) {
    size_ = size;
    return;
  }
  const int64_t used = size_;
  const int64_t wanted = size > 2 * used ? size : 2 * used;
  if (data_ != nullptr) {
    void* larger = pool().grow(data_, capacity_, block_size(wanted));
    if (larger != nullptr) {
      data_ = larger;
      capacity_ = block_size(wanted);
      size_ = size;
      return;
    }
  }
  Buffer larger(wanted);
  if (used > 0) std::memcpy(larger.data(), data_, static_cast<size_t>(used));
  larger.size_ = size;
  swap(larger);
}

void Buffer::reset() noexcept {
  if (data_ != nullptr) pool().give(data_, capacity_);
  data_ = nullptr;
  size_ = capacity_ = 0;
}

PoolStatistics pool_statistics() { return pool().statistics(); }
void set_pool_limit(int64_t bytes) { pool().set_limit(bytes); }
void trim_pool() { pool().trim(); }

}  // namespace bireme
