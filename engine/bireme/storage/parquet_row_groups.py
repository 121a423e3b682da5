"""Row groups of a Parquet file that are encoded one by one, on any thread, and put together afterwards.

`RowGroupEncoder` has pyarrow write a file of one row group into memory; `RowGroupFile` takes what is between its magic
bytes and its footer as it is, and joins the footers. Inside, columns go by numbers, since names may repeat, and in
the layout that is written fastest: decimals of up to 18 digits as the integers they are stored as, texts by the
dictionaries that they come with. Schema, names and types of the file are those of an empty file with the real schema.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bireme.data.arrays import from_numpy, reinterpreted
from bireme.data.batch import measure
from bireme.data.record import plain, record_batch
from bireme.storage.thrift_fields import (
    changed,
    content_of,
    integer,
    integer_of,
    list_of,
    list_of_texts,
    structs_of,
    texts_of,
)
from bireme.units import KIB, MIB

MAGIC: Final = b"PAR1"
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_FILE_ROWS, _FILE_ROW_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_OFFSET, _GROUP_ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_PATH, _DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET = 3, 9, 10, 11
# Ordinals have 16 bits; they are left as they are beyond.
_ORDINAL_MAX: Final = 2**15 - 1

_INT32_DIGITS: Final = 9
_INT64_DIGITS: Final = 18
_SAMPLE_ROWS: Final = 4_096
# A dictionary is worth its page where a value comes so often.
_ROWS_PER_ENTRY: Final = 4
_WIDE_BYTES: Final = 64 * KIB
# An encoder fills a page before it compresses it, in memory that doubles as it grows: short row groups get short pages.
_PAGE_BYTES: Final = MIB
_PAGE_BYTES_MIN: Final = 64 * KIB
_PAGES: Final = 32
# Of wide rows fewer values go into the pages of all columns at once.
_VALUES_AT_ONCE_MAX: Final = 1_024
_PAGES_AT_ONCE: Final = 16
_OPTIONS: Final[dict[str, Any]] = {
    "compression": "snappy", "store_decimal_as_integer": True, "write_page_checksum": True
}  # fmt: skip


class EncodedRowGroup(NamedTuple):
    """The bytes of all column chunks, and the struct `RowGroup` of a file that has them behind the magic bytes."""

    rows: int
    chunks: pa.Buffer
    metadata: bytes


class RowGroupEncoder:
    """Encodes batches for files of `schema`, the schema of a result. Any thread."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        # A schema makes its names anew whenever it is asked.
        self._names = schema.names
        fields = [pa.field(str(at), field.type, field.nullable) for at, field in enumerate(schema)]
        paths = pq.read_metadata(pa.BufferReader(_empty_file(pa.schema(fields)))).schema
        self._leaves: list[list[str]] = [[] for _ in fields]
        for index in range(len(paths)):
            path = paths.column(index).path
            self._leaves[int(path.split(".")[0])].append(path)

    def encode(self, batch: pa.RecordBatch) -> EncodedRowGroup:
        """One row group of all rows, of which there is at least one. Raises what pyarrow raises."""
        columns = [_stored(column, field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
        fields = [
            pa.field(str(at), column.type, field.nullable)
            for at, (column, field) in enumerate(zip(columns, self._schema, strict=True))
        ]
        short = [not _is_wide(column) for column in columns]
        repeating = [is_short and _repeats(column) for is_short, column in zip(short, columns, strict=True)]
        table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        nbytes = max(1, measure(batch))
        page_bytes = min(_PAGE_BYTES, max(_PAGE_BYTES_MIN, nbytes // _PAGES))
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            table.schema,
            store_schema=False,
            use_dictionary=self._paths(repeating),
            write_statistics=self._paths(short),
            data_page_size=page_bytes,
            # After so many values it is looked at whether the page, or the dictionary, is full.
            write_batch_size=min(_VALUES_AT_ONCE_MAX, max(1, _PAGES_AT_ONCE * page_bytes * batch.num_rows // nbytes)),
            **_OPTIONS,
        ) as made:
            made.write_table(table, row_group_size=batch.num_rows)
        return self._taken_apart(batch.num_rows, sink.getvalue())

    def _paths(self, are_chosen: Sequence[bool]) -> list[str]:
        """Those of the leaves of some columns."""
        return [path for leaves, chosen in zip(self._leaves, are_chosen, strict=True) if chosen for path in leaves]

    def _taken_apart(self, rows: int, file: pa.Buffer) -> EncodedRowGroup:
        start = _footer_start(file)
        (group,) = structs_of(content_of(file.slice(start).to_pybytes(), _FILE_ROW_GROUPS))
        return EncodedRowGroup(rows, file.slice(len(MAGIC), start - len(MAGIC)), changed(group, {1: self._named}))

    def _named(self, chunks: bytes) -> bytes:
        """Column chunks with the real names of their columns."""

        def named(content: bytes) -> bytes:
            number, *inner = texts_of(content)
            return list_of_texts([self._names[int(number)].encode(), *inner])

        return list_of(
            [
                changed(chunk, {_CHUNK_METADATA: lambda found: changed(found, {_PATH: named})})
                for chunk in structs_of(chunks)
            ]
        )


class Target(Protocol):
    """What a file is written to."""

    def write(self, piece: Any) -> int: ...


class RowGroupFile:
    """Puts a file of `schema` together from row groups, in the order in which they come."""

    def __init__(self, file: Target, schema: pa.Schema) -> None:
        self._file = file
        template = _empty_file(schema)
        self._footer = template.slice(_footer_start(template)).to_pybytes()[:-8]
        self._groups: list[bytes] = []
        self._rows = 0
        self._position = file.write(MAGIC)

    def add(self, group: EncodedRowGroup) -> None:
        self._groups.append(_moved(group.metadata, self._position - len(MAGIC), len(self._groups)))
        self._rows += group.rows
        self._position += self._file.write(group.chunks)

    def finish(self) -> None:
        groups = list_of(self._groups)
        footer = changed(self._footer, {_FILE_ROWS: lambda _: integer(self._rows), _FILE_ROW_GROUPS: lambda _: groups})
        self._file.write(footer)
        self._file.write(len(footer).to_bytes(4, "little"))
        self._file.write(MAGIC)


def _moved(group: bytes, by: int, ordinal: int) -> bytes:
    """A row group that starts `by` bytes further on."""

    def further(content: bytes) -> bytes:
        offset = integer_of(content)
        # Writers put 0 for what they do not say.
        return integer(offset + by) if offset else content

    inner = {_DATA_OFFSET: further, _INDEX_OFFSET: further, _DICTIONARY_OFFSET: further}
    chunk = {_CHUNK_OFFSET: further, _CHUNK_METADATA: lambda found: changed(found, inner)}
    number = integer(ordinal) if ordinal <= _ORDINAL_MAX else integer(0)
    return changed(
        group,
        {
            _GROUP_COLUMNS: lambda chunks: list_of([changed(each, chunk) for each in structs_of(chunks)]),
            _GROUP_OFFSET: further,
            _GROUP_ORDINAL: lambda _: number,
        },
    )


def _empty_file(schema: pa.Schema) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, **_OPTIONS).close()
    return sink.getvalue()


def _footer_start(file: pa.Buffer) -> int:
    length = int.from_bytes(file.slice(len(file) - 8, 4).to_pybytes(), "little")
    return int(len(file) - 8 - length)


def _stored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column as the encoder takes it fastest for a column of type `kind`, and with the same bytes in the file."""
    if pa.types.is_decimal(kind) and kind.precision <= _INT64_DIGITS:
        narrow = plain(column).cast(pa.decimal64(kind.precision, kind.scale))
        integers = reinterpreted(narrow, pa.int64())
        return integers.cast(pa.int32()) if kind.precision <= _INT32_DIGITS else integers
    if isinstance(column, pa.DictionaryArray) and kind == pa.string() and _is_sound(column.dictionary, len(column)):
        return column.cast(pa.dictionary(pa.int32(), kind))
    column = plain(column)
    return column if column.type == kind else column.cast(kind)


def _is_sound(dictionary: pa.Array, rows: int) -> bool:
    """Whether a dictionary may be written as it is: pyarrow takes it for granted that no entry comes twice."""
    return (
        len(dictionary) <= rows
        and dictionary.null_count == 0
        and pc.count_distinct(dictionary).as_py() == len(dictionary)
    )


def _is_wide(column: pa.Array) -> bool:
    """Whether values are so long that copies of a few, in a dictionary or as extremes, are much memory."""
    return bool(measure(record_batch([column], ("",), len(column))) // max(1, len(column)) >= _WIDE_BYTES)


def _repeats(column: pa.Array) -> bool:
    """Whether values seem to come so often that a dictionary makes them shorter."""
    rows = len(column)
    if isinstance(column, pa.DictionaryArray) or pa.types.is_nested(column.type) or rows <= _SAMPLE_ROWS:
        return True
    step = rows // _SAMPLE_ROWS
    # Of so many values that come equally often, a sample has as many different ones.
    entries = rows / _ROWS_PER_ENTRY
    expected = entries * (1 - math.exp(-_SAMPLE_ROWS / entries))
    sample = column.take(from_numpy(np.arange(0, step * _SAMPLE_ROWS, step, dtype=np.int64)))
    return bool(pc.count_distinct(sample, mode="all").as_py() < expected)
