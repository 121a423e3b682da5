"""One row group as a split: which bytes it needs, and decoding them.

Rule: `decode` reads nothing but the buffers it is given. Which row groups become splits is decided in `parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bireme.data.layout import to_engine
from bireme.data.schema import Schema
from bireme.data.types import STRING, DataType
from bireme.errors import ConversionFault, Unsupported
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange
from bireme.storage.byte_range import coalesce
from bireme.storage.fetched import FetchedRanges
from bireme.storage.parquet_file import FOREIGN_ERRORS, ParquetFile

_PAGE_HEADERS_BYTES: Final = 4096


class ParquetSplit:
    """The given columns of one row group. Immutable; ranges are worked out when they are first asked for."""

    __slots__ = ("_columns", "_file", "_ranges", "_rows", "_schema", "row_group")

    def __init__(self, file: ParquetFile, row_group: int, columns: tuple[int, ...], schema: Schema) -> None:
        self._file = file
        self._columns = columns
        self._schema = schema
        self._rows = file.row_group_rows(row_group)
        self._ranges: tuple[ByteRange, ...] | None = None
        self.row_group = row_group

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def decoded_bytes(self) -> int:
        return self._rows * self._schema.row_bytes

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        if self._ranges is None:
            self._ranges = coalesce(self._file.chunk_range(self.row_group, leaf) for leaf in self._leaves())
        return self._ranges

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns in engine layout, from the bytes of `ranges`."""
        if not self._columns:
            yield from _empty_columns(self._rows)
            return
        source = FetchedRanges(self.ranges, buffers, self._file.footer_offset)
        for batch in self._read(source):
            yield self._engine_batch(batch)

    def head(self, buffers: Sequence[pa.Buffer], rows_max: int) -> pa.RecordBatch:
        """The first `rows_max` rows, decoding little more than these; strings come without dictionary."""
        source = FetchedRanges(self.ranges, buffers, self._file.footer_offset)
        try:
            reader = _open_reader(self._file, source, [])
            batches = reader.iter_batches(rows_max, [self.row_group], column_indices=self._leaves(), use_threads=False)
            return self._engine_batch(next(iter(batches)))
        except StopIteration:
            raise self._file.corrupt("it has no rows where its footer says that it has some", self.row_group) from None
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(
                f"{self._file.path!r} uses something of Parquet that is not supported: {error}"
            ) from error
        except FOREIGN_ERRORS as error:
            raise self._file.corrupt(str(error), self.row_group) from error

    def _leaves(self) -> list[int]:
        wanted = sorted(set(self._columns))
        return [leaf for column in wanted for leaf in self._file.leaves[column]]

    def _read(self, source: FetchedRanges) -> Iterator[pa.RecordBatch]:
        """What pyarrow decodes: the wanted columns in the order of the file, in batches."""
        seen = 0
        try:
            reader = _open_reader(self._file, source, self._dictionary_leaves())
            for batch in _batches(reader, self.row_group, self._rows, self._leaves()):
                seen += batch.num_rows
                yield batch
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(
                f"{self._file.path!r} uses something of Parquet that is not supported: {error}"
            ) from error
        except FOREIGN_ERRORS as error:
            raise self._file.corrupt(str(error), self.row_group) from error
        if seen != self._rows:
            raise self._file.corrupt(f"{seen} rows where its footer says {self._rows}", self.row_group)

    def _dictionary_leaves(self) -> list[int]:
        """Leaves of string columns whose pages are all dictionary codes."""
        group = self._file.metadata.row_group(self.row_group)
        chosen = []
        for column, field in zip(self._columns, self._schema.fields, strict=True):
            if field.type is STRING and _is_all_dictionary(group.column(self._file.leaves[column][0])):
                chosen.append(self._file.leaves[column][0])
        return chosen

    def _engine_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        order = {column: index for index, column in enumerate(sorted(set(self._columns)))}
        arrays = []
        for column, field in zip(self._columns, self._schema.fields, strict=True):
            arrays.append(self._engine_array(batch.column(order[column]), field.type, self._file.leaves[column][0]))
        return pa.RecordBatch.from_arrays(arrays, names=list(self._schema.names))

    def _engine_array(self, array: pa.Array, kind: DataType, leaf: int) -> pa.Array:
        try:
            return to_engine(array, kind)
        except ConversionFault as error:
            raise self._file.corrupt(str(error), self.row_group, leaf) from error


def _empty_columns(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH_ROWS_MAX):
        nulls = pa.nulls(min(BATCH_ROWS_MAX, rows - start))
        yield pa.RecordBatch.from_arrays([nulls], names=["rows"]).select([])


def _open_reader(file: ParquetFile, source: FetchedRanges, dictionary_leaves: list[int]) -> Any:
    # The reader under ParquetFile takes columns by position, so that equal names do no harm.
    return pq.ParquetFile(
        pa.PythonFile(source, mode="r"),
        metadata=file.metadata,
        pre_buffer=False,
        read_dictionary=dictionary_leaves,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
    ).reader


def _batches(reader: Any, row_group: int, rows: int, leaves: list[int]) -> Iterator[pa.RecordBatch]:
    if rows <= BATCH_ROWS_MAX:
        table = reader.read_row_group(row_group, column_indices=leaves, use_threads=False)
        yield from table.combine_chunks().to_batches()
        return
    yield from reader.iter_batches(BATCH_ROWS_MAX, [row_group], column_indices=leaves, use_threads=False)


def _is_all_dictionary(chunk: Any) -> bool:
    """Whether the pages of a string chunk are codes, judged by size; a wrong guess costs time only.

    A footer lists PLAIN for the dictionary page as well as for pages written after the dictionary was full. But codes
    take 3 bytes a value at the most, and plain strings at least 4.
    """
    if not chunk.has_dictionary_page or chunk.num_values == 0:
        return False
    dictionary_bytes = max(0, chunk.data_page_offset - (chunk.dictionary_page_offset or chunk.data_page_offset))
    return bool(chunk.total_uncompressed_size - dictionary_bytes <= 3 * chunk.num_values + _PAGE_HEADERS_BYTES)
