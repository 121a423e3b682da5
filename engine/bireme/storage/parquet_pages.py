"""Rows of a row group that cannot meet a filter, by what a file's page index says of its pages.

Rule: what cannot be read or believed proves nothing, and then all rows stay: the index only saves work. It is asked
about columns whose row groups hardly overlap, because pages of others span nearly all values too, and only for filters
that the row group's own statistics leave open. Reading and parsing the index of a chunk costs as much as a small task,
so what it says is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bireme.errors import StorageError
from bireme.plan.expr import Expr
from bireme.plan.tree import columns_used
from bireme.storage.base import ByteRange
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet_bounds import bounds_decoder
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_footer import Place
from bireme.storage.prune import Bounds, may_be_true
from bireme.storage.thrift_compact import Struct, read_struct

RowRange = tuple[int, int]

# Some 200 bytes each, of one file.
_PAGES_KEPT_MAX: Final = 16_384


class PageBounds(NamedTuple):
    """A page's rows in its row group, and what is proved about its values."""

    first_row: int
    bounds: Bounds


class PageFilter(NamedTuple):
    """A filter over one scanned column (at `position` of the scan; `column` of the file)."""

    filter: Expr
    position: int
    column: int


def page_filters(
    filters: Sequence[Expr], columns: Sequence[int], is_clustered: Sequence[bool]
) -> tuple[PageFilter, ...]:
    """The filters that the page index may help with."""
    found = []
    for each in filters:
        used = columns_used(each)
        if len(used) == 1:
            (position,) = used
            if is_clustered[position]:
                found.append(PageFilter(each, position, columns[position]))
    return tuple(found)


class PageIndex:
    """The page index of one file, read where it is asked for; the pages of recent chunks are kept. Any thread."""

    def __init__(self, file: ParquetFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int], list[PageBounds] | None] = OrderedDict()
        self._pages_kept = 0

    def surviving_rows(self, row_group: int, filters: Sequence[PageFilter], rows: RowRange) -> list[RowRange]:
        """Of `rows` (first, count) of a row group those that may meet all filters, as ascending ranges."""
        ranges = [rows]
        for each in filters:
            pages = self._pages(row_group, each.column)
            if pages is None:
                continue
            ends = [page.first_row for page in pages[1:]] + [self._file.row_group_rows[row_group]]
            kept: list[RowRange] = []
            for page, end in zip(pages, ends, strict=True):
                if _may_be_true(each, page.bounds):
                    _append(kept, page.first_row, end)
            ranges = _intersection(ranges, kept)
        return ranges

    def _pages(self, row_group: int, column: int) -> list[PageBounds] | None:
        """What is proved about the pages of a column chunk; None where the file does not tell, or of a single one."""
        key = row_group, column
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            pages = _read_pages(self._file, row_group, column)
        except (ValueError, TypeError, KeyError, IndexError, StorageError):
            pages = None
        self._keep(key, pages)
        return pages

    def _keep(self, key: tuple[int, int], pages: list[PageBounds] | None) -> None:
        with self._lock:
            if key in self._kept:
                return  # another thread was faster
            self._kept[key] = pages
            self._pages_kept += _weight(pages)
            while self._pages_kept > _PAGES_KEPT_MAX and len(self._kept) > 1:
                self._pages_kept -= _weight(self._kept.popitem(last=False)[1])


def _weight(pages: list[PageBounds] | None) -> int:
    return 1 if pages is None else len(pages)


def _read_pages(file: ParquetFile, row_group: int, column: int) -> list[PageBounds] | None:
    chunk, rows = file.chunk(row_group, file.leaves[column][0]), file.row_group_rows[row_group]
    decoder = bounds_decoder(file, column)
    if decoder is None or chunk.column_index is None or chunk.offset_index is None:
        return None
    offsets = _read(file, chunk.offset_index)
    if len(offsets[1]) == 1:
        return None
    return _parsed(_read(file, chunk.column_index), offsets, rows, decoder)


def _parsed(index: Struct, offsets: Struct, rows: int, decoder: Any) -> list[PageBounds]:
    firsts = [location.get(3, 0) for location in offsets[1]]
    if not firsts or firsts[0] != 0 or any(a >= b for a, b in pairwise([*firsts, rows])):
        raise ValueError("pages are not in the order of rows")
    nulls = index[5] if len(index.get(5, ())) == len(firsts) else [None] * len(firsts)
    found = []
    sizes = [b - a for a, b in pairwise([*firsts, rows])]
    for first, size, is_null, low, high, count in zip(firsts, sizes, index[1], index[2], index[3], nulls, strict=True):
        # Writers without statistics mark all pages as NULL, with -1 as the count.
        bounds = decoder(None, None, count, size) if is_null else decoder(low, high, count, size)
        found.append(PageBounds(first, bounds))
    return found


def _read(file: ParquetFile, place: Place) -> Struct:
    offset, length = place
    with LocalByteSource() as source:
        content = source.read(ByteRange(file.path, offset, length, file.version)).to_pybytes()
    return read_struct(content, 0)[0]


class _Columns(Sequence[Any]):
    """What `prune` asks for bounds of columns, where those of one column are known."""

    def __init__(self, position: int, bounds: Bounds) -> None:
        self._position = position
        self._bounds = bounds

    def __len__(self) -> int:
        return self._position + 1

    def __getitem__(self, index: Any) -> Any:
        if index != self._position:
            raise TypeError("bounds of another column are asked for")
        return lambda: self._bounds


def _may_be_true(each: PageFilter, bounds: Bounds) -> bool:
    return may_be_true([each.filter], _Columns(each.position, bounds))


def _append(ranges: list[RowRange], first: int, end: int) -> None:
    if ranges and sum(ranges[-1]) == first:
        ranges[-1] = (ranges[-1][0], end - ranges[-1][0])
    else:
        ranges.append((first, end - first))


def _intersection(left: Sequence[RowRange], right: Sequence[RowRange]) -> list[RowRange]:
    found = []
    for first, count in left:
        for other, other_count in right:
            start, end = max(first, other), min(first + count, other + other_count)
            if start < end:
                found.append((start, end - start))
    return found
