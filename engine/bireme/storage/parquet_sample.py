"""A small sample of a Parquet table: the first rows of a row group in its middle, or of three spread over it.

Rule: the same rows at every call, whichever columns are asked for, so that samples of different columns line up. Reads
and decodes only the first pages of the asked columns. One row group is enough unless rows are in the
order of time, or files have columns that are the same in all of their rows: then what is true of one part of the table
need not be true of the others. What cannot be read is NULL in it: it is for a query that reads it to fail.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from bireme.data.record import concat, record_batch
from bireme.data.schema import Schema
from bireme.data.types import to_arrow
from bireme.errors import StorageError
from bireme.plan.source import TableStatistics
from bireme.storage.parquet_table_file import TableFile

SAMPLE_ROWS: Final = 2048
_ROW_GROUPS_MAX: Final = 3
_CACHED_COLUMNS_MAX: Final = 64

Place = tuple[TableFile, int]


class ParquetSample:
    """The sample of one table; keeps the columns asked for last."""

    def __init__(self, files: Sequence[TableFile], schema: Schema, statistics: Callable[[], TableStatistics]) -> None:
        self._schema = schema
        self._files = files
        self._statistics = statistics
        self._chosen: list[Place] | None = None
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

    def _groups(self) -> list[Place]:
        if self._chosen is None:
            places = [(file, group) for file in self._files for group, rows in enumerate(file.row_groups) if rows]
            self._chosen = _spread(places, _ROW_GROUPS_MAX if self._differs_by_place() else 1)
        return self._chosen

    def _differs_by_place(self) -> bool:
        """Whether rows are in the order of time, or files have values of their own."""
        columns = range(len(self._schema))
        if any(all(file.constant(column) is not None for file in self._files) for column in columns):
            return True
        # What statistics say of a column is worked out when it is looked at, and may take long.
        known = self._statistics().columns
        return any(self._schema[column].type.is_temporal and known[column].clustered for column in columns)

    def _read(self, columns: list[int]) -> list[pa.Array]:
        schema = self._schema.select(columns)
        parts: list[pa.RecordBatch] = []
        groups = self._groups()
        rows_each = SAMPLE_ROWS // max(1, len(groups))
        for file, group in groups:
            try:
                parts.append(file.split(group, tuple(columns), schema).head(rows_each))
            except StorageError:  # whether a query reads the file is not known here
                parts.append(_nulls(schema, min(rows_each, file.row_groups[group])))
        return concat(parts, schema).columns  # type: ignore[no-any-return]

    def _row_count(self) -> pa.RecordBatch:
        groups = self._groups()
        rows_each = SAMPLE_ROWS // max(1, len(groups))
        rows = sum(min(rows_each, file.row_groups[group]) for file, group in groups)
        return record_batch((), (), rows)


def _nulls(schema: Schema, rows: int) -> pa.RecordBatch:
    return record_batch([pa.nulls(rows, to_arrow(field.type)) for field in schema], schema.names, rows)


def _spread(places: list[Place], count: int) -> list[Place]:
    """The row groups in the middle of `count` equal parts of the table."""
    count = min(count, len(places))
    return [places[(2 * part + 1) * len(places) // (2 * count)] for part in range(count)]
