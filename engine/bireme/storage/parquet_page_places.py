"""Where the pages of a flat column chunk lie, so that some rows of a row group can be read without the others.

Rule: nothing is believed. Places are given only where pages follow each other within the chunk and have just its rows;
else None, and the chunk is read whole. A file's offset index tells; without one, the headers of pages are read, one
after the other, without what lies between them. What is read of a page is checked again when it is decoded.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bireme.storage.base import ByteRange
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_footer import Place
from bireme.storage.thrift_compact import Struct, read_struct

# Of a usual header. One with long texts among its statistics takes more.
_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = 1 << 20

_DICTIONARY: Final = 2
# Fields of a PageHeader that describe pages of values, in either version.
_DATA_HEADERS: Final = (5, 8)


class PagePlaces(NamedTuple):
    """The data pages of a chunk: where each starts in the file and where the last one ends, and the same of their rows
    in the row group. `dictionary` is the place of the dictionary page, where there is one.
    """

    dictionary: Place | None
    offsets: array[int]
    first_rows: array[int]

    def covering(self, first: int, end: int) -> tuple[int, int, int]:
        """The pages that hold the rows from `first` to before `end`: offset, bytes, and the row they begin with."""
        low = bisect_right(self.first_rows, first) - 1
        high = bisect_left(self.first_rows, end)
        return self.offsets[low], self.offsets[high] - self.offsets[low], self.first_rows[low]

    @property
    def stored_bytes(self) -> int:
        """Of all pages of values."""
        return self.offsets[-1] - self.offsets[0]


def page_places(file: ParquetFile, row_group: int, leaf: int) -> PagePlaces | None:
    """The places of a chunk's pages; None where they are not known."""
    whole = file.chunk_range(row_group, leaf)
    rows = file.row_group_rows[row_group]
    try:
        descriptor = os.open(file.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            index = file.chunk(row_group, leaf).offset_index
            if index is None:
                return _walked(descriptor, whole, rows)
            return _indexed(os.pread(descriptor, index[1], index[0]), whole, rows)
        finally:
            os.close(descriptor)
    except (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError):
        return None


def _indexed(content: bytes, whole: ByteRange, rows: int) -> PagePlaces:
    locations: list[Any] = read_struct(content, 0)[0][1]
    offsets = array("q", [location[1] for location in locations])
    first_rows = array("q", [location.get(3, 0) for location in locations])
    # Between pages nothing is expected, and what lies there would do no harm.
    offsets.append(locations[-1][1] + locations[-1][2])
    first_rows.append(rows)
    start = offsets[0]
    dictionary = (whole.offset, start - whole.offset) if start > whole.offset else None
    return _checked(PagePlaces(dictionary, offsets, first_rows), whole)


def _walked(descriptor: int, whole: ByteRange, rows: int) -> PagePlaces:
    offsets, first_rows = array("q"), array("q")
    dictionary: Place | None = None
    offset, row = whole.offset, 0
    while row < rows:
        header, length = _header_at(descriptor, offset, whole.end)
        nbytes = length + header[3]
        described = next((header[number] for number in _DATA_HEADERS if number in header), None)
        if described is not None:
            offsets.append(offset)
            first_rows.append(row)
            row += described[1]
        elif header[1] == _DICTIONARY and not offsets:
            dictionary = offset, nbytes
        else:
            raise ValueError("a page of another kind")
        if nbytes <= 0:
            raise ValueError("a page without bytes")
        offset += nbytes
    offsets.append(offset)
    first_rows.append(row)
    if row != rows:
        raise ValueError("pages have more rows than the row group")
    return _checked(PagePlaces(dictionary, offsets, first_rows), whole)


def _header_at(descriptor: int, offset: int, end: int) -> tuple[Struct, int]:
    """A page's header and its length."""
    length = _HEADER_BYTES
    while True:
        content = os.pread(descriptor, min(length, end - offset), offset)
        try:
            return read_struct(content, 0)
        except (ValueError, IndexError):
            if length >= min(_HEADER_BYTES_MAX, end - offset):
                raise
            length *= 16


def _checked(places: PagePlaces, whole: ByteRange) -> PagePlaces:
    """ValueError where the pages are not those of the chunk."""
    offsets, first_rows = places.offsets, places.first_rows
    are_inside = offsets[0] >= whole.offset and offsets[-1] <= whole.end
    ascend = all(a < b for a, b in pairwise(offsets)) and all(a < b for a, b in pairwise(first_rows))
    if not are_inside or not ascend or first_rows[0] != 0:
        raise ValueError("pages do not follow each other within the chunk")
    return places
