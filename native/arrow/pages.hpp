// Blocks of memory from the operating system, below the pool of `buffer`.
//
// Rule: what is given back is given back to the operating system, whatever lies beside it. Large blocks are
// mapped, on huge pages where the system grants them. So a table that is read in no order does not wait for
// address translation at every row, and a block that grows keeps its pages: nothing is copied, nothing
// touched twice. Blocks of middle size are cut from regions of addresses; `strip_block` takes their pages,
// and the addresses can be used again. Only small ones come from malloc.
#pragma once

#include <cstdint>

namespace bireme {

inline constexpr int64_t kBlockAlignment = 64;
inline constexpr int64_t kPageBlockMin = int64_t{4} << 10;

// What sizes of blocks near `bytes` (at least kPageBlockMin) should be multiples of, or a part of a page is
// wasted.
int64_t block_step(int64_t bytes) noexcept;

// Whether the 64 bytes past the end of a block of so many bytes can be read: there are others behind it.
bool is_readable_past(int64_t bytes) noexcept;

// `bytes` (a multiple of kBlockAlignment) of undefined content, or null.
void* allocate_block(int64_t bytes) noexcept;

// Gives back what malloc keeps of freed memory, where that is at least `bytes_min`.
void trim_malloc(int64_t bytes_min) noexcept;

// Gives the pages of a block back, but not its addresses: it is as if fresh, of undefined content. False
// where it has no pages of its own; then it is as it was.
bool strip_block(void* block, int64_t bytes) noexcept;

// Gives back what `allocate_block` or `grow_block` gave for these bytes.
void free_block(void* block, int64_t bytes) noexcept;

// The block, with its content, at a larger size; null where that cannot be had without copying, and then the
// block is as it was.
void* grow_block(void* block, int64_t from, int64_t to) noexcept;

// Has the operating system back the mapping in which `address` lies by small pages only: an allocator that
// asks for huge ones holds 2 MiB for each size of block, on each thread. That is for the whole process, is
// never undone, and says nothing of mappings that are yet to come. Only a wish.
void use_small_pages(uintptr_t address) noexcept;

}  // namespace bireme
