// Blocks of memory from the operating system, below the pool of `buffer`.
//
// Rule: large blocks are mapped, on huge pages where the system grants them. So a table that is read in no order does not wait
// for address translation at every row, and a block that grows keeps its pages: nothing is copied, nothing touched twice.
#pragma once

#include <cstdint>

namespace bireme {

inline constexpr int64_t kBlockAlignment = 64;

// `bytes` (a multiple of kBlockAlignment) of undefined content, or null.
void* allocate_block(int64_t bytes) noexcept;

// Gives back what `allocate_block` or `grow_block` gave for these bytes.
void free_block(void* block, int64_t bytes) noexcept;

// The block, with its content, at a larger size; null where that cannot be had without copying, and then the block is as it was.
void* grow_block(void* block, int64_t from, int64_t to) noexcept;

}  // namespace bireme
