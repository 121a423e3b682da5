"""What is learned of a table from its metadata and a sample of its rows.

Everything learned goes to the `StatisticsCache`, so that a repeated query evaluates nothing. How samples are read is
the business of the `TableSource`; estimates above a table are in `estimator`.

A sample may consist of blocks of neighbouring rows: columns that follow the order of the file are recognised, and their
distinct values scaled by rows; others are treated as drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.errors import BiremeError
from bireme.plan.expr import Expr
from bireme.plan.source import ColumnStatistics, TableSource, TableStatistics
from bireme.plan.statistics.cache import StatisticsCache
from bireme.plan.statistics.column import ColumnEstimate, Origin, chao, position, values_in_range

# Of distinct values where neither a range nor a sample tells: a tenth of the rows, a usual guess.
_UNKNOWN_DISTINCT_SHARE: Final = 0.1
# Rows and range of a dense key agree to within this.
_DENSE_TOLERANCE: Final = 0.01
# A column in file order whose sample repeats values more often than this was sampled in blocks.
_BLOCK_SHARE: Final = 0.9


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
        key = ("column", origin.table, origin.version, origin.column)
        found: ColumnEstimate | None = self._cache.get(key)
        if found is None:
            found = self._estimate(origin)
            self._cache.put(key, found)
        return found

    def distinct_tuples(self, table: str, version: str, columns: tuple[int, ...]) -> float:
        """How many distinct rows the table has in these columns."""
        key = ("tuples", table, version, columns)
        found: float | None = self._cache.get(key)
        if found is None:
            rows = float(self.statistics(table, version).rows)
            counts = self._counts(table, version, columns)
            bound = rows
            product = 1.0
            for column in columns:
                product *= max(1.0, self.column(Origin(table, version, column)).distinct)
            bound = min(bound, product)
            found = bound if counts is None else _distinct(counts, rows, bound, clustered=False)
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

    def _counts(self, table: str, version: str, columns: tuple[int, ...]) -> np.ndarray | None:
        """How often each distinct tuple occurs in the sample, rows with a NULL left out."""
        batch = self._sample(table, version, columns)
        if batch is None or batch.num_rows == 0:
            return None
        names = [str(index) for index in range(len(columns))]
        sampled = pa.Table.from_arrays(batch.columns, names=names)
        try:
            grouped = sampled.group_by(names, use_threads=False).aggregate([([], "count_all")])
        except pa.ArrowNotImplementedError:
            return None
        if any(column.null_count for column in batch.columns):
            grouped = grouped.drop_null()
        counts: np.ndarray = grouped.column("count_all").to_numpy()
        return counts

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
        if known.clustered and abs(in_range - present) <= _DENSE_TOLERANCE * present:
            return present, True
        counts = self._counts(origin.table, origin.version, (origin.column,))
        if counts is None or len(counts) == 0:
            return (bound if in_range <= present else present * _UNKNOWN_DISTINCT_SHARE), False
        distinct = _distinct(counts, present, bound, known.clustered)
        return distinct, distinct >= present and in_range >= present


def _distinct(counts: np.ndarray, present: float, bound: float, clustered: bool) -> float:
    """Distinct values behind a sample with these counts, of `present` rows in all, at most `bound`."""
    sampled, distinct = int(counts.sum()), len(counts)
    if sampled >= present:
        return float(distinct)
    if distinct == sampled:
        return bound
    if clustered and distinct < _BLOCK_SHARE * sampled:
        estimate = present * distinct / sampled
    else:
        few = np.bincount(np.minimum(counts, 3), minlength=3)
        estimate = chao({1: int(few[1]), 2: int(few[2])}, distinct)
    return min(bound, max(float(distinct), estimate))
