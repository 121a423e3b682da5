"""Columns as they lie in a file: what a kernel must be told to read them from bytes.

Plain data, made by `storage`, read by `backends`. Offsets count from the first byte of the buffer they are in. Numbers
of types and codecs are those of parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa


class EncodedPage(NamedTuple):
    """Where a data page lies in its chunk, and which row of the row group it starts with."""

    offset: int
    length: int
    first_row: int


class EncodedPart(NamedTuple):
    """What there is of a chunk of which only some pages were read: the row that the first of them begins with (0 or
    less, where the rows that are meant begin with 0), and the place of the dictionary page, of no bytes where there is
    none.
    """

    first_row: int
    buffer: int
    offset: int
    length: int


class EncodedChunk(NamedTuple):
    """One flat column of one row group: `length` bytes at `offset` of the buffer at position `buffer`.

    `type_length` is that of FIXED_LEN_BYTE_ARRAY. `pages` is empty where the file does not tell. With a `part` the
    bytes are some of its pages, and `rows` those of the part.
    """

    physical: int
    type_length: int
    codec: int
    is_optional: bool
    rows: int
    buffer: int
    offset: int
    length: int
    pages: tuple[EncodedPage, ...] = ()
    part: EncodedPart | None = None


class MadeColumn(NamedTuple):
    """A column that the file does not hold as it is wanted: `make` gives of its `rows` so many from one on (first,
    count), decoded, in engine layout, from the same buffers. Raises DataError for values that cannot be what is wanted.
    """

    rows: int
    make: Callable[[Sequence[pa.Buffer], int, int], pa.Array]


class EncodedRows(NamedTuple):
    """Rows of a row group: its columns, and which of its rows are meant, as ascending (first row, rows).

    `first_row` is the number of the row group's first row in the table.
    """

    chunks: tuple[EncodedChunk | MadeColumn, ...]
    ranges: tuple[tuple[int, int], ...]
    first_row: int = 0
