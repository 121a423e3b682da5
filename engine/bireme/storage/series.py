"""A table of one column of whole numbers, each so much more than the one before: made when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.data.arrays import from_numpy
from bireme.data.key_range import EMPTY, KeyRange
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import EngineBug
from bireme.plan.expr import Expr
from bireme.plan.source import ColumnStatistics, TableStatistics
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange, ChunkKey, Split
from bireme.storage.prune import Bounds, may_be_true

_SAMPLE_ROWS: Final = 2048


class SeriesSource:
    """The numbers of a `range`, in a column called `name`."""

    def __init__(self, name: str, numbers: range) -> None:
        self._schema = Schema((Field(name, INT64, False),))
        self._numbers = numbers

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def version(self) -> str:
        """Always the same: other numbers are another table."""
        return "series"

    def refresh(self) -> SeriesSource:
        return self

    def statistics(self) -> TableStatistics:
        rows = len(self._numbers)
        low, high = _ends(self._numbers)
        column = ColumnStatistics(low, high, 0, float(rows), float(INT64.width_bytes), rows > BATCH_ROWS_MAX)
        return TableStatistics(rows, (column,))

    def sample(self, columns: Sequence[int]) -> pa.RecordBatch:
        """Numbers from the whole series, equally far apart."""
        rows = len(self._numbers)
        some = self._numbers[:: max(1, rows // _SAMPLE_ROWS)][:_SAMPLE_ROWS]
        return _batch(some, len(columns), self._schema)

    def split_count(self) -> int:
        return -(-len(self._numbers) // BATCH_ROWS_MAX)

    def are_splits_quick(self, columns: Sequence[int], bytes_max: int | None) -> bool:
        return True

    def splits(
        self,
        columns: Sequence[int],
        filters: Sequence[Expr],
        *,
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Sequence[SeriesSplit]:
        """One split per batch of rows that may hold some for which all `filters` are TRUE."""
        width = len(columns)
        splits = [
            SeriesSplit(self._numbers[first : first + BATCH_ROWS_MAX], first, width, self._schema)
            for first in range(0, len(self._numbers), BATCH_ROWS_MAX)
        ]
        return [split for split in splits if may_be_true(filters, [split.bounds] * width)]

    def key_ranges(self, column: int, splits: Sequence[Split]) -> list[KeyRange | None]:
        return [split.key_range() for split in splits if isinstance(split, SeriesSplit)]

    def bounds(self, column: int, splits: Sequence[Split]) -> list[Bounds]:
        return [split.bounds() for split in splits if isinstance(split, SeriesSplit)]


class SeriesSplit:
    """A part of a series; its column is there as often as it is asked for, perhaps not at all."""

    __slots__ = ("_numbers", "_table_schema", "_width", "first_row")

    def __init__(self, numbers: range, first_row: int, width: int, table_schema: Schema) -> None:
        self._numbers = numbers
        self._width = width
        self._table_schema = table_schema
        self.first_row = first_row

    @property
    def schema(self) -> Schema:
        return self._table_schema.select([0] * self._width)

    @property
    def rows(self) -> int:
        return len(self._numbers)

    @property
    def sharers(self) -> int:
        return 1

    @property
    def decoded_bytes(self) -> int:
        return self.rows * self._width * INT64.width_bytes

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        return ()

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        """There is nothing worth keeping."""
        return ()

    def key_range(self) -> KeyRange:
        low, high = _ends(self._numbers)
        return EMPTY if low is None or high is None else KeyRange(low, high)

    def bounds(self) -> Bounds:
        low, high = _ends(self._numbers)
        return Bounds(self.rows, low, high, 0)

    def part(self, columns: Sequence[int]) -> SeriesSplit:
        return SeriesSplit(self._numbers, self.first_row, len(columns), self._table_schema)

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        yield _batch(self._numbers, self._width, self._table_schema)

    def encoded(self) -> str:
        return ""

    def damage(self, column: int, story: str) -> EngineBug:
        return EngineBug(f"a series of numbers was decoded: {story}")


def _ends(numbers: range) -> tuple[int | None, int | None]:
    """The least and the greatest number."""
    if not numbers:
        return None, None
    return min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1])


def _batch(numbers: range, width: int, schema: Schema) -> pa.RecordBatch:
    values = from_numpy(np.arange(len(numbers), dtype=np.int64) * numbers.step + (numbers[0] if numbers else 0))
    return record_batch([values] * width, [schema.names[0]] * width, len(numbers))
