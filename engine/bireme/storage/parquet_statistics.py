"""Statistics of a table from the footers of its files: bounds, NULLs, and whether row groups are in order.

Rule: no page is read, and of all stored values only the least and greatest of a file are decoded. What a stored value
proves is in `parquet_bounds`; estimates from it, in `plan.statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload

from bireme.data.schema import Schema
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Value
from bireme.plan.source import ColumnStatistics, TableStatistics
from bireme.storage.array_bounds import is_clustered
from bireme.storage.parquet_bounds import RawBounds, high_decoder, low_decoder, order_key, raw_bounds
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_table_file import TableFile
from bireme.storage.prune import Bounds

_LENGTH_BYTES: Final = 4  # PLAIN pages store the length of each string


def table_statistics(files: Sequence[TableFile], schema: Schema) -> TableStatistics:
    """The statistics of a table made of `files`; those of a column are worked out when they are first looked at."""
    return TableStatistics(sum(each.file.rows for each in files), _Columns(files, schema))


class _Columns(Sequence[ColumnStatistics]):
    """The statistics of all columns. Any thread: two may work out the same one, and find the same."""

    def __init__(self, files: Sequence[TableFile], schema: Schema) -> None:
        self._files = files
        self._schema = schema
        self._rows = sum(each.file.rows for each in files)
        self._found: list[ColumnStatistics | None] = [None] * len(schema)

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
            found = self._found[index] = _column_statistics(self._files, column, self._schema[column].type)
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

    def add_values(self, found: Sequence[Bounds]) -> None:
        """Takes what is proved of row groups, as values."""
        for bounds in found:
            if not bounds.rows:
                continue
            self.nulls = None if self.nulls is None or bounds.nulls is None else self.nulls + bounds.nulls
            if bounds.nulls != bounds.rows:
                self.add_low(bounds.low)
                self.add_high(bounds.high)
                self.has_ranges &= bounds.low is not None and bounds.high is not None
                self.ranges.append((bounds.low, bounds.high))
        self.orders.add("values")

    def add_low(self, value: Value) -> None:
        self.has_low = self.has_low and value is not None
        if self.has_low and (self.low is None or value < self.low):  # type: ignore[operator]
            self.low = value

    def add_high(self, value: Value) -> None:
        self.has_high = self.has_high and value is not None
        if self.has_high and (self.high is None or value > self.high):  # type: ignore[operator]
            self.high = value


def _column_statistics(files: Sequence[TableFile], column: int, kind: DataType) -> ColumnStatistics:
    gathered = _Gathered()
    are_stored = all(each.stored(column) is not None for each in files)
    for each in files:
        stored = each.stored(column)
        if are_stored and stored is not None:
            _add_file(gathered, each.file, stored)
        else:
            gathered.add_values(each.bounds(column))
    return ColumnStatistics(
        minimum=gathered.low if gathered.has_low else None,
        maximum=gathered.high if gathered.has_high else None,
        null_count=gathered.nulls,
        distinct=_distinct(files, column),
        mean_bytes=_mean_bytes(files, column, kind),
        clustered=gathered.has_ranges and len(gathered.orders) == 1 and is_clustered(gathered.ranges),
        same_in_files=all(each.constant(column) is not None for each in files),
    )


def _distinct(files: Sequence[TableFile], column: int) -> float | None:
    """How many values there are, where each file has but one."""
    found = [each.constant(column) for each in files if each.file.rows]
    values = {known.value for known in found if known is not None and known.value is not None}
    return float(len(values)) if found and None not in found else None


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


def _mean_bytes(files: Sequence[TableFile], column: int, kind: DataType) -> float | None:
    """Of strings stored without a dictionary, or the same in all rows, the mean length; of types of fixed width, the
    width.
    """
    if kind.is_nested or not any(each.file.rows for each in files):
        return None
    if kind.kind not in (Kind.STRING, Kind.BINARY):
        return float(kind.width_bytes)
    found = [_plain_bytes(each, column) for each in files]
    rows = sum([rows for _, rows in found])
    return max(0.0, sum([nbytes for nbytes, _ in found]) / rows) if rows else None


def _plain_bytes(each: TableFile, column: int) -> tuple[int, int]:
    """Bytes of the values that lie in the file as they are, and how many that are; or those of the one that all are."""
    known, stored, file = each.constant(column), each.stored(column), each.file
    if known is not None:
        return (len(known.value) if isinstance(known.value, str | bytes) else 0) * file.rows, file.rows
    nbytes = rows = 0
    for group in range(0 if stored is None else len(file.row_group_rows)):
        assert stored is not None
        chunk = file.chunk(group, file.leaves[stored][0])
        if not chunk.dictionary_offset:
            nbytes += chunk.stored_bytes - _LENGTH_BYTES * chunk.values
            rows += chunk.values
    return nbytes, rows
