"""Decoding row groups of one Parquet file from bytes that were fetched, or are read on the way.

Rule: pyarrow decodes, from nothing but the fetched bytes, or those of the same ranges page by page as it comes to them,
and metadata that was parsed once a file; what comes out is in the engine's layout. None of pyarrow's errors leaves
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bireme.data.layout import check_codes, to_engine
from bireme.data.schema import Schema
from bireme.data.types import STRING, DataType, Kind, to_arrow
from bireme.errors import ConversionFault, Unsupported
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange
from bireme.storage.fetched import FetchedRanges, UnreadRange
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet_bloom import BloomAnswers
from bireme.storage.parquet_encoding import Encoding, encoding_of
from bireme.storage.parquet_extent import Extents
from bireme.storage.parquet_file import FOREIGN_ERRORS, ParquetFile, parse_metadata
from bireme.storage.parquet_pages import PageIndex
from bireme.storage.parquet_plain_footer import plain_footer
from bireme.storage.parquet_reader import open_reader
from bireme.units import KIB

_PAGE_HEADERS_BYTES: Final = 4096
# What is read on the way is read in such pieces; a page that is larger, as a whole.
_STREAM_BYTES: Final = 64 * KIB
# pyarrow is told of so many column chunks at once, which it takes a kilobyte each to keep.
_BLOCK_CHUNKS: Final = 4_096
_BLOCKS_MAX: Final = 2
_CODE_BYTES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The bytes of `ranges`, one buffer each; `is_lazy` where they are not in memory."""

    ranges: Sequence[ByteRange]
    buffers: Sequence[pa.Buffer]
    is_lazy: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns of one row group, by position in the file's schema; `schema` is theirs.

    With `rows_max` only about the first that many rows are decoded, as one batch, strings without dictionary.
    """

    row_group: int
    columns: tuple[int, ...]
    schema: Schema
    rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    """An open pyarrow reader and what it reads from."""

    reader: Any
    source: FetchedRanges


class _Block:
    """Row groups that follow each other, and readers of them. Any thread.

    Opening a reader costs as much as decoding some ten thousand values, so readers are kept and used again.
    """

    def __init__(self, file: ParquetFile, groups: range) -> None:
        self._file = file
        self.first = groups.start
        self._metadata, self.are_unscaled = _decoding_metadata(file, groups)
        # By the leaves that are read as dictionaries, and whether bytes are read on the way. One reader a thread at
        # most is ever open.
        self.idle: dict[tuple[tuple[int, ...], bool], list[_Reader]] = {}

    def take_reader(self, dictionary_leaves: tuple[int, ...], *, is_lazy: bool) -> _Reader:
        idle = self.idle.get((dictionary_leaves, is_lazy))
        try:
            return idle.pop() if idle else self.open(dictionary_leaves, is_lazy=is_lazy)
        except IndexError:  # another thread was quicker
            return self.open(dictionary_leaves, is_lazy=is_lazy)

    def open(self, dictionary_leaves: tuple[int, ...], *, is_lazy: bool) -> _Reader:
        source = FetchedRanges(self._file.footer_offset)
        reader = open_reader(
            pa.PythonFile(source, mode="r"),
            metadata=self._metadata,
            pre_buffer=False,
            # Else a column chunk is asked for as a whole.
            buffer_size=_STREAM_BYTES if is_lazy else 0,
            read_dictionary=dictionary_leaves,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        return _Reader(reader, source)


class ParquetDecoder:
    """Decodes row groups of `file`, which begins with row `first_row` of its table. Any thread."""

    def __init__(self, file: ParquetFile, first_row: int) -> None:
        self.file = file
        self.first_row = first_row
        self.page_index = PageIndex(file)
        self.blooms = BloomAnswers(file)
        self.extents = Extents(file, self.encoding, self.is_dictionary)
        self._per_block = max(1, _BLOCK_CHUNKS // max(1, sum(map(len, file.leaves))))
        self._blocks: dict[int, _Block] = {}
        self._encodings: dict[int, Encoding] = {}

    def batches(self, wanted: Wanted, fetched: Fetched) -> Iterator[pa.RecordBatch]:
        """What is wanted, in engine layout, in batches of at most BATCH_ROWS_MAX rows."""
        order = {column: index for index, column in enumerate(sorted(set(wanted.columns)))}
        names = list(wanted.schema.names)
        for batch in self._decoded(wanted, list(order), fetched):
            arrays = [
                self._engine_array(batch.column(order[column]), wanted.row_group, column, field.type)
                for column, field in zip(wanted.columns, wanted.schema.fields, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    def streamed(self, wanted: Wanted, ranges: Sequence[ByteRange]) -> Iterator[pa.RecordBatch]:
        """As `batches`, from bytes of `ranges` that are read page by page. Raises as `LocalByteSource.read_all` too."""
        with LocalByteSource() as source:
            unread = Fetched(ranges, [UnreadRange(one, source.read) for one in ranges], is_lazy=True)
            yield from self.batches(wanted, unread)

    def encoding(self, column: int) -> Encoding:
        """How a column is stored; remembered. Two threads may find it out at once, and find the same."""
        found = self._encodings.get(column)
        if found is None:
            found = self._encodings[column] = encoding_of(self.file, column)
        return found

    def is_dictionary(self, row_group: int, column: int) -> bool:
        """Whether the pages of a string column's chunk are all codes.

        Where the footer does not tell, it is judged by size, and a wrong guess costs time only: codes take 3 bytes a
        value at the most, and plain strings, which follow when the dictionary is full, at least 4.
        """
        chunk = self.file.chunk(row_group, self.file.leaves[column][0])
        if chunk.are_codes is not None or not chunk.dictionary_offset:
            return bool(chunk.are_codes)
        codes_bytes = chunk.stored_bytes - max(0, chunk.data_offset - chunk.dictionary_offset)
        return codes_bytes <= _CODE_BYTES_MAX * chunk.values + _PAGE_HEADERS_BYTES

    def _decoded(self, wanted: Wanted, columns: list[int], fetched: Fetched) -> Iterator[pa.RecordBatch]:
        """What pyarrow makes of `columns`, in the order of the file."""
        leaves = [leaf for column in columns for leaf in self.file.leaves[column]]
        rows = self.file.row_group_rows[wanted.row_group]
        seen = 0
        try:
            codes = self._dictionary_leaves(wanted)
            block = self._block(wanted.row_group)
            opened = block.take_reader(codes, is_lazy=fetched.is_lazy)
            opened.source.serve(fetched.ranges, fetched.buffers)
            for batch in _read(opened.reader, wanted.row_group - block.first, leaves, rows, wanted.rows_max):
                seen += batch.num_rows
                yield batch
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(f"{self.file.path!r} uses something of Parquet that is not supported: {error}") from error
        except FOREIGN_ERRORS as error:
            raise self.file.corrupt(
                str(error), wanted.row_group, self._damaged_leaf(wanted, leaves, fetched)
            ) from error
        # A reader after an error, or one that was not read to its end, is not used again.
        opened.source.serve((), ())
        block.idle.setdefault((codes, fetched.is_lazy), []).append(opened)
        if seen != (rows if wanted.rows_max is None else min(rows, wanted.rows_max)):
            raise self.file.corrupt(f"{seen} rows where its footer says {rows}", wanted.row_group)

    def _damaged_leaf(self, wanted: Wanted, leaves: list[int], fetched: Fetched) -> int | None:
        """Which of the columns cannot be decoded: pyarrow's errors do not tell."""
        for leaf in leaves:
            try:
                block = self._block(wanted.row_group)
                opened = block.open((), is_lazy=fetched.is_lazy)
                opened.source.serve(fetched.ranges, fetched.buffers)
                found = opened.reader.read_row_group(
                    wanted.row_group - block.first, column_indices=[leaf], use_threads=False
                )
            except FOREIGN_ERRORS:
                return leaf
            if found.num_rows != self.file.row_group_rows[wanted.row_group]:
                return leaf
        return None

    def _dictionary_leaves(self, wanted: Wanted) -> tuple[int, ...]:
        if wanted.rows_max is not None:
            return ()
        return tuple(
            [
                self.file.leaves[column][0]
                for column, field in zip(wanted.columns, wanted.schema.fields, strict=True)
                if field.type is STRING and self.is_dictionary(wanted.row_group, column)
            ]
        )

    def _block(self, row_group: int) -> _Block:
        """What pyarrow knows of a row group and some that lie beside it. Two threads may find it out at once, and find
        the same.
        """
        number = row_group // self._per_block
        found = self._blocks.get(number)
        if found is None:
            first = number * self._per_block
            last = min(first + self._per_block, len(self.file.row_group_rows))
            found = _Block(self.file, range(first, last))
            # Those who use the others still have them.
            kept = list(self._blocks.items())[-(_BLOCKS_MAX - 1) :]
            self._blocks = {**dict(kept), number: found}
        return found

    def _engine_array(self, array: pa.Array, row_group: int, column: int, kind: DataType) -> pa.Array:
        try:
            if self._block(row_group).are_unscaled[column]:
                return _as_decimal(array, kind)
            decoded = to_engine(array, kind)
            if kind is STRING or kind.is_nested:
                _check_content(decoded)
            return decoded
        except (ConversionFault, pa.ArrowInvalid) as error:
            raise self.file.corrupt(str(error), row_group, self.file.leaves[column][0]) from error


def _read(reader: Any, row_group: int, leaves: list[int], rows: int, rows_max: int | None) -> Iterator[pa.RecordBatch]:
    if rows_max is not None:
        batches = reader.iter_batches(rows_max, [row_group], column_indices=leaves, use_threads=False)
        first = next(iter(batches), None)
        if first is not None:
            yield first
    elif rows <= BATCH_ROWS_MAX:
        table = reader.read_row_group(row_group, column_indices=leaves, use_threads=False)
        yield from table.combine_chunks().to_batches()
    else:
        yield from reader.iter_batches(BATCH_ROWS_MAX, [row_group], column_indices=leaves, use_threads=False)


def _decoding_metadata(file: ParquetFile, groups: range) -> tuple[Any, tuple[bool, ...]]:
    """The metadata of some row groups to decode with, and which columns then come as integers instead of decimals."""
    real = file.chunks.cut(groups)
    plain = None if any(field.type.is_nested for field in file.schema) else _plain_metadata(file, real, len(groups))
    return (parse_metadata(real), (False,) * len(file.schema)) if plain is None else plain


def _plain_metadata(file: ParquetFile, real: bytes, groups: int) -> tuple[Any, tuple[bool, ...]] | None:
    footer = plain_footer(real)
    if footer is None:
        return None
    try:
        metadata = parse_metadata(footer)
        arrow = metadata.schema.to_arrow_schema()
        if len(arrow) != len(file.schema) or metadata.num_row_groups != groups:
            return None
        unscaled = tuple(
            _is_unscaled(plain.type, field.type) for plain, field in zip(arrow, file.schema.fields, strict=True)
        )
        for plain, field, is_unscaled in zip(arrow, file.schema.fields, unscaled, strict=True):
            if not is_unscaled:
                to_engine(pa.nulls(0, plain.type), field.type)
    except (*FOREIGN_ERRORS, Unsupported):
        return None
    return metadata, unscaled


def _is_unscaled(arrow: pa.DataType, kind: DataType) -> bool:
    return kind.kind is Kind.DECIMAL and pa.types.is_integer(arrow)


def _check_content(array: pa.Array) -> None:
    """Raises ArrowInvalid or ConversionFault for what pyarrow does not look at when it decodes: bytes that are no text,
    codes of no word.
    """
    if pa.types.is_dictionary(array.type):
        check_codes(array)
        array = array.dictionary
    array.validate(full=True)


def _as_decimal(array: pa.Array, kind: DataType) -> pa.Array:
    """Integers as the decimals that they stand for: the same 64 bits under another type."""
    counts = array if array.type == pa.int64() else array.cast(pa.int64())
    return pa.Array.from_buffers(to_arrow(kind), len(counts), counts.buffers(), counts.null_count, counts.offset)
