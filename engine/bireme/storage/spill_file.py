"""How runs of bytes get into spill files and back: the seam between the spill store and a backend's own file IO.

Rule: a run starts at a block and fills its last one, so that a file can be open for direct IO.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from bireme.data.packed import checksum, packed_length
from bireme.storage.local import read_ranges
from bireme.storage.spill_space import in_blocks

_PIECES_A_CALL: Final = 512  # IOV_MAX is 1024 on Linux


class SpillFiles(Protocol):
    """Blocking; any thread. `direct`: its memory is aligned as direct IO needs it."""

    direct: bool

    def set_aside(self, descriptor: int, length: int) -> None:
        """Has the file system set aside so many bytes of a new file, where it can. Never raises."""
        ...

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> int:
        """Writes the pieces one after the other; gives their checksum. Raises OSError."""
        ...

    def read(self, descriptor: int, offset: int, length: int) -> tuple[pa.Buffer, int] | None:
        """Bytes of a file and their checksum; None where the file ends before they do. Raises OSError."""
        ...


class PlainSpillFiles:
    """Through the page cache, by calls of the standard library."""

    direct = False

    def set_aside(self, descriptor: int, length: int) -> None:
        """Writes through the page cache gain nothing by it."""

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> int:
        length = packed_length(pieces)
        views = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        views.append(memoryview(bytes(in_blocks(length) - length)))
        while views:
            written = os.pwritev(descriptor, views[:_PIECES_A_CALL], offset)
            offset += written
            views = _after(views, written)
        return checksum(pieces)

    def read(self, descriptor: int, offset: int, length: int) -> tuple[pa.Buffer, int] | None:
        found = read_ranges(descriptor, [offset], [length])
        return None if found is None else (found[0], checksum(found))


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """What is left to write of `views` after their first `written` bytes."""
    for index, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[index + 1 :]]
        written -= len(view)
    return []
