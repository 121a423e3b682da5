"""One row group as a split: which bytes it needs, and what they decode to.

Which row groups become splits is decided in `parquet`; decoding is in `parquet_decode`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

from bireme.data.encoded import EncodedRows
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.errors import SourceCorrupt
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange, ChunkKey
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet_bloom import BloomFilter
from bireme.storage.parquet_decode import Fetched, ParquetDecoder, Wanted
from bireme.storage.parquet_pages import PageFilter
from bireme.storage.parquet_part import Part, parts
from bireme.units import MIB

# Decoding fewer rows costs less than reading what the file says of its pages.
_ASKED_ROWS_MIN: Final = 16_384
# Of which a head is wanted: reading so much in one go costs no more than reading less in several.
_READ_AT_ONCE_BYTES_MAX: Final = MIB
# Parts of fewer rows that share their bytes would decompress the same pages too often.
_PART_ROWS_MIN: Final = 1_024


class ParquetSplit:
    """The given columns of one row group, or of some of its rows. Immutable; ranges are worked out when they are first
    asked for.
    """

    __slots__ = (
        "_blooms",
        "_columns",
        "_decoder",
        "_filters",
        "_first",
        "_is_streamed",
        "_part",
        "_ranges",
        "_rows",
        "_schema",
        "row_group",
        "sharers",
    )

    def __init__(
        self,
        decoder: ParquetDecoder,
        row_group: int,
        columns: tuple[int, ...],
        schema: Schema,
        filters: tuple[PageFilter, ...] = (),
        blooms: tuple[BloomFilter, ...] = (),
    ) -> None:
        self._decoder = decoder
        self._blooms = blooms
        self._filters = filters
        self._columns = columns
        self._schema = schema
        self._first = 0
        # Where it is some rows that are read by their pages.
        self._part: Part | None = None
        # Where nothing is fetched beforehand: pyarrow reads page by page as it decodes.
        self._is_streamed = False
        self._rows = decoder.file.row_group_rows[row_group]
        self._ranges: tuple[ByteRange, ...] | None = None
        self.row_group = row_group
        self.sharers = 1

    def in_parts(
        self, rows_max: int | None, bytes_max: int | None, *, is_decoded_whole: bool = False
    ) -> list[ParquetSplit]:
        """Itself, or parts of about equal size: where it takes more than `bytes_max`, stored and decoded, by its pages;
        where it has many more rows than `rows_max`, or pages are too large, such that share its bytes. What pyarrow
        decodes has no parts, but its bytes need not be there all at once.
        """
        by_rows = by_bytes = 1
        if rows_max is not None and self._rows > rows_max + rows_max // 4:
            by_rows = -(-self._rows // rows_max)
        if bytes_max is not None and self._columns:
            by_bytes = -(-self.bytes_needed // bytes_max)
        if max(by_rows, by_bytes) == 1 or not self._columns:
            return [self]
        if is_decoded_whole or any(self._decoder.encoding(column).reason for column in self._columns):
            return [self._streamed() if by_bytes > 1 else self]  # pyarrow would decode all of it for each part
        found = parts(self._decoder.file, self.row_group, self._columns, by_bytes) if by_bytes > 1 else []
        if found:
            return [self._of_part(each) for each in found]
        count = max(by_rows, min(by_bytes, self._rows // _PART_ROWS_MIN), 1)
        bounds = [part * self._rows // count for part in range(count + 1)]
        return [self._rows_from(first, end - first, count) for first, end in pairwise(bounds)]

    def _streamed(self) -> ParquetSplit:
        whole = self._rows_from(0, self._rows, 1)
        whole._is_streamed, whole._ranges = True, ()
        return whole

    def _of_part(self, found: Part) -> ParquetSplit:
        part = self._rows_from(found.first, found.end - found.first, 1)
        part._part, part._ranges = found, None
        return part

    def _rows_from(self, first: int, rows: int, count: int) -> ParquetSplit:
        part = ParquetSplit(self._decoder, self.row_group, self._columns, self._schema, self._filters, self._blooms)
        part._first, part._rows, part._ranges, part.sharers = first, rows, self.ranges, count
        return part

    @property
    def path(self) -> str:
        return self._decoder.file.path

    @property
    def first_row(self) -> int:
        return self._decoder.first_row + sum(self._decoder.file.row_group_rows[: self.row_group]) + self._first

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def decoded_bytes(self) -> int:
        """Bytes of all batches; of strings the stored size, or that of their codes."""
        whole = self._decoder.extents.extent(self.row_group, self._columns).decoded_bytes
        return whole * self._rows // max(1, self._decoder.file.row_group_rows[self.row_group])

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        if self._ranges is None:
            self._ranges = self._whole_ranges() if self._part is None else self._part.ranges(self._decoder.file)
        return self._ranges

    def _whole_ranges(self) -> tuple[ByteRange, ...]:
        return self._decoder.extents.extent(self.row_group, self._columns).ranges

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        file = self._decoder.file
        return tuple([ChunkKey(file.path, file.version, self.row_group, column) for column in self._columns])

    def part(self, columns: Sequence[int]) -> ParquetSplit:
        """The same row group with only the columns at these positions."""
        kept = tuple([self._columns[index] for index in columns])
        part = ParquetSplit(self._decoder, self.row_group, kept, self._schema.select(columns))
        part._first, part._rows = self._first, self._rows
        if self._is_streamed:
            part._is_streamed, part._ranges = True, ()
        if self._part is not None:
            pages = tuple([self._part.columns[index] for index in columns])
            part._part = self._part._replace(columns=pages)
        return part

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns in engine layout, from the bytes of `ranges`."""
        if not self._columns:
            return _without_columns(self._rows)
        wanted = Wanted(self.row_group, self._columns, self._schema)
        if self._part is None and not self._is_streamed:
            batches = self._decoder.batches(wanted, Fetched(self.ranges, buffers))
        else:
            batches = self._decoder.streamed(wanted, self._whole_ranges())
        return batches if self._is_whole() else _cut(batches, self._first, self._rows)

    def decoded_column(self, place: int, buffers: Sequence[pa.Buffer]) -> list[pa.Array]:
        """All values of one of the columns of a split that has no parts, in pieces, from the bytes of `ranges`."""
        wanted = Wanted(self.row_group, (self._columns[place],), self._schema.select([place]))
        return [batch.column(0) for batch in self._decoder.batches(wanted, Fetched(self.ranges, buffers))]

    @property
    def bytes_needed(self) -> int:
        """Stored and decoded, of the row group."""
        return self._decoder.extents.extent(self.row_group, self._columns).bytes_needed

    @property
    def whole_key(self) -> ChunkKey:
        """Names the row group itself, in the way that `chunk_keys` name its columns."""
        file = self._decoder.file
        return ChunkKey(file.path, file.version, self.row_group, -1)

    @property
    def first_row_of_file(self) -> int:
        """The number of its first row in the file."""
        return self.first_row - self._decoder.first_row

    @property
    def file_start(self) -> int:
        """The row of the table that its file begins with."""
        return self._decoder.first_row

    @property
    def rows_counted(self) -> tuple[int, int]:
        """The rows of the file (first, count) that those of `encoded` are counted in."""
        first = self.first_row_of_file
        if self._part is not None:
            return first, self._rows
        return first - self._first, self._decoder.file.row_group_rows[self.row_group]

    def _is_whole(self) -> bool:
        return self._rows == self._decoder.file.row_group_rows[self.row_group]

    def encoded(self) -> EncodedRows | str:
        """The columns as they lie in the bytes of `ranges`."""
        if not self._columns:
            return ""
        chunks = self._decoder.extents.encoded(self.row_group, self._columns)
        if isinstance(chunks, str):
            return chunks
        if self._is_streamed:
            return "row groups that are large beside memory are decoded by pyarrow where columns have to be cast"
        rows = self._wanted_rows()
        if self._part is None:
            return EncodedRows(chunks, tuple(rows), self.first_row - self._first)
        of_part = tuple([(first - self._first, count) for first, count in rows])
        return EncodedRows(self._part.chunks(chunks, self.ranges), of_part, self.first_row)

    def _wanted_rows(self) -> list[tuple[int, int]]:
        """The rows that Bloom filters and the page index of the file leave."""
        rows = self._first, self._rows
        if self._rows < _ASKED_ROWS_MIN:
            return [rows]
        if self._blooms and not self._decoder.blooms.may_hold(self.row_group, self._blooms):
            return []
        return self._decoder.page_index.surviving_rows(self.row_group, self._filters, rows) if self._filters else [rows]

    def damage(self, column: int, story: str) -> SourceCorrupt:
        """The error that names the place of a scanned column."""
        file = self._decoder.file
        return file.corrupt(story, self.row_group, file.leaves[self._columns[column]][0])

    def head(self, rows_max: int) -> pa.RecordBatch:
        """The first `rows_max` rows, reading and decoding little more than these; strings come without dictionary."""
        if not self._columns:
            return record_batch((), (), min(rows_max, self._rows))
        wanted = Wanted(self.row_group, self._columns, self._schema, rows_max)
        ranges = self._whole_ranges()
        if sum([one.length for one in ranges]) > _READ_AT_ONCE_BYTES_MAX:
            (head,) = self._decoder.streamed(wanted, ranges)
            return head
        with LocalByteSource() as source:
            (head,) = self._decoder.batches(wanted, Fetched(ranges, source.read_all(ranges)))
        return head


def _without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH_ROWS_MAX):
        yield record_batch((), (), min(BATCH_ROWS_MAX, rows - start))


def _cut(batches: Iterator[pa.RecordBatch], first: int, rows: int) -> Iterator[pa.RecordBatch]:
    """The `rows` rows from `first` on."""
    for batch in batches:
        start = min(first, batch.num_rows)
        piece = batch.slice(start, rows)
        first -= start
        rows -= piece.num_rows
        if piece.num_rows:
            yield piece
