#include "arrow/tidy.hpp"

#include <atomic>
#include <cstdint>

#include "arrow/pages.hpp"

#ifdef __linux__
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#endif

namespace bireme {

namespace {

std::atomic<uint64_t> asked{0};
std::atomic<uint64_t> trimmed{0};
thread_local uint64_t told = 0;

}  // namespace

void ask_tidy() noexcept {
  asked.fetch_add(1, std::memory_order_relaxed);
}

bool tidy_is_due() noexcept {
  const uint64_t latest = asked.load(std::memory_order_relaxed);
  if (told == latest) return false;
  told = latest;
  uint64_t before = trimmed.load(std::memory_order_relaxed);
  if (before != latest && trimmed.compare_exchange_strong(before, latest)) trim_malloc(0);
  return true;
}

#ifdef __linux__
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
void use_small_pages(uintptr_t) noexcept {}
#endif

}  // namespace bireme
