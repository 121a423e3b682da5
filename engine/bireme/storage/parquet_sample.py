"""A small sample of a Parquet table: the first rows of a few row groups spread over it.

Rule: the same rows at every call, whichever columns are asked for, so that samples of different columns line up. Reads
only the chunks of the asked columns, of three row groups at most, and decodes only their first pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet_decode import ParquetDecoder
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_split import ParquetSplit

SAMPLE_ROWS: Final = 2048
_ROW_GROUPS_MAX: Final = 3
_CACHED_COLUMNS_MAX: Final = 64


class ParquetSample:
    """The sample of one table; keeps the columns asked for last."""

    def __init__(self, decoders: Sequence[ParquetDecoder], schema: Schema) -> None:
        self._schema = schema
        self._groups = _spread([(decoder, group) for decoder in decoders for group in _groups_with_rows(decoder.file)])
        self._lock = threading.Lock()
        self._cached: OrderedDict[int, pa.Array] = OrderedDict()

    def rows(self, columns: Sequence[int]) -> pa.RecordBatch:
        with self._lock:
            missing = [column for column in dict.fromkeys(columns) if column not in self._cached]
            if missing:
                self._cached.update(zip(missing, self._read(missing), strict=True))
            arrays = [self._cached[column] for column in columns]
            for column in columns:
                self._cached.move_to_end(column)
            while len(self._cached) > max(_CACHED_COLUMNS_MAX, len(columns)):
                self._cached.popitem(last=False)
        if not arrays:
            return self._row_count()
        return pa.RecordBatch.from_arrays(arrays, names=[self._schema[column].name for column in columns])

    def _read(self, columns: list[int]) -> list[pa.Array]:
        schema = self._schema.select(columns)
        parts: list[pa.RecordBatch] = []
        rows_each = SAMPLE_ROWS // max(1, len(self._groups))
        source = LocalByteSource()
        try:
            for decoder, group in self._groups:
                split = ParquetSplit(decoder, group, tuple(columns), schema)
                parts.append(split.head([source.read(wanted) for wanted in split.ranges], rows_each))
        finally:
            source.close()
        if not parts:
            return [pa.nulls(0, field.type) for field in schema.to_arrow()]
        return [_joined([part.column(index) for part in parts]) for index in range(len(columns))]

    def _row_count(self) -> pa.RecordBatch:
        rows_each = SAMPLE_ROWS // max(1, len(self._groups))
        rows = sum(min(rows_each, decoder.file.row_group_rows(group)) for decoder, group in self._groups)
        return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"]).select([])


def _groups_with_rows(file: ParquetFile) -> list[int]:
    return [group for group in range(file.metadata.num_row_groups) if file.row_group_rows(group)]


def _spread(groups: list[tuple[ParquetDecoder, int]]) -> list[tuple[ParquetDecoder, int]]:
    """The first of equal parts' middles: row groups spread evenly over the table."""
    if len(groups) <= _ROW_GROUPS_MAX:
        return groups
    count = _ROW_GROUPS_MAX
    return [groups[(2 * part + 1) * len(groups) // (2 * count)] for part in range(count)]


def _joined(arrays: list[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    kinds = {array.type for array in arrays}
    if any(map(pa.types.is_dictionary, kinds)):
        arrays = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    return pa.concat_arrays(arrays)
