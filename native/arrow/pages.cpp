#include "arrow/pages.hpp"

#include <cstdlib>
#include <mutex>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#endif

namespace bireme {

#ifdef __linux__

namespace {

constexpr int64_t kMappedMin = int64_t{4} << 20;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kRegionBytes = int64_t{64} << 20;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasRegions = false;  // the sanitizer watches the edges of what malloc gives
#else
constexpr bool kHasRegions = true;
#endif

bool is_cut(int64_t bytes) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  return kHasRegions && bytes >= kPageBlockMin && bytes < kMappedMin && bytes % page == 0;
}

// Addresses that blocks of middle size are cut from, one after the other, and never given back. Behind the
// last block of a region there are some more.
class Regions {
 public:
  void* cut(int64_t bytes) {
    std::lock_guard lock(mutex_);
    if (left_ < bytes) {
      void* mapped = mmap(nullptr, static_cast<size_t>(kRegionBytes + kPageBlockMin), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) return nullptr;
      next_ = static_cast<char*>(mapped);
      left_ = kRegionBytes;
    }
    char* block = next_;
    next_ += bytes;
    left_ -= bytes;
    return block;
  }

 private:
  std::mutex mutex_;
  char* next_ = nullptr;
  int64_t left_ = 0;
};

Regions& regions() {
  static Regions* const instance = new Regions;
  return *instance;
}

int64_t whole_pages(int64_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Addresses for `length` bytes that start at a huge page, backed by nothing yet; or null.
char* reserve(int64_t length) {
  const int64_t wanted = length + kHugePage;
  void* mapped = mmap(nullptr, static_cast<size_t>(wanted), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<char*>(mapped);
  const int64_t before =
      (kHugePage - static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % kHugePage)) % kHugePage;
  if (before > 0) munmap(first, static_cast<size_t>(before));
  munmap(first + before + length, static_cast<size_t>(kHugePage - before));
  return first + before;
}

}  // namespace

int64_t block_step(int64_t bytes) noexcept {
  return bytes < kMappedMin ? kPageBlockMin : kHugePage;
}

bool is_readable_past(int64_t bytes) noexcept {
  return is_cut(bytes);
}

void* allocate_block(int64_t bytes) noexcept {
  if (is_cut(bytes)) return regions().cut(bytes);
  if (bytes < kMappedMin) return std::aligned_alloc(kBlockAlignment, static_cast<size_t>(bytes));
  const int64_t length = whole_pages(bytes);
  char* block = reserve(length);
  if (block == nullptr) return nullptr;
  if (mprotect(block, static_cast<size_t>(length), PROT_READ | PROT_WRITE) != 0) {
    munmap(block, static_cast<size_t>(length));
    return nullptr;
  }
  madvise(block, static_cast<size_t>(length),
          MADV_HUGEPAGE);  // a wish: whether it is granted does not matter
  return block;
}

bool strip_block(void* block, int64_t bytes) noexcept {
  return is_cut(bytes) && madvise(block, static_cast<size_t>(bytes), MADV_DONTNEED) == 0;
}

void free_block(void* block, int64_t bytes) noexcept {
  if (is_cut(bytes)) {
    strip_block(block, bytes);
  } else if (bytes < kMappedMin) {
    std::free(block);
  } else {
    munmap(block, static_cast<size_t>(whole_pages(bytes)));
  }
}

void* grow_block(void* block, int64_t from, int64_t to) noexcept {
  if (from < kMappedMin) return nullptr;
  const int64_t length = whole_pages(to);
  if (length == whole_pages(from)) return block;
  char* place = reserve(length);
  if (place == nullptr) return nullptr;
  void* moved = mremap(block, static_cast<size_t>(whole_pages(from)), static_cast<size_t>(length),
                       MREMAP_MAYMOVE | MREMAP_FIXED, place);
  if (moved == MAP_FAILED) {
    munmap(place, static_cast<size_t>(length));
    return nullptr;
  }
  madvise(moved, static_cast<size_t>(length), MADV_HUGEPAGE);
  return moved;
}

void use_small_pages(uintptr_t address) noexcept {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  char line[512];
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    uintptr_t first = 0;
    uintptr_t end = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) != 2) continue;
    if (address < first || address >= end) continue;
    madvise(reinterpret_cast<void*>(first), end - first, MADV_NOHUGEPAGE);
    break;
  }
  std::fclose(maps);
}

#else

void* allocate_block(int64_t bytes) noexcept {
  return std::aligned_alloc(kBlockAlignment, static_cast<size_t>(bytes));
}
int64_t block_step(int64_t) noexcept {
  return kPageBlockMin;
}
bool is_readable_past(int64_t) noexcept {
  return false;
}
bool strip_block(void*, int64_t) noexcept {
  return false;
}
void free_block(void* block, int64_t) noexcept {
  std::free(block);
}
void* grow_block(void*, int64_t, int64_t) noexcept {
  return nullptr;
}
void use_small_pages(uintptr_t) noexcept {}

#endif

#ifdef __GLIBC__
void trim_malloc(int64_t bytes_min) noexcept {
  if (static_cast<int64_t>(mallinfo2().fordblks) >= bytes_min) malloc_trim(0);
}
#else
void trim_malloc(int64_t) noexcept {}
#endif

}  // namespace bireme
