"""Bytes that several splits need: the parts of one whole read them once.

Rule: whoever comes first reads, on its own thread, and the others wait for that; when each part has had the bytes they
are let go of, and are gone when the last task that uses them ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from bireme.storage.base import ByteRange

Read = Callable[[Sequence[ByteRange]], list[pa.Buffer]]


class SharedBytes:
    """The bytes of `ranges` for `parts` splits. Any thread."""

    def __init__(self, ranges: tuple[ByteRange, ...], parts: int, read: Read) -> None:
        self.ranges = ranges
        self._left = parts
        self._read = read
        self._lock = threading.Lock()
        self._buffers: list[pa.Buffer] | None = None

    def fetch(self) -> list[pa.Buffer]:
        """The bytes, read if they are not here; blocks. A part may come again: it then reads for itself."""
        with self._lock:
            self._left -= 1
            if self._buffers is None:
                buffers = self._read(self.ranges)
                self._buffers = buffers if self._left > 0 else None
                return buffers
            buffers = self._buffers
            if self._left <= 0:
                self._buffers = None
            return buffers
