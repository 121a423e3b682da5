"""Rows of relations and what their columns look like, estimated once per relation.

Nodes are hash-consed, so results are kept by identity, and a relation that a rule leaves alone is not estimated twice.
Tables and samples are in `samples`, filters over a table in `table_filters`, predicates without a sample in
`predicate`, joins in `matching`, expressions in `expression`; bounds that hold for certain are in `bounds`.

Estimates are floats and may be wrong; a plan built on wrong ones is slow, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.plan import tree
from bireme.plan.expr import Aggregation, Column, Expr
from bireme.plan.relation import (
    Aggregate,
    Assume,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.source import TableSource
from bireme.plan.statistics import expression, matching, predicate
from bireme.plan.statistics.cache import StatisticsCache
from bireme.plan.statistics.column import ColumnEstimate, Origin, remaining
from bireme.plan.statistics.samples import Samples
from bireme.plan.statistics.table_filters import Chain, chain_of, chain_share

# Estimates stop here, so that the product of two of them is still a number.
ROWS_MAX: Final = 1e150


class Estimator:
    """Estimates for the relations of one run of the planner."""

    def __init__(
        self,
        source: Callable[[str, str], TableSource],
        evaluate: Callable[[Expr, pa.RecordBatch, Schema], pa.BooleanArray],
        cache: StatisticsCache,
    ) -> None:
        self.samples = Samples(source, evaluate, cache)
        self._cache = cache
        self._rows: dict[Rel, float] = {}
        self._columns: dict[tuple[Rel, int], ColumnEstimate] = {}
        self._chains: dict[Rel, Chain | None] = {}

    def rows(self, rel: Rel) -> float:
        """How many rows `rel` gives."""
        found = self._rows.get(rel)
        if found is None:
            if rel.__class__ is Filter and self.chain(rel) is not None:
                found = self._kept(("rows", rel), _estimated_rows, rel)
            else:
                found = _estimated_rows(self, rel)
            self._rows[rel] = found
        return found

    def column(self, rel: Rel, index: int) -> ColumnEstimate:
        """What the column of `rel` at `index` looks like."""
        key = (rel, index)
        found = self._columns.get(key)
        if found is None:
            estimate = _COLUMN[rel.__class__]
            if rel.__class__ is Filter and self.chain(rel) is not None:
                found = self._kept(("column", rel, index), estimate, rel, index)
            else:
                found = estimate(self, rel, index)
            self._columns[key] = found
        return found

    def _kept(self, key: tuple[Any, ...], estimate: Callable[..., Any], *about: Any) -> Any:
        """An estimate of a filtered table, which is kept for later queries (scans name the table's version)."""
        found = self._cache.get(key)
        if found is None:
            found = estimate(self, *about)
            self._cache.put(key, found)
        return found

    def expression(self, rel: Rel, expr: Expr) -> ColumnEstimate:
        """What the values of `expr` over `rel` look like."""
        if expr.__class__ is Column:
            return self.column(rel, expr.index)
        return expression.estimate(self, rel, expr)

    def selectivity(self, rel: Rel, condition: Expr) -> float:
        """The share of the rows of `rel` for which `condition` is TRUE."""
        before = self.rows(rel)
        return self.rows(Filter(rel, condition)) / before if before > 0 else 1.0

    def row_bytes(self, rel: Rel) -> float:
        """The mean size of a row in a batch."""
        return sum([self.column(rel, index).mean_bytes for index in range(len(rel.schema.fields))])

    def chain(self, rel: Rel) -> Chain | None:
        """`rel` as filters over one scan, when that is what it is."""
        if rel in self._chains:
            return self._chains[rel]
        found = self._chains[rel] = chain_of(self, rel)
        return found

    def tuples(self, rel: Rel, exprs: Sequence[Expr]) -> float:
        """How many distinct tuples `exprs` give over the rows of `rel`."""
        columns = [self.expression(rel, expr) for expr in exprs]
        if len(columns) == 1:
            return columns[0].distinct
        rows = self.rows(rel)
        distinct = min(rows, math.prod([column.distinct for column in columns]))
        whole = self.origin_tuples(columns)
        if whole is not None:
            distinct = min(distinct, remaining(whole.distinct, max(whole.rows, rows), rows))
        return max(1.0, distinct)

    def origin_tuples(self, columns: Sequence[ColumnEstimate]) -> Tuples | None:
        """Distinct tuples of the columns in the one table that they come from; None where there is none."""
        origins = [column.origin for column in columns]
        first = origins[0]
        if first is None or any(o is None or o.table != first.table or o.version != first.version for o in origins):
            return None
        positions = tuple(sorted({origin.column for origin in origins if origin is not None}))
        rows = float(self.samples.statistics(first.table, first.version).rows)
        return Tuples(self.samples.distinct_tuples(first.table, first.version, positions), rows)


class Tuples(NamedTuple):
    """Distinct tuples of some columns of a table, and its rows."""

    distinct: float
    rows: float

    @property
    def unique(self) -> bool:
        return self.distinct >= self.rows


# ------------------------------------------------------------------------------------------------ rows


def _estimated_rows(estimator: Estimator, rel: Rel) -> float:
    rows = _ROWS[rel.__class__](estimator, rel)
    return rows if 0.0 <= rows <= ROWS_MAX else min(max(0.0, rows), ROWS_MAX)


def _filter_rows(estimator: Estimator, rel: Filter) -> float:
    chain = estimator.chain(rel)
    if chain is not None:
        return estimator.rows(chain.scan) * chain_share(estimator, chain)
    return estimator.rows(rel.input) * predicate.share(estimator, rel.input, rel.predicate)


def _aggregate_rows(estimator: Estimator, rel: Aggregate) -> float:
    rows = estimator.rows(rel.input)
    if rel.grouping_sets is None:
        return _groups(estimator, rel.input, rel.keys, rows)
    return sum([_groups(estimator, rel.input, [rel.keys[i] for i in chosen], rows) for chosen in rel.grouping_sets])


def _groups(estimator: Estimator, source: Rel, keys: Sequence[Expr], rows: float) -> float:
    """How many distinct keys there are: columns of one table together, tables independent of each other."""
    if not keys:
        return 1.0
    by_table: dict[Any, list[ColumnEstimate]] = {}
    for index, key in enumerate(keys):
        column = estimator.expression(source, key)
        origin = column.origin
        by_table.setdefault(index if origin is None else (origin.table, origin.version), []).append(column)
    groups = 1.0
    for columns in by_table.values():
        keyed = [column.distinct for column in columns if column.unique]
        # A key determines the other columns of its table.
        groups *= max(1.0, min(keyed) if keyed else math.prod([column.distinct for column in columns]))
        if groups > rows:
            return max(rows, 1.0) if rows > 0 else 0.0
    return min(rows, groups) if rows < 1 else max(1.0, remaining(groups, max(rows, groups), rows))


def _union_rows(estimator: Estimator, rel: Union) -> float:
    return sum([estimator.rows(source) for source in rel.sources])


def _cut_rows(estimator: Estimator, rel: Sort | Limit) -> float:
    rows = estimator.rows(rel.input)
    if rel.limit is None and not rel.offset:
        return rows
    rows = max(0.0, rows - rel.offset)
    return rows if rel.limit is None else min(rows, float(rel.limit))


def _scan_rows(estimator: Estimator, rel: Scan) -> float:
    return float(estimator.samples.statistics(rel.table, rel.version).rows)


def _input_rows(estimator: Estimator, rel: Project | Window | RowNumbers | Assume) -> float:
    return estimator.rows(rel.input)


def _unnested_rows(estimator: Estimator, rel: Unnest) -> float:
    return estimator.rows(rel.input) * _ELEMENTS_EXPECTED


def _values_rows(estimator: Estimator, rel: Values) -> float:
    return float(len(rel.rows))


def _dependent_rows(estimator: Estimator, rel: DependentJoin) -> float:
    left = estimator.rows(rel.left)
    return left if rel.kind is not JoinKind.INNER else left * estimator.rows(rel.right)


# Lists are sampled by nobody.
_ELEMENTS_EXPECTED: Final = 8.0

_ROWS: Final[dict[type, Callable[[Estimator, Any], float]]] = {
    Scan: _scan_rows,
    RowNumbers: _input_rows,
    Assume: _input_rows,
    Values: _values_rows,
    Project: _input_rows,
    Filter: _filter_rows,
    Join: matching.join_rows,
    DependentJoin: _dependent_rows,
    Aggregate: _aggregate_rows,
    Unnest: _unnested_rows,
    Window: _input_rows,
    Sort: _cut_rows,
    Limit: _cut_rows,
    Union: _union_rows,
}

# --------------------------------------------------------------------------------------------- columns


def _scan_column(estimator: Estimator, rel: Scan, index: int) -> ColumnEstimate:
    return estimator.samples.column(Origin(rel.table, rel.version, rel.columns[index]))


def _row_numbers_column(estimator: Estimator, rel: RowNumbers, index: int) -> ColumnEstimate:
    if index < len(rel.input.columns):
        return estimator.column(rel.input, index)
    rows = max(estimator.rows(rel), 1.0)
    return ColumnEstimate(rows, rows, unique=True)


def _assume_column(estimator: Estimator, rel: Assume, index: int) -> ColumnEstimate:
    return estimator.column(rel.input, index)


def _project_column(estimator: Estimator, rel: Project, index: int) -> ColumnEstimate:
    return estimator.expression(rel.input, rel.exprs[index])


def _filter_column(estimator: Estimator, rel: Filter, index: int) -> ColumnEstimate:
    before = estimator.column(rel.input, index)
    own = predicate.restrict(estimator, rel.input, before, index, tree.conjuncts(rel.predicate))
    share = min(1.0, own.domain / before.domain) if before.domain > 0 else 1.0
    return thinned(own, estimator.rows(rel.input) * share, estimator.rows(rel))


def thinned(column: ColumnEstimate, rows_before: float, rows_after: float) -> ColumnEstimate:
    """The column after a filter that has no regard to it."""
    if rows_after >= rows_before:
        return column
    left = remaining(column.distinct, rows_before, rows_after)
    return column if left == column.distinct else expression.with_distinct(column, left)


def _aggregate_column(estimator: Estimator, rel: Aggregate, index: int) -> ColumnEstimate:
    groups = estimator.rows(rel)
    if index >= len(rel.keys) + len(rel.aggregates):
        return ColumnEstimate(float(len(rel.grouping_sets or ())), 1.0)
    if index < len(rel.keys):
        key = estimator.expression(rel.input, rel.keys[index])
        alone = len(rel.keys) == 1 and rel.grouping_sets is None
        return expression.as_key(key, groups) if alone else key
    call: Aggregation = rel.aggregates[index - len(rel.keys)]
    return expression.aggregated(estimator, rel.input, call, groups)


def _unnested_column(estimator: Estimator, rel: Unnest, index: int) -> ColumnEstimate:
    if index < len(rel.kept):
        return estimator.column(rel.input, rel.kept[index])
    rows = max(estimator.rows(rel), 1.0)
    return ColumnEstimate(rows, rows, mean_bytes=float(rel.schema.fields[index].type.width_bytes))


def _window_column(estimator: Estimator, rel: Window, index: int) -> ColumnEstimate:
    kept = len(rel.input.schema.fields)
    if index < kept:
        return estimator.column(rel.input, index)
    rows = max(estimator.rows(rel.input), 1.0)
    return ColumnEstimate(rows, rows, mean_bytes=float(rel.schema.fields[index].type.width_bytes))


def _cut_column(estimator: Estimator, rel: Sort | Limit, index: int) -> ColumnEstimate:
    return thinned(estimator.column(rel.input, index), estimator.rows(rel.input), estimator.rows(rel))


def _union_column(estimator: Estimator, rel: Union, index: int) -> ColumnEstimate:
    return expression.merged([estimator.column(source, index) for source in rel.sources], estimator.rows(rel))


def _values_column(estimator: Estimator, rel: Values, index: int) -> ColumnEstimate:
    values = [row[index] for row in rel.rows]
    if not values:
        return ColumnEstimate(0.0, 0.0)
    return expression.merged([expression.constant(value) for value in dict.fromkeys(values)], float(len(values)))


def _dependent_column(estimator: Estimator, rel: DependentJoin, index: int) -> ColumnEstimate:
    left = len(rel.left.schema.fields)
    if index < left:
        return estimator.column(rel.left, index)
    if rel.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE):
        return estimator.column(rel.right, index - left)
    return expression.BOOLEAN


_COLUMN: Final[dict[type, Callable[[Estimator, Any, int], ColumnEstimate]]] = {
    Scan: _scan_column,
    RowNumbers: _row_numbers_column,
    Assume: _assume_column,
    Values: _values_column,
    Project: _project_column,
    Filter: _filter_column,
    Join: matching.join_column,
    DependentJoin: _dependent_column,
    Aggregate: _aggregate_column,
    Unnest: _unnested_column,
    Window: _window_column,
    Sort: _cut_column,
    Limit: _cut_column,
    Union: _union_column,
}
