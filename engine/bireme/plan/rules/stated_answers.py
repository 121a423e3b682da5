"""Aggregates over all rows of a table that its metadata answers, or nearly: counts, and smallest and largest values.

What is trusted of metadata differs. The number of rows is what every reader of a table goes by, so it is an answer, and
nothing is read. Bounds of values are none: texts may be cut short, writers may round, NaN is left out, some files have
none. They only say which splits need not be read, as they do for conditions: the input of min(x) and max(x) becomes the
first row of each order, since a top-n begins with the split that promises most and passes over what cannot come before
its row. Any rows will do as long as those with the extremes are among them.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.data.types import INT64, DataType, Field
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Column, Expr, Literal, SortKey
from bireme.plan.nullable import is_nullable
from bireme.plan.raises import may_raise
from bireme.plan.relation import Aggregate, Project, Rel, Scan, Sort, Union, Values
from bireme.plan.source import TableStatistics
from bireme.plan.top_bound import is_bounding
from bireme.plan.tree import all_columns, map_where

# Each order is a pipeline and a split or two; with fewer rows one look at all of them costs no more.
_ROWS_PER_ORDER_MIN: Final = 1 << 19

# A column of the scan, and whether the largest value is wanted.
Order = tuple[int, bool]


def stated_answers(plan: Rel, context: PlanContext) -> Rel:
    """`plan` without scans that are read only to count rows, or to find values that few splits can hold."""
    return map_where(plan, (Aggregate,), _is_of_a_table, lambda rel: _answered(rel, context))


def _is_of_a_table(rel: Rel) -> TypeGuard[Aggregate]:
    return rel.__class__ is Aggregate and not rel.keys and rel.input.__class__ is Scan


def _answered(rel: Rel, context: PlanContext) -> Rel:
    if not _is_of_a_table(rel):
        return rel
    scan = rel.input
    assert isinstance(scan, Scan)
    if rel.grouping_sets is not None or scan.filters or any(call.distinct or call.filter for call in rel.aggregates):
        return rel
    others = tuple([call for call in rel.aggregates if not _counts_rows(call, scan.schema)])
    stated = context.estimates.samples.statistics(scan.table, scan.version)
    if not others:
        return _counted(rel, scan, stated.rows)
    orders = _orders(others, scan, stated)
    if orders is None:
        return rel
    narrowed = replaced(rel, input=_first_rows(scan, orders))
    return narrowed if len(others) == len(rel.aggregates) else _with_counts(narrowed, others, scan, stated.rows)


def _counts_rows(call: Aggregation, schema: Schema) -> bool:
    if call.function != "count":
        return call.function == "count_star"
    value = call.args[0]
    return not is_nullable(value, schema) and not may_raise(value)


def _row_count(scan: Scan, rows: int) -> Rel:
    """One row with the number of rows of the table, under a name that tells where it comes from."""
    name = f"rows of {scan.table} as its metadata states"
    return Values(((Literal(rows, INT64),),), Schema((Field(name, INT64, False),)))


def _counted(rel: Aggregate, scan: Scan, rows: int) -> Rel:
    count = _row_count(scan, rows)
    return Project(count, all_columns(count.schema) * len(rel.aggregates), rel.names)


def _with_counts(rel: Aggregate, others: tuple[Aggregation, ...], scan: Scan, rows: int) -> Rel:
    """`rel` of which the aggregates `others` are computed and the rest, counts, are the number of rows."""
    found = Aggregate(rel.input, (), others, tuple([f"part{index}" for index in range(len(others))]))
    columns = iter(all_columns(found.schema))
    exprs: list[Expr] = []
    for call in rel.aggregates:
        exprs.append(Literal(rows, INT64) if _counts_rows(call, scan.schema) else next(columns))
    return Project(found, tuple(exprs), rel.names)


def _orders(calls: tuple[Aggregation, ...], scan: Scan, stated: TableStatistics) -> list[Order] | None:
    """The orders of whose first rows the aggregates can be computed; None where that does not do, or does not pay."""
    found: dict[Order, None] = {}
    for call in calls:
        value = call.args[0] if call.function in ("min", "max") else None
        if not isinstance(value, Column) or not _has_bounds(value.type):
            return None
        if stated.columns[scan.columns[value.index]].minimum is None:
            return None
        found[value.index, call.function == "max"] = None
    return list(found) if stated.rows >= _ROWS_PER_ORDER_MIN * len(found) else None


def _has_bounds(kind: DataType) -> bool:
    """Whether the first value of an order is the very value an aggregate keeps: zeros of both signs are equal."""
    return is_bounding(kind) and not kind.is_float


def _first_rows(scan: Scan, orders: list[Order]) -> Rel:
    """The columns of a scan, in the first row of each order."""
    parts = tuple([_first_row(scan, column, is_largest) for column, is_largest in orders])
    return parts[0] if len(parts) == 1 else Union(parts)


def _first_row(scan: Scan, column: int, is_largest: bool) -> Rel:
    alone = replaced(scan, columns=(scan.columns[column],))
    value = all_columns(alone.schema)[0]
    first = Sort(alone, (SortKey(value, is_largest, False),), limit=1)
    fields = scan.schema.fields
    exprs = [value if place == column else Literal(None, field.type) for place, field in enumerate(fields)]
    return Project(first, tuple(exprs), scan.schema.names)
