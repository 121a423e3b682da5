"""What is learned of a table from its metadata and a sample of its rows.

Everything learned goes to the `StatisticsCache`, so that a repeated query evaluates nothing. How samples are read is
the business of the `TableSource`; estimates above a table are in `estimator`.

A sample may consist of blocks of neighbouring rows: columns that follow the order of the file are recognised, and their
distinct values scaled by rows; others are treated as drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.data.arrays import is_valid, to_numpy
from bireme.data.arrow_functions import dictionary_encode, drop_null, value_counts
from bireme.data.record import plain
from bireme.data.schema import Schema
from bireme.data.types import DataType, Kind
from bireme.errors import BiremeError
from bireme.plan.expr import Expr
from bireme.plan.source import ColumnStatistics, TableSource, TableStatistics
from bireme.plan.statistics.cache import StatisticsCache
from bireme.plan.statistics.column import ColumnEstimate, Origin, chao, position, values_in_range

# Of distinct values where neither a range nor a sample tells: a tenth of the rows, a usual guess.
_UNKNOWN_DISTINCT_SHARE: Final = 0.1
# The share of the gaps between sampled values that lie inside a block of rows.
_USUAL_GAPS_SHARE: Final = 0.98
# A column in file order whose sample repeats values more often than this was sampled in blocks.
_BLOCK_SHARE: Final = 0.9
# The share of neighbouring rows that are in order where a column follows the file.
_SORTED_SHARE: Final = 0.95


class Hits(NamedTuple):
    """How many of `rows` sampled rows a predicate selects; `whole` when the sample is the table."""

    selected: int
    rows: int
    whole: bool


class Samples:
    """Statistics and samples of tables, for one run of the planner."""

    def __init__(
        self,
        source: Callable[[str, str], TableSource],
        evaluate: Callable[[Expr, pa.RecordBatch, Schema], pa.BooleanArray],
        cache: StatisticsCache,
    ) -> None:
        self._source = source
        self._evaluate = evaluate
        self._cache = cache
        self._statistics: dict[tuple[str, str], TableStatistics] = {}

    def statistics(self, table: str, version: str) -> TableStatistics:
        """The table's statistics from metadata."""
        key = (table, version)
        found = self._statistics.get(key)
        if found is None:
            found = self._statistics[key] = self._source(table, version).statistics()
        return found

    def column(self, origin: Origin) -> ColumnEstimate:
        """An estimate of a column over its whole table."""
        found: ColumnEstimate | None = self._cache.get(origin)
        if found is None:
            found = self._estimate(origin)
            self._cache.put(origin, found)
        return found

    def follows_file(self, origin: Origin) -> bool:
        """Whether a column rises or falls through the file: then a sample of blocks says nothing of its ranges."""
        table = self.statistics(origin.table, origin.version)
        known = table.columns[origin.column]
        if known.clustered or known.same_in_files:
            return True
        key = ("order", origin.table, origin.version, origin.column)
        found: bool | None = self._cache.get(key)
        if found is None:
            kind = self._source(origin.table, origin.version).schema[origin.column].type
            batch = self._sample(origin.table, origin.version, (origin.column,)) if _is_countable(kind) else None
            found = batch is not None and batch.num_rows < table.rows and _is_sorted(batch.column(0), kind)
            self._cache.put(key, found)
        return found

    def distinct_tuples(self, table: str, version: str, columns: tuple[int, ...]) -> float:
        """How many distinct rows the table has in these columns."""
        key = ("tuples", table, version, columns)
        found: float | None = self._cache.get(key)
        if found is None:
            rows = float(self.statistics(table, version).rows)
            groups = self._groups(table, version, columns)
            bound = rows
            product = 1.0
            for column in columns:
                product *= max(1.0, self.column(Origin(table, version, column)).distinct)
            bound = min(bound, product)
            found = bound if groups is None else _distinct(groups[1], rows, bound, clustered=False, local=0.0)
            self._cache.put(key, found)
        return found

    def hits(self, table: str, version: str, columns: tuple[int, ...], predicate: Expr, schema: Schema) -> Hits | None:
        """Evaluates a predicate over the given columns of the table on the sample; None where that fails.

        `predicate` and `schema` are over `columns`, in this order.
        """
        key = ("hits", table, version, columns, predicate)
        found: tuple[Hits | None] | None = self._cache.get(key)
        if found is None:
            found = (self._count_hits(table, version, columns, predicate, schema),)
            self._cache.put(key, found)
        return found[0]

    def _count_hits(
        self, table: str, version: str, columns: tuple[int, ...], predicate: Expr, schema: Schema
    ) -> Hits | None:
        batch = self._sample(table, version, columns)
        if batch is None or batch.num_rows == 0:
            return None
        try:
            selected = self._evaluate(predicate, batch, schema).true_count
        except BiremeError:
            # A value of the sample may overflow or not convert; then rules of thumb must do.
            return None
        return Hits(selected, batch.num_rows, batch.num_rows >= self.statistics(table, version).rows)

    def _sample(self, table: str, version: str, columns: Sequence[int]) -> pa.RecordBatch | None:
        return self._source(table, version).sample(columns)

    def _groups(self, table: str, version: str, columns: tuple[int, ...]) -> tuple[pa.Array | None, np.ndarray] | None:
        """How often each distinct tuple of the sample (without NULLs) occurs; of one column, also its values."""
        batch = self._sample(table, version, columns)
        if batch is None or batch.num_rows == 0:
            return None
        try:
            values, counts = _tuple_counts([_comparable(column) for column in batch.columns])
        except pa.ArrowNotImplementedError:
            return None
        return (values, counts) if len(counts) else None

    def _estimate(self, origin: Origin) -> ColumnEstimate:
        table = self.statistics(origin.table, origin.version)
        known = table.columns[origin.column]
        kind = self._source(origin.table, origin.version).schema[origin.column].type
        nulls = known.null_count or 0
        present = float(max(table.rows - nulls, 0))
        low, high = position(known.minimum), position(known.maximum)
        distinct, unique = self._column_distinct(origin, known, kind, present, low, high)
        return ColumnEstimate(
            distinct=distinct,
            domain=distinct,
            low=low,
            high=high,
            null_share=nulls / table.rows if table.rows else 0.0,
            mean_bytes=known.mean_bytes if known.mean_bytes is not None else float(kind.width_bytes),
            unique=unique,
            origin=origin,
        )

    def _column_distinct(
        self,
        origin: Origin,
        known: ColumnStatistics,
        kind: DataType,
        present: float,
        low: float | None,
        high: float | None,
    ) -> tuple[float, bool]:
        """The number of distinct values, and whether they are believed to be unique."""
        in_range = values_in_range(kind, low, high)
        bound = min(present, in_range)
        if known.distinct is not None:
            distinct = min(known.distinct, bound)
            return distinct, distinct >= present
        if in_range == present and kind.is_integer:
            return present, True  # as many rows as values: a dense key
        groups = self._groups(origin.table, origin.version, (origin.column,))
        if groups is None:
            return (bound if in_range <= present else present * _UNKNOWN_DISTINCT_SHARE), False
        local = 0.0
        if low is not None and high is not None and _is_countable(kind):
            local = (high - low + 1) / _usual_gap(groups[0], kind)
        distinct = _distinct(groups[1], present, bound, known.clustered, local)
        return distinct, distinct >= present and in_range >= present


def _comparable(column: pa.Array) -> pa.Array:
    """The column in a layout that pyarrow can count: plain, and short decimals by their digits."""
    column = plain(column)
    return column.view(pa.int64()) if pa.types.is_decimal64(column.type) else column


def _tuple_counts(columns: Sequence[pa.Array]) -> tuple[pa.Array | None, np.ndarray]:
    # pyarrow's own group_by would load its whole dataset machinery into every process.
    if len(columns) == 1:
        counted = value_counts(drop_null(columns[0]))
        return counted.field(0), to_numpy(counted.field(1))
    keys = np.zeros(len(columns[0]), dtype=np.int64)
    present = np.ones(len(columns[0]), dtype=np.bool_)
    for column in columns:
        encoded = dictionary_encode(column)
        present &= is_valid(column)
        codes = np.where(is_valid(column), to_numpy(encoded.indices), 0)
        # Numbered anew after each column, so that the product of the counts cannot leave 64 bits.
        _, keys = np.unique(keys * max(1, len(encoded.dictionary)) + codes, return_inverse=True)
    return None, np.unique(keys[present], return_counts=True)[1]


def _is_countable(kind: DataType) -> bool:
    """Whether values are whole numbers of something."""
    return kind.is_integer or kind.kind in (Kind.DATE, Kind.TIMESTAMP)


def _counted(values: pa.Array, kind: DataType) -> np.ndarray:
    """The values of a countable type as whole numbers, without NULLs."""
    values = drop_null(values)
    if kind.kind is Kind.UINT64:
        # Moved down by 2^63: neighbours keep their order and their distance.
        moved: np.ndarray = (to_numpy(values) ^ np.uint64(1 << 63)).view(np.int64)
        return moved
    if not kind.is_integer:
        values = values.view(pa.int32() if kind.kind is Kind.DATE else pa.int64())
    return to_numpy(values).astype(np.int64, copy=False)


def _is_sorted(values: pa.Array, kind: DataType) -> bool:
    """Whether neighbours nearly always rise, or nearly always fall."""
    steps = np.diff(_counted(values, kind))
    if not steps.any():
        return False
    return bool(max(np.mean(steps >= 0), np.mean(steps <= 0)) >= _SORTED_SHARE)


def _usual_gap(values: pa.Array, kind: DataType) -> float:
    """The mean distance between neighbouring values of a sample, without the few large ones.

    A sample of blocks of rows has the neighbourhoods of a few values; inside these, keys are as dense as everywhere.
    """
    gaps = np.diff(np.sort(_counted(values, kind)))
    if not len(gaps):
        return 1.0
    usual = np.sort(gaps)[: max(1, math.floor(len(gaps) * _USUAL_GAPS_SHARE))]
    return max(1.0, float(usual.mean()))


def _distinct(counts: np.ndarray, present: float, bound: float, clustered: bool, local: float) -> float:
    """Distinct values behind a sample with these counts, of `present` rows in all, at most `bound`.

    `local` is what the density of values in the sampled neighbourhoods promises for the whole range.
    """
    sampled, distinct = int(counts.sum()), len(counts)
    if sampled >= present:
        return float(distinct)
    if distinct == sampled:
        return bound
    few = np.bincount(np.minimum(counts, 3), minlength=3)
    estimate = max(chao(int(few[1]), int(few[2]), distinct), local)
    if clustered and distinct < _BLOCK_SHARE * sampled:
        estimate = max(estimate, present * distinct / sampled)
    return min(bound, max(float(distinct), estimate))
