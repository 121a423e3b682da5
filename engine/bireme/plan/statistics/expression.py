"""What the values of an expression look like, from what its columns look like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bireme.data.node import replaced
from bireme.data.types import Kind
from bireme.plan.expr import Aggregation, Call, Case, Cast, Expr, Literal, ScalarSubquery
from bireme.plan.relation import Rel
from bireme.plan.statistics.column import ColumnEstimate, position, values_in_range

if TYPE_CHECKING:
    from bireme.plan.statistics.estimator import Estimator

BOOLEAN: Final = ColumnEstimate(2.0, 2.0, 0.0, 1.0, mean_bytes=1.0)
_DAYS_PER_YEAR: Final = 365.2425


def constant(literal: Literal) -> ColumnEstimate:
    """A literal: one value."""
    where = position(literal.value)
    width = float(literal.type.width_bytes)
    return ColumnEstimate(1.0, 1.0, where, where, 1.0 if literal.value is None else 0.0, width)


def with_distinct(column: ColumnEstimate, distinct: float) -> ColumnEstimate:
    """The column with another number of distinct values."""
    return replaced(column, distinct=distinct)


def as_key(column: ColumnEstimate, groups: float) -> ColumnEstimate:
    """The column as the only key of a grouping."""
    return replaced(column, distinct=min(column.distinct, groups), unique=True, null_share=0.0)


def merged(columns: Sequence[ColumnEstimate], rows: float) -> ColumnEstimate:
    """Columns one below the other."""
    lows, highs = [column.low for column in columns], [column.high for column in columns]
    known = None not in lows and None not in highs
    distinct = sum([column.distinct for column in columns])
    return ColumnEstimate(
        distinct=min(distinct, max(rows, 1.0)),
        domain=sum([column.domain for column in columns]),
        low=min([low for low in lows if low is not None]) if known else None,
        high=max([high for high in highs if high is not None]) if known else None,
        null_share=sum([column.null_share for column in columns]) / len(columns),
        mean_bytes=sum([column.mean_bytes for column in columns]) / len(columns),
    )


def estimate(estimator: Estimator, rel: Rel, expr: Expr) -> ColumnEstimate:
    """What `expr` looks like over the rows of `rel`; columns are the estimator's own business."""
    match expr:
        case Literal():
            return constant(expr)
        case Cast(arg, kind):
            inner = estimator.expression(rel, arg)
            widened = kind.is_numeric or kind.is_temporal
            return (
                replaced(inner, mean_bytes=float(kind.width_bytes))
                if widened
                else _other(estimator, rel, [inner], expr)
            )
        case ScalarSubquery(plan):
            assert isinstance(plan, Rel)
            return _one_value(estimator.column(plan, 0))
        case Case(branches, default):
            values = [estimator.expression(rel, value) for _, value in branches]
            return merged([*values, estimator.expression(rel, default)], estimator.rows(rel))
        case Call(function, args):
            columns = [estimator.expression(rel, arg) for arg in args]
            if function in ("add", "subtract", "multiply") and len(columns) == 2:
                return _arithmetic(estimator, rel, function, columns[0], columns[1], expr)
            if function == "year" and columns[0].low is not None and columns[0].high is not None:
                years = (columns[0].high - columns[0].low) / _DAYS_PER_YEAR + 1
                return ColumnEstimate(max(1.0, min(columns[0].distinct, years)), max(1.0, years))
            return _other(estimator, rel, columns, expr)
        case _:
            return _other(estimator, rel, [], expr)


def _one_value(column: ColumnEstimate) -> ColumnEstimate:
    """The one value of a column that has one row, taken to be its mean."""
    known = moments(column)
    where = None if known is None else known[0]
    return ColumnEstimate(1.0, 1.0, where, where, column.null_share, column.mean_bytes)


def _other(estimator: Estimator, rel: Rel, columns: Sequence[ColumnEstimate], expr: Expr) -> ColumnEstimate:
    """A function of which nothing is known but its arguments: at most one value for each of theirs."""
    if expr.type.kind is Kind.BOOL:
        return BOOLEAN
    rows = max(estimator.rows(rel), 1.0)
    distinct = min(rows, math.prod([max(column.distinct, 1.0) for column in columns])) if columns else rows
    nulls = max([column.null_share for column in columns], default=0.0)
    return ColumnEstimate(distinct, distinct, null_share=nulls, mean_bytes=float(expr.type.width_bytes))


def _arithmetic(
    estimator: Estimator, rel: Rel, function: str, left: ColumnEstimate, right: ColumnEstimate, expr: Expr
) -> ColumnEstimate:
    plain = _other(estimator, rel, [left, right], expr)
    mean = deviation = None
    if left.mean is not None and left.deviation is not None and right.low is not None and right.low == right.high:
        mean, deviation = _scaled(function, left.mean, left.deviation, right.low)
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return replaced(plain, mean=mean, deviation=deviation)
    match function:
        case "add":
            low, high = left.low + right.low, left.high + right.high
        case "subtract":
            low, high = left.low - right.high, left.high - right.low
        case _:
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            low, high = min(corners), max(corners)
    bound = values_in_range(expr.type, low, high)
    distinct = min(plain.distinct, bound)
    return replaced(plain, low=low, high=high, distinct=distinct, domain=distinct, mean=mean, deviation=deviation)


def _scaled(function: str, mean: float, deviation: float, by: float) -> tuple[float, float]:
    match function:
        case "add":
            return mean + by, deviation
        case "subtract":
            return mean - by, deviation
        case _:
            return mean * by, abs(deviation * by)


def moments(column: ColumnEstimate) -> tuple[float, float] | None:
    """Mean and variance of a column's values, taken as uniform over its range; None where that is unknown."""
    if column.mean is not None and column.deviation is not None:
        return column.mean, column.deviation**2
    if column.low is None or column.high is None:
        return None
    return (column.low + column.high) / 2, (column.high - column.low) ** 2 / 12


def aggregated(estimator: Estimator, source: Rel, call: Aggregation, groups: float) -> ColumnEstimate:
    """The result of an aggregate over groups whose sizes are spread like a Poisson variable."""
    rows = estimator.rows(source)
    size = rows / groups if groups > 0 else 0.0
    distinct = max(groups, 1.0)
    plain = ColumnEstimate(distinct, distinct, mean_bytes=float(call.type.width_bytes))
    if call.function in ("count", "count_star"):
        return replaced(plain, mean=size, deviation=math.sqrt(size))
    if not call.args:
        return plain
    arg = estimator.expression(source, call.args[0])
    if call.function in ("min", "max", "any_value", "first", "last"):
        # One of the column's own values: compared with that column, it belongs to the key of the group.
        found = min(distinct, arg.distinct)
        return replaced(plain, low=arg.low, high=arg.high, distinct=found, domain=arg.domain, origin=arg.origin)
    known = moments(arg)
    if known is None or call.function not in ("sum", "avg"):
        return plain
    mean, variance = known
    if call.function == "avg":
        return replaced(plain, low=arg.low, high=arg.high, mean=mean, deviation=math.sqrt(variance / max(size, 1.0)))
    return replaced(plain, mean=size * mean, deviation=math.sqrt(size * (variance + mean * mean)))
