#include "arrow/buffer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "arrow/pages.hpp"

namespace bireme {

namespace {

constexpr int64_t kAlignment = kBlockAlignment;
constexpr int64_t kPadding = 64;
constexpr int64_t kPooledMin = kPageBlockMin;
constexpr int kPooledMinLog = std::countr_zero(static_cast<uint64_t>(kPooledMin));
constexpr auto kTrimPause = std::chrono::milliseconds(100);
constexpr int64_t kUnlimited = int64_t{1} << 60;
constexpr int64_t kPooledBytesMax = int64_t{128} << 20;
// Size classes: four steps per power of two, so at most a fifth of a block is unused.
constexpr int kClasses = 4 * 50;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

int class_of(int64_t capacity) {
  const int log = 63 - std::countl_zero(static_cast<uint64_t>(capacity));
  return 4 * (log - kPooledMinLog) + static_cast<int>((capacity >> (log - 2)) & 3);
}

int64_t capacity_of(int index) {
  return int64_t{4 + index % 4} << (index / 4 + kPooledMinLog - 2);
}

// The smallest capacity of a class that holds so many bytes, at least kPooledMin.
int64_t in_class(int64_t bytes) {
  const int log = 63 - std::countl_zero(static_cast<uint64_t>(bytes));
  const int64_t step = std::max(int64_t{1} << (log - 2), block_step(bytes));
  return (bytes + step - 1) / step * step;
}

// The capacity of the block that serves `size` bytes plus padding, where no other block follows it.
int64_t block_size(int64_t size) {
  const int64_t wanted = size + kPadding;
  if (wanted <= kPooledMin) return (wanted + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t bare = in_class(std::max(size, kPooledMin));
  return is_readable_past(bare) ? bare : in_class(wanted);
}

// Bytes that this thread has taken, less those it has given back, since its meter was started, and their
// peak.
struct Meter {
  int64_t now = 0;
  int64_t peak = 0;
};
thread_local Meter meter;

// The one pool of the process. Never destroyed: buffers may outlive static destruction in an interpreter's
// exit.
//
// Each class of sizes has its own lock, so threads meet only where they want blocks of one size at one
// moment. Where too much is kept, what was kept longest goes, of whatever size: it is what nobody asks for
// now.
class Pool {
 public:
  void* take(int64_t capacity) {
    if (until_failure_.load(std::memory_order_relaxed) > 0 &&
        until_failure_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      throw std::bad_alloc();
    }
    count(capacity);
    void* stripped = nullptr;
    if (capacity >= kPooledMin) {
      Shelf& shelf = shelves_[class_of(capacity)];
      std::lock_guard lock(shelf.mutex);
      if (void* block = shelf.newest()) {
        kept_.fetch_sub(capacity, std::memory_order_relaxed);
        return block;
      }
      if (!shelf.stripped.empty()) {
        stripped = shelf.stripped.back();
        shelf.stripped.pop_back();
      }
    }
    make_way();
    void* block = stripped != nullptr ? stripped : allocate_block(capacity);
    if (block == nullptr) {
      count(-capacity);
      throw std::bad_alloc();
    }
    return block;
  }

  void give(void* block, int64_t capacity) noexcept {
    count(-capacity);
    if (capacity < kPooledMin) {
      free_block(block, capacity);
    } else if (kept_max_.load(std::memory_order_relaxed) == 0 || !keep(block, capacity)) {
      let_go(block, capacity);
    } else {
      shrink_to(allowed());
    }
  }

  void fail_at(int64_t count) { until_failure_.store(count, std::memory_order_relaxed); }

  // The block at a larger size, if that takes no copy; else null, and it is as it was.
  void* grow(void* block, int64_t from, int64_t to) noexcept {
    void* larger = grow_block(block, from, to);
    if (larger != nullptr) {
      count(to - from);
      make_way();
    }
    return larger;
  }

  void add_quota(int64_t owners, int64_t held, int64_t kept) {
    std::lock_guard lock(quota_mutex_);
    owners_ += owners;
    held_quotas_ += held;
    kept_quotas_ += kept;
    kept_max_.store(owners_ == 0 ? kPooledBytesMax : kept_quotas_, std::memory_order_relaxed);
    held_max_.store(owners_ == 0 ? kUnlimited : held_quotas_, std::memory_order_relaxed);
    shrink_to(allowed());
  }

  void add_limit(int64_t limit, int64_t share) {
    std::lock_guard lock(quota_mutex_);
    limits_ += limit;
    shares_ += share;
    limit_.store(limits_ == 0 ? kUnlimited : limits_, std::memory_order_relaxed);
    share_.store(limits_ == 0 ? kUnlimited : shares_, std::memory_order_relaxed);
  }

  bool may_have(int64_t bytes, int64_t had) const {
    if (bytes + had <= share_.load(std::memory_order_relaxed)) return true;
    // The other half is for the shares of all.
    return bytes <= limit_.load(std::memory_order_relaxed) / 2 - in_use_.load(std::memory_order_relaxed);
  }

  void trim() { shrink_to(0); }

  PoolStatistics statistics() const {
    return {in_use_.load(std::memory_order_relaxed), kept_.load(std::memory_order_relaxed),
            kept_max_.load(std::memory_order_relaxed)};
  }

 private:
  struct Kept {
    void* block;
    uint64_t since;
  };

  // Of one class. Blocks come and are taken at the back, whose bytes may still be in a processor's cache.
  struct Shelf {
    std::mutex mutex;
    std::deque<Kept> kept;
    std::vector<void*> stripped;  // addresses without pages: they take no memory
    std::atomic<uint64_t> oldest{
        kNever};  // since when the front is kept; written with the lock, read without

    void put(void* block, uint64_t since) {
      kept.push_back({block, since});
      mark();
    }
    void* newest() {
      if (kept.empty()) return nullptr;
      void* block = kept.back().block;
      kept.pop_back();
      mark();
      return block;
    }
    void* longest() {
      if (kept.empty()) return nullptr;
      void* block = kept.front().block;
      kept.pop_front();
      mark();
      return block;
    }
    void mark() { oldest.store(kept.empty() ? kNever : kept.front().since, std::memory_order_relaxed); }
  };

  void count(int64_t bytes) {
    in_use_.fetch_add(bytes, std::memory_order_relaxed);
    meter.now += bytes;
    meter.peak = std::max(meter.peak, meter.now);
  }

  // What may be kept beside what is in use.
  int64_t allowed() const {
    const int64_t beside =
        held_max_.load(std::memory_order_relaxed) - in_use_.load(std::memory_order_relaxed);
    return std::max(int64_t{0}, std::min(beside, kept_max_.load(std::memory_order_relaxed)));
  }

  // Memory will be taken from the operating system: what is kept gives way to it, and what malloc keeps. That
  // is looked at now and then only, and where there is little room beside it.
  void make_way() {
    const int64_t most = allowed();
    if (kept_.load(std::memory_order_relaxed) > most) shrink_to(most);
    const int64_t held_max = held_max_.load(std::memory_order_relaxed);
    if (in_use_.load(std::memory_order_relaxed) < held_max / 2) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    auto last = trimmed_at_.load(std::memory_order_relaxed);
    if (now - last < kTrimPause || !trimmed_at_.compare_exchange_strong(last, now)) return;
    trim_malloc(held_max / 32);
  }

  // The pages of the block go back to the operating system.
  void let_go(void* block, int64_t capacity) noexcept {
    if (capacity < kPooledMin || !strip_block(block, capacity)) {
      free_block(block, capacity);
      return;
    }
    Shelf& shelf = shelves_[class_of(capacity)];
    std::lock_guard lock(shelf.mutex);
    try {
      shelf.stripped.push_back(block);
    } catch (const std::bad_alloc&) {
      // Addresses without memory are lost, no more.
    }
  }

  // Remembers the block for reuse, whatever the limits.
  bool keep(void* block, int64_t capacity) noexcept {
    Shelf& shelf = shelves_[class_of(capacity)];
    std::lock_guard lock(shelf.mutex);
    try {
      shelf.put(block, gifts_.fetch_add(1, std::memory_order_relaxed));
    } catch (const std::bad_alloc&) {
      return false;
    }
    kept_.fetch_add(capacity, std::memory_order_relaxed);
    return true;
  }

  void shrink_to(int64_t bytes) noexcept {
    while (kept_.load(std::memory_order_relaxed) > bytes) {
      const int index = longest_kept();
      if (index < 0) return;
      if (void* block = longest_of(shelves_[index])) {
        let_go(block, capacity_of(index));
        kept_.fetch_sub(capacity_of(index), std::memory_order_relaxed);
      }
    }
  }

  // The class whose front is kept longest; -1 where nothing is kept.
  int longest_kept() const {
    int found = -1;
    uint64_t least = kNever;
    for (int index = 0; index < kClasses; ++index) {
      const uint64_t since = shelves_[index].oldest.load(std::memory_order_relaxed);
      if (since < least) {
        least = since;
        found = index;
      }
    }
    return found;
  }

  static void* longest_of(Shelf& shelf) {
    std::lock_guard lock(shelf.mutex);
    return shelf.longest();
  }

  Shelf shelves_[kClasses];
  std::atomic<uint64_t> gifts_{0};
  std::atomic<int64_t> kept_{0};
  std::atomic<int64_t> kept_max_{kPooledBytesMax};
  std::atomic<int64_t> held_max_{kUnlimited};
  std::atomic<int64_t> limit_{kUnlimited};
  std::atomic<int64_t> share_{kUnlimited};
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> until_failure_{0};
  std::atomic<std::chrono::steady_clock::duration> trimmed_at_{std::chrono::steady_clock::duration::zero()};
  std::mutex quota_mutex_;
  int64_t owners_ = 0;
  int64_t held_quotas_ = 0;
  int64_t kept_quotas_ = 0;
  int64_t limits_ = 0;
  int64_t shares_ = 0;
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
void start_meter() {
  meter = {};
}
int64_t metered_peak() {
  return meter.peak;
}
bool may_have(int64_t bytes, int64_t had) {
  return pool().may_have(bytes, had);
}
void trim_pool() {
  pool().trim();
}
void fail_allocation(int64_t count) {
  pool().fail_at(count);
}

PoolQuota::PoolQuota() {
  pool().add_quota(1, 0, 0);
}
PoolQuota::~PoolQuota() {
  pool().add_quota(-1, -held_max_, -kept_max_);
  pool().add_limit(-limit_, -share_);
}
void PoolQuota::set(int64_t held_max, int64_t kept_max) {
  pool().add_quota(0, held_max - held_max_, kept_max - kept_max_);
  held_max_ = held_max;
  kept_max_ = kept_max;
}
void PoolQuota::hold_to(int64_t limit, int64_t share) {
  pool().add_limit(limit - limit_, share - share_);
  limit_ = limit;
  share_ = share;
}

}  // namespace bireme
