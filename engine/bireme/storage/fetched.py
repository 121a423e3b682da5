"""Fetched byte ranges, served to a reader as if they were the whole file.

Rule: a read outside of what was fetched is an error, never a read of the file; what is given out are slices without a
copy. A range that is not fetched, but may be read, takes the place of its bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from bireme.storage.base import ByteRange


class UnreadRange:
    """Stands for the buffer of a range of which only what is asked for is read."""

    def __init__(self, whole: ByteRange, read: Callable[[ByteRange], pa.Buffer]) -> None:
        self._whole = whole
        self._read = read

    def __len__(self) -> int:
        return self._whole.length

    def slice(self, offset: int, length: int) -> pa.Buffer:
        return self._read(replace(self._whole, offset=self._whole.offset + offset, length=length))


class FetchedRanges:
    """A file-like object of `size` bytes of which only fetched ranges can be read; for `pyarrow.PythonFile`, which asks
    for methods of these names. One reader at a time.
    """

    def __init__(self, size: int) -> None:
        self._starts: list[int] = []
        self._buffers: Sequence[pa.Buffer] = ()
        self._size = size
        self._position = 0
        self.closed = False

    def serve(self, ranges: Sequence[ByteRange], buffers: Sequence[pa.Buffer]) -> None:
        """From now on these bytes, and no others; none at all to let go of buffers."""
        self._starts = [byte_range.offset for byte_range in ranges]
        self._buffers = buffers

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def read_buffer(self, length: int) -> pa.Buffer:
        """The next `length` bytes, as a slice of what was fetched."""
        index = bisect_right(self._starts, self._position) - 1
        start = self._position - self._starts[index] if index >= 0 else -1
        if start < 0 or start + length > len(self._buffers[index]):
            raise OSError(f"{length} bytes at {self._position} are outside of the column chunks that the footer names")
        self._position += length
        return self._buffers[index].slice(start, length)

    def read(self, length: int = -1) -> bytes:
        return self.read_buffer(self._size - self._position if length < 0 else length).to_pybytes()  # type: ignore[no-any-return]

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        self.closed = True
