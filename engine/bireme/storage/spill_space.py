"""Where in the segment files of a spill folder batches go. Pure: knows what is free, touches no file.

Rule: room that a dropped batch leaves is used again before a file grows, the oldest segment first, so that the younger
ones run empty and go. Everything is counted in whole blocks, in which files are written.
"""

from __future__ import annotations

from bisect import insort
from typing import Final

BLOCK_BYTES: Final = 4096


def in_blocks(nbytes: int) -> int:
    """The bytes of the blocks that hold `nbytes`."""
    return -(-nbytes // BLOCK_BYTES) * BLOCK_BYTES


class Segment:
    """A file of `size` bytes: what is taken of it, and what lies free between."""

    __slots__ = ("free", "number", "size", "taken")

    def __init__(self, number: int) -> None:
        self.number = number
        self.size = 0
        self.taken = 0
        self.free: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<Segment {self.number}: {self.taken} of {self.size} bytes taken>"

    def take(self, length: int, size_max: int) -> int | None:
        """The offset of `length` bytes: in a gap, else at the end, where that may grow so far."""
        for index, (start, end) in enumerate(self.free):
            if end - start >= length:
                if end - start == length:
                    del self.free[index]
                else:
                    self.free[index] = (start + length, end)
                self.taken += length
                return start
        if self.size and self.size + length > size_max:
            return None
        self.size += length
        self.taken += length
        return self.size - length

    def give_back(self, offset: int, length: int) -> None:
        """Frees a part of what was taken."""
        self.taken -= length
        insort(self.free, (offset, offset + length))
        joined: list[tuple[int, int]] = []
        for start, end in self.free:
            if joined and joined[-1][1] == start:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        self.free = joined

    def trim(self) -> None:
        """Takes the gap at the end of the file out of it."""
        if self.free and self.free[-1][1] == self.size:
            self.size = self.free.pop()[0]


class Space:
    """The segments of one folder, oldest first. `number` names a new one among all of the store."""

    def __init__(self, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        self.segments: dict[int, Segment] = {}

    @property
    def size(self) -> int:
        """Bytes of all files, gaps included."""
        return sum([segment.size for segment in self.segments.values()])

    def take(self, length: int, number: int) -> tuple[Segment, int]:
        """Room for `length` bytes (whole blocks): an old segment and an offset, or a new one with this number."""
        for segment in self.segments.values():
            if segment.size - segment.taken >= length or segment.size + length <= self._segment_bytes:
                offset = segment.take(length, self._segment_bytes)
                if offset is not None:
                    return segment, offset
        segment = self.segments[number] = Segment(number)
        segment.take(length, self._segment_bytes)
        return segment, 0

    def give_back(self, segment: Segment, offset: int, length: int) -> bool:
        """Frees what was taken. Says whether the segment is empty now, and so is gone."""
        segment.give_back(offset, length)
        if segment.taken:
            return False
        self.segments.pop(segment.number, None)
        return True
