"""A split of which some columns are decoded already, and whose others are decoded whole so that a cache can keep them.

Rule: once complete it is rows in memory, like a split of an Arrow table. What is kept, and for how long, is decided in
`runtime.holder.column_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from bireme.data.encoded import EncodedRows
from bireme.data.schema import Schema
from bireme.errors import BiremeError
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange, ChunkKey, Split

# All rows of all columns of a split, from its bytes.
Decode = Callable[[Split, Sequence[pa.Buffer]], list[pa.RecordBatch]]


class KeptSplit:
    """`split` with the columns `found`, by position. One task's own; not shared."""

    __slots__ = ("_found", "_fresh", "_missing", "_part", "_split")

    def __init__(self, split: Split, found: Mapping[int, pa.ChunkedArray]) -> None:
        self._split = split
        self._found = dict(found)
        self._fresh: list[int] = []
        self._missing = [column for column in range(len(split.chunk_keys)) if column not in self._found]
        self._part = split.part(self._missing)

    @property
    def first_row(self) -> int:
        return self._split.first_row

    @property
    def rows(self) -> int:
        return self._split.rows

    @property
    def schema(self) -> Schema:
        return self._split.schema

    @property
    def decoded_bytes(self) -> int:
        """Of the columns that are not here yet."""
        return self._part.decoded_bytes if self._missing else 0

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        """Bytes of the columns that are not here yet."""
        return self._part.ranges if self._missing else ()

    @property
    def sharers(self) -> int:
        return 1

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        return self._split.chunk_keys

    @property
    def fresh(self) -> list[tuple[ChunkKey, pa.ChunkedArray]]:
        """What `decode` had to decode."""
        return [(self.chunk_keys[column], self._found[column]) for column in self._fresh]

    @property
    def fresh_bytes(self) -> int:
        return sum([column.nbytes for _, column in self.fresh])

    def part(self, columns: Sequence[int]) -> Split:
        return self._split.part(columns)

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """All columns; those that are not here yet from the bytes of `ranges`, and from then on they are."""
        self.complete(buffers, lambda part, given: list(part.decode(given)))
        columns = [self._found[column] for column in range(len(self.chunk_keys))]
        yield from pa.Table.from_arrays(columns, list(self._split.schema.names)).to_batches(BATCH_ROWS_MAX)

    def encoded(self) -> EncodedRows | str:
        """There is nothing to decode."""
        return ""

    def damage(self, column: int, story: str) -> BiremeError:
        return self._split.damage(column, story)

    def complete(self, buffers: Sequence[pa.Buffer], decode: Decode) -> None:
        """Decodes the columns that are not here yet, whole."""
        if not self._missing:
            return
        decoded = decode(self._part, buffers)
        for index, column in enumerate(self._missing):
            self._found[column] = pa.chunked_array([batch.column(index) for batch in decoded])
        self._fresh, self._missing = self._missing, []
