"""How runs of bytes get into spill files and back: the seam between the spill store and a backend's own file IO.

Rule: a run starts at a block and fills its last one, so that a file can be open for direct IO.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from bireme.data.packed import checksum, packed_length
from bireme.data.spill_run import Found, Sample, Written
from bireme.storage.local import read_ranges
from bireme.storage.spill_space import in_blocks

_PIECES_A_CALL: Final = 512  # IOV_MAX is 1024 on Linux


class SpillFrames(Protocol):
    """Runs whose pieces are cut into frames, each compressed or as it was. Blocking; any thread."""

    def sample(self, pieces: Sequence[pa.Buffer]) -> list[Sample]:
        """What compression would make of each piece, by a small part of it."""
        ...

    def length_max(self, pieces: Sequence[pa.Buffer]) -> int:
        """The bytes of their run if nothing became shorter."""
        ...

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer], chosen: Sequence[bool]) -> Written:
        """Writes the pieces, those that are chosen compressed. Raises OSError."""
        ...

    def read(self, descriptor: int, offset: int, length: int, content_length: int) -> Found | None:
        """The `content_length` bytes that a run of `length` bytes holds; None where it does not. Raises OSError."""
        ...


class SpillFiles(Protocol):
    """Blocking; any thread. `direct`: its memory is aligned as direct IO needs it. `frames` compress, where it can.
    `scratch_bytes`: the most memory that a call takes beside what is written or read.
    """

    direct: bool
    scratch_bytes: int

    @property
    def frames(self) -> SpillFrames | None: ...

    def set_aside(self, descriptor: int, length: int) -> None:
        """Has the file system set aside so many bytes of a new file, where it can. Never raises."""
        ...

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> Written:
        """Writes the pieces one after the other. Raises OSError."""
        ...

    def read(self, descriptor: int, offset: int, length: int) -> Found | None:
        """Bytes of a file; None where the file ends before they do. Raises OSError."""
        ...


class PlainSpillFiles:
    """Through the page cache, by calls of the standard library."""

    direct = False
    scratch_bytes = 0
    frames = None

    def set_aside(self, descriptor: int, length: int) -> None:
        """Writes through the page cache gain nothing by it."""

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> Written:
        length = packed_length(pieces)
        views = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        views.append(memoryview(bytes(in_blocks(length) - length)))
        while views:
            written = os.pwritev(descriptor, views[:_PIECES_A_CALL], offset)
            offset += written
            views = _after(views, written)
        return Written(length, checksum(pieces))

    def read(self, descriptor: int, offset: int, length: int) -> Found | None:
        found = read_ranges(descriptor, [offset], [length])
        return None if found is None else Found(found[0], checksum(found))


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """What is left to write of `views` after their first `written` bytes."""
    for index, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[index + 1 :]]
        written -= len(view)
    return []
