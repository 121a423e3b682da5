#include "arrow/tidy.hpp"

#include <atomic>
#include <cstdint>

#include "arrow/pages.hpp"

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

}  // namespace bireme
