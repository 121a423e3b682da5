"""One row group as a split: which bytes it needs, and what they decode to.

Which row groups become splits is decided in `parquet`; decoding is in `parquet_decode`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from bireme.data.encoded import EncodedChunk, EncodedRows
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import STRING
from bireme.errors import SourceCorrupt
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange, ChunkKey
from bireme.storage.byte_range import coalesce
from bireme.storage.parquet_decode import Fetched, ParquetDecoder, Wanted
from bireme.storage.parquet_encoding import Encoding

# LZO, and the LZ4 of old writers, which frame it in various ways.
_PYARROW_CODECS: Final = (3, 5)


class ParquetSplit:
    """The given columns of one row group. Immutable; ranges are worked out when they are first asked for."""

    __slots__ = ("_columns", "_decoder", "_ranges", "_rows", "_schema", "row_group")

    def __init__(self, decoder: ParquetDecoder, row_group: int, columns: tuple[int, ...], schema: Schema) -> None:
        self._decoder = decoder
        self._columns = columns
        self._schema = schema
        self._rows = decoder.file.row_group_rows[row_group]
        self._ranges: tuple[ByteRange, ...] | None = None
        self.row_group = row_group

    @property
    def path(self) -> str:
        return self._decoder.file.path

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def decoded_bytes(self) -> int:
        """Bytes of all batches; of strings the stored size, or that of their codes."""
        total = 0
        for column, field in zip(self._columns, self._schema.fields, strict=True):
            if field.type is not STRING:
                total += self._rows * field.type.width_bytes
                continue
            total += 4 * self._rows
            if not self._decoder.is_dictionary(self.row_group, column):
                total += self._decoder.file.stored_bytes(self.row_group, column)
        return total

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        if self._ranges is None:
            file = self._decoder.file
            leaves = [leaf for column in self._columns for leaf in file.leaves[column]]
            self._ranges = coalesce(file.chunk_range(self.row_group, leaf) for leaf in leaves)
        return self._ranges

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
        return ParquetSplit(self._decoder, self.row_group, kept, self._schema.select(columns))

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns in engine layout, from the bytes of `ranges`."""
        if not self._columns:
            return _without_columns(self._rows)
        return self._decoder.batches(Wanted(self.row_group, self._columns, self._schema), Fetched(self.ranges, buffers))

    def encoded(self) -> EncodedRows | str:
        """The columns as they lie in the bytes of `ranges`."""
        if not self._columns:
            return ""
        decoder = self._decoder
        chunks = []
        for column in self._columns:
            encoding = decoder.encoding(column)
            if encoding.reason:
                return encoding.reason
            chunk = self._encoded_chunk(column, encoding)
            if chunk.codec in _PYARROW_CODECS:
                return "pages in the LZ4 or LZO of old writers are decoded by pyarrow"
            chunks.append(chunk)
        return EncodedRows(tuple(chunks), ((0, self._rows),))

    def _encoded_chunk(self, column: int, encoding: Encoding) -> EncodedChunk:
        file = self._decoder.file
        leaf = file.leaves[column][0]
        place = file.chunk_range(self.row_group, leaf)
        ranges = self.ranges
        buffer = next(index for index, fetched in enumerate(ranges) if place.end <= fetched.end)
        return EncodedChunk(
            encoding.physical,
            encoding.type_length,
            file.chunk(self.row_group, leaf).codec,
            encoding.is_optional,
            self._rows,
            buffer,
            place.offset - ranges[buffer].offset,
            place.length,
        )

    def damage(self, column: int, story: str) -> SourceCorrupt:
        """The error that names the place of a scanned column."""
        file = self._decoder.file
        return file.corrupt(story, self.row_group, file.leaves[self._columns[column]][0])

    def head(self, buffers: Sequence[pa.Buffer], rows_max: int) -> pa.RecordBatch:
        """The first `rows_max` rows, decoding little more than these; strings come without dictionary."""
        wanted = Wanted(self.row_group, self._columns, self._schema, rows_max)
        (head,) = self._decoder.batches(wanted, Fetched(self.ranges, buffers))
        return head


def _without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH_ROWS_MAX):
        yield record_batch((), (), min(BATCH_ROWS_MAX, rows - start))
