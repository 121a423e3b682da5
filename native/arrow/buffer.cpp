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

// The one pool of the process. Never destroyed: buffers may outlive static destruction in an interpreter's
// exit.
//
// Each class of sizes has its own lock, so threads meet only where they want blocks of one size at one
// moment.
class Pool {
 public:
  void* take(int64_t capacity) {
    in_use_.fetch_add(capacity, std::memory_order_relaxed);
    if (capacity >= kPooledMin) {
      Shelf& shelf = shelves_[class_of(capacity)];
      std::lock_guard lock(shelf.mutex);
      if (!shelf.free.empty()) {
        void* block = shelf.free.back();
        shelf.free.pop_back();
        pooled_.fetch_sub(capacity, std::memory_order_relaxed);
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
    if (capacity < kPooledMin || !keep(block, capacity)) free_block(block, capacity);
  }

  // The block at a larger size, if that takes no copy; else null, and it is as it was.
  void* grow(void* block, int64_t from, int64_t to) noexcept {
    void* larger = grow_block(block, from, to);
    if (larger != nullptr) in_use_.fetch_add(to - from, std::memory_order_relaxed);
    return larger;
  }

  void add_quota(int64_t owners, int64_t bytes) {
    std::lock_guard lock(quota_mutex_);
    owners_ += owners;
    quotas_ += bytes;
    limit_.store(owners_ == 0 ? kPooledBytesMax : quotas_, std::memory_order_relaxed);
    shrink_to(limit_.load(std::memory_order_relaxed));
  }

  void trim() { shrink_to(0); }

  PoolStatistics statistics() const {
    return {in_use_.load(std::memory_order_relaxed), pooled_.load(std::memory_order_relaxed),
            limit_.load(std::memory_order_relaxed)};
  }

 private:
  struct Shelf {
    std::mutex mutex;
    std::vector<void*> free;
  };

  // Remembers the block where the limit allows it.
  bool keep(void* block, int64_t capacity) noexcept {
    if (pooled_.fetch_add(capacity, std::memory_order_relaxed) + capacity <=
        limit_.load(std::memory_order_relaxed)) {
      Shelf& shelf = shelves_[class_of(capacity)];
      std::lock_guard lock(shelf.mutex);
      try {
        shelf.free.push_back(block);
        return true;
      } catch (const std::bad_alloc&) {
        // No room to remember it: it is given back like one above the limit.
      }
    }
    pooled_.fetch_sub(capacity, std::memory_order_relaxed);
    return false;
  }

  void shrink_to(int64_t bytes) {
    for (int index = kClasses - 1; index >= 0 && pooled_.load(std::memory_order_relaxed) > bytes; --index) {
      const int64_t capacity = int64_t{4 + index % 4} << (index / 4 + 14 - 2);
      Shelf& shelf = shelves_[index];
      std::lock_guard lock(shelf.mutex);
      while (!shelf.free.empty() && pooled_.load(std::memory_order_relaxed) > bytes) {
        free_block(shelf.free.back(), capacity);
        shelf.free.pop_back();
        pooled_.fetch_sub(capacity, std::memory_order_relaxed);
      }
    }
  }

  Shelf shelves_[kClasses];
  std::atomic<int64_t> pooled_{0};
  std::atomic<int64_t> limit_{kPooledBytesMax};
  std::atomic<int64_t> in_use_{0};
  std::mutex quota_mutex_;
  int64_t owners_ = 0;
  int64_t quotas_ = 0;
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

Buffer::Buffer(int64_t size) : size_(size), capacity_(block_size(size)) {
  data_ = pool().take(capacity_);
}

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

PoolStatistics pool_statistics() {
  return pool().statistics();
}
void trim_pool() {
  pool().trim();
}

PoolQuota::PoolQuota() {
  pool().add_quota(1, 0);
}
PoolQuota::~PoolQuota() {
  pool().add_quota(-1, -bytes_);
}
void PoolQuota::set(int64_t bytes) {
  pool().add_quota(0, bytes - bytes_);
  bytes_ = bytes;
}

}  // namespace bireme
