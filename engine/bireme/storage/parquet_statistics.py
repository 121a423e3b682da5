"""Statistics of a table from the footers of its files: bounds, NULLs, and whether row groups are in order.

Rule: no page is read, and of all stored values only the least and greatest of a file are decoded. What a stored value
proves is in `parquet_bounds`; estimates from it, in `plan.statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload

from bireme.data.types import Kind
from bireme.plan.expr import Value
from bireme.plan.source import ColumnStatistics, TableStatistics
from bireme.storage.array_bounds import is_clustered
from bireme.storage.parquet_bounds import RawBounds, high_decoder, low_decoder, order_key, raw_bounds
from bireme.storage.parquet_file import ParquetFile

_LENGTH_BYTES: Final = 4  # PLAIN pages store the length of each string


def table_statistics(files: Sequence[ParquetFile]) -> TableStatistics:
    """The statistics of a table made of `files`; those of a column are worked out when they are first looked at."""
    return TableStatistics(sum(file.rows for file in files), _Columns(files))


class _Columns(Sequence[ColumnStatistics]):
    """The statistics of all columns. Any thread: two may work out the same one, and find the same."""

    def __init__(self, files: Sequence[ParquetFile]) -> None:
        self._files = files
        self._rows = sum(file.rows for file in files)
        self._found: list[ColumnStatistics | None] = [None] * len(files[0].schema)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> ColumnStatistics: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ColumnStatistics]: ...
    def __getitem__(self, index: int | slice) -> ColumnStatistics | Sequence[ColumnStatistics]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        found = self._found[index]
        if found is None:
            column = range(len(self))[index]
            found = self._found[index] = _column_statistics(self._files, column, self._rows)
        return found


@dataclass(slots=True)
class _Gathered:
    """What the files seen so far say of a column. `ranges` are comparable where there is one name in `orders`."""

    nulls: int | None = 0
    low: Value = None
    high: Value = None
    has_low: bool = True
    has_high: bool = True
    orders: set[str] = field(default_factory=set)
    ranges: list[tuple[Any, Any]] = field(default_factory=list)
    has_ranges: bool = True

    def add_unknown(self, *, nulls: int | None = None) -> None:
        self.has_low = self.has_high = self.has_ranges = False
        self.nulls = nulls

    def add_low(self, value: Value) -> None:
        self.has_low = self.has_low and value is not None
        if self.has_low and (self.low is None or value < self.low):  # type: ignore[operator]
            self.low = value

    def add_high(self, value: Value) -> None:
        self.has_high = self.has_high and value is not None
        if self.has_high and (self.high is None or value > self.high):  # type: ignore[operator]
            self.high = value


def _column_statistics(files: Sequence[ParquetFile], column: int, rows: int) -> ColumnStatistics:
    gathered = _Gathered()
    for file in files:
        _add_file(gathered, file, column)
    return ColumnStatistics(
        minimum=gathered.low if gathered.has_low else None,
        maximum=gathered.high if gathered.has_high else None,
        null_count=gathered.nulls,
        mean_bytes=_mean_bytes(files, column, rows),
        clustered=gathered.has_ranges and len(gathered.orders) == 1 and is_clustered(gathered.ranges),
    )


def _add_file(gathered: _Gathered, file: ParquetFile, column: int) -> None:
    if len(file.leaves[column]) != 1:
        gathered.add_unknown()
        return
    raws: list[RawBounds] = []
    for rows, raw in zip(file.row_group_rows, raw_bounds(file, column), strict=True):
        if rows == 0:
            continue
        gathered.nulls = None if gathered.nulls is None or raw.nulls is None else gathered.nulls + raw.nulls
        if raw.nulls != rows:  # a row group of NULLs alone has no bounds and needs none
            raws.append(raw)
    if raws:
        _add_bounds(gathered, file, column, raws)


def _add_bounds(gathered: _Gathered, file: ParquetFile, column: int, raws: list[RawBounds]) -> None:
    order = order_key(file, column)
    if order is None or any(raw.low is None or raw.high is None for raw in raws):
        gathered.add_unknown(nulls=gathered.nulls)
        return
    name, key = order
    low = min((raw.low for raw in raws), key=key)
    high = max((raw.high for raw in raws), key=key)
    decode_low, decode_high = low_decoder(file, column), high_decoder(file, column)
    gathered.add_low(None if decode_low is None else decode_low(low))
    gathered.add_high(None if decode_high is None else decode_high(high))
    gathered.orders.add(name)
    gathered.ranges.extend((key(raw.low), key(raw.high)) for raw in raws)


def _mean_bytes(files: Sequence[ParquetFile], column: int, rows: int) -> float | None:
    """Of strings stored without a dictionary, the mean length; of types of fixed width, the width."""
    kind = files[0].schema[column].type
    if kind.is_nested or rows == 0:
        return None
    if kind.kind not in (Kind.STRING, Kind.BINARY):
        return float(kind.width_bytes)
    plain_bytes = plain_rows = 0
    for file in files:
        for group in range(len(file.row_group_rows)):
            chunk = file.chunk(group, file.leaves[column][0])
            if not chunk.dictionary_offset:
                plain_bytes += chunk.stored_bytes
                plain_rows += chunk.values
    return max(0.0, plain_bytes / plain_rows - _LENGTH_BYTES) if plain_rows else None
