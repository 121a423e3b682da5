"""Fixed-size pages of page-locked host memory; emulated with ordinary memory where there is no GPU.

Pages never move and never fragment: a batch takes as many as it needs, from anywhere in the pool. The pool starts
small and grows by blocks up to its limit, because page-locked memory is taken from everybody. Blocking copies; any
thread may store and load, only the loop allocates and frees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bireme.units import MIB, format_bytes

PAGE_BYTES: Final = MIB
_BLOCK_PAGES: Final = 16


@dataclass(frozen=True, slots=True)
class Pages:
    """`nbytes` bytes spread over pages, in order."""

    pages: tuple[memoryview, ...]
    nbytes: int


class PinnedPool:
    """Up to `bytes_max` bytes in pages."""

    def __init__(self, bytes_max: int) -> None:
        self._pages_max = bytes_max // PAGE_BYTES
        self._free: list[memoryview] = []
        self._made = 0

    def __repr__(self) -> str:
        return (
            f"<PinnedPool: {self.used} of {self._pages_max} pages used, {format_bytes(self._made * PAGE_BYTES)} made>"
        )

    @property
    def used(self) -> int:
        """Pages that are taken."""
        return self._made - len(self._free)

    def take(self, nbytes: int) -> Pages | None:
        """Pages for `nbytes` bytes, or None when the pool has too few left."""
        needed = -(-nbytes // PAGE_BYTES)
        if needed > self._pages_max - self.used:
            return None
        while len(self._free) < needed:
            self._grow()
        taken = tuple(self._free.pop() for _ in range(needed))
        return Pages(taken, nbytes)

    def give_back(self, pages: Pages) -> None:
        self._free.extend(pages.pages)

    def _grow(self) -> None:
        count = min(_BLOCK_PAGES, self._pages_max - self._made)
        block = memoryview(bytearray(count * PAGE_BYTES))
        self._free.extend(block[at * PAGE_BYTES : (at + 1) * PAGE_BYTES] for at in range(count))
        self._made += count


def store(pages: Pages, source: memoryview) -> None:
    """Copies `source` into the pages."""
    source = source.cast("B")
    for index, page in enumerate(pages.pages):
        piece = source[index * PAGE_BYTES : (index + 1) * PAGE_BYTES]
        page[: len(piece)] = piece


def load(pages: Pages) -> pa.Buffer:
    """Copies the pages into one buffer of fresh memory."""
    target = pa.allocate_buffer(pages.nbytes)
    view = memoryview(target).cast("B")
    for index, page in enumerate(pages.pages):
        piece = view[index * PAGE_BYTES : (index + 1) * PAGE_BYTES]
        piece[:] = page[: len(piece)]
    return target
