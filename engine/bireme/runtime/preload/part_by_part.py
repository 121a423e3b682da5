"""Bytes of a run of splits, read when a part of them is asked for.

Rule: whoever decodes a run asks for the bytes of one split after the other, so no more than those of one are in memory,
and they are in that core's cache when they are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import pyarrow as pa

from bireme.storage.base import ByteRange

Read = Callable[[Sequence[ByteRange]], list[pa.Buffer]]


class PartByPart(Sequence[pa.Buffer]):
    """The bytes of `ranges`, one buffer each; reading them blocks."""

    def __init__(self, ranges: tuple[ByteRange, ...], read: Read) -> None:
        self._ranges = ranges
        self._read = read

    def __len__(self) -> int:
        return len(self._ranges)

    @overload
    def __getitem__(self, index: int) -> pa.Buffer: ...

    @overload
    def __getitem__(self, index: slice) -> list[pa.Buffer]: ...

    def __getitem__(self, index: int | slice) -> pa.Buffer | list[pa.Buffer]:
        if isinstance(index, slice):
            return self._read(self._ranges[index])
        return self._read((self._ranges[index],))[0]
