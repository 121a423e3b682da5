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
from bireme.units import KIB

# Of a usual header. One with long texts among its statistics takes more.
_HEADER_BYTES: Final = 256
_HEADER_BYTES_MAX: Final = 1 << 20

_DICTIONARY: Final = 2
# Fields of a PageHeader that describe pages of values, in either version.
_DATA_HEADERS: Final = (5, 8)
# And in them, of their encoding; which encodings are positions in a dictionary.
_ENCODINGS: Final = ((5, 2), (8, 4))
_CODES: Final = (2, 8)
# Smaller dictionaries are read with every part.
_DICTIONARY_BYTES_MIN: Final = 16 * KIB


class PagePlaces(NamedTuple):
    """The data pages of a chunk: where each starts in the file and where the last one ends, and the same of their rows
    in the row group. `dictionary` is the place of the dictionary page, where there is one; pages from number `coded` on
    do without it, since writers give a dictionary up once it is full.
    """

    dictionary: Place | None
    offsets: array[int]
    first_rows: array[int]
    coded: int

    @property
    def dictionary_share(self) -> float:
        """Which part of the pages needs the dictionary."""
        return 0.0 if self.dictionary is None else self.coded / (len(self.offsets) - 1)

    def dictionary_for(self, first: int) -> Place | None:
        """The place of the dictionary, where rows from `first` on need one."""
        return self.dictionary if bisect_right(self.first_rows, first) - 1 < self.coded else None

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
            found = _indexed(os.pread(descriptor, index[1], index[0]), whole, rows)
            return _with_coded(descriptor, found, whole)
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
    return _checked(PagePlaces(dictionary, offsets, first_rows, len(offsets) - 1), whole)


def _with_coded(descriptor: int, places: PagePlaces, whole: ByteRange) -> PagePlaces:
    """An index does not tell which pages need the dictionary: their headers do, where that is worth reading them."""
    if places.dictionary is None or places.dictionary[1] < _DICTIONARY_BYTES_MIN:
        return places
    coded = 0
    for number, offset in enumerate(places.offsets[:-1], 1):
        header, _ = _header_at(descriptor, offset, whole.end)
        if _is_coded(header):
            coded = number
    return places._replace(coded=coded)


def _is_coded(header: Struct) -> bool:
    """Whether a page holds positions in the dictionary."""
    return any(header[number][field] in _CODES for number, field in _ENCODINGS if number in header)


def _walked(descriptor: int, whole: ByteRange, rows: int) -> PagePlaces:
    offsets, first_rows = array("q"), array("q")
    dictionary: Place | None = None
    offset, row, coded = whole.offset, 0, 0
    while row < rows:
        header, length = _header_at(descriptor, offset, whole.end)
        nbytes = length + header[3]
        described = next((header[number] for number in _DATA_HEADERS if number in header), None)
        if described is not None:
            offsets.append(offset)
            first_rows.append(row)
            row += described[1]
            coded = len(offsets) if _is_coded(header) else coded
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
    return _checked(PagePlaces(dictionary, offsets, first_rows, coded), whole)


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
