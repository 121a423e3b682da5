"""Aggregates that no backend has become others that all have.

Moments of two variables become variances: with a = var(x + y) and b = var(x - y) the covariance is (a - b) / 4. Means
may be as large as they like, but where x varies 10^k times as much as y, k of the 16 digits are lost. Quantiles become
the least value at one or two positions: rows are numbered by value within their group, those whose value is NULL in a
window of their own, so that the rows of the other window are those that count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bireme.data.types import BOOL, FLOAT64, DataType
from bireme.errors import DomainFault, Unsupported
from bireme.plan import functions
from bireme.plan.context import PlanContext
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Call,
    Case,
    Expr,
    Literal,
    SortKey,
    WindowCall,
)
from bireme.plan.nullable import is_nullable
from bireme.plan.relation import Aggregate, Project, Rel, Window
from bireme.plan.rules.split_distinct import expand_grouping_sets
from bireme.plan.tree import all_columns, map_relations

Finish = Callable[[Sequence[Expr]], Expr]
"""The value of a call from the columns of its parts."""


def spell_aggregates(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without moments of two variables, and without quantiles of numbers."""
    return map_relations(plan, _spelt)


def _spelt(rel: Rel) -> Rel:
    if not isinstance(rel, Aggregate) or not any(_is_moment(call) or _is_quantile(call) for call in rel.aggregates):
        return rel
    if rel.grouping_sets is not None:
        return map_relations(expand_grouping_sets(rel), _spelt)
    source, places = _numbered(rel)
    width = len(rel.keys)
    calls: list[Aggregation] = []
    finishes: list[tuple[int, int, Finish]] = []
    for call in rel.aggregates:
        parts, finish = _parts(call, rel, places)
        start = width + len(calls)
        calls += parts
        finishes.append((start, start + len(parts), finish))
    names = (*rel.names[:width], *[f"part{index}" for index in range(len(calls))])
    grouped = Aggregate(source, rel.keys, tuple(calls), names)
    columns = all_columns(grouped.schema)
    values = [finish(columns[start:end]) for start, end, finish in finishes]
    return Project(grouped, (*columns[:width], *values), rel.names)


def _parts(
    call: Aggregation, rel: Aggregate, places: dict[Expr, tuple[Expr, Expr]]
) -> tuple[list[Aggregation], Finish]:
    """What to compute instead of a call, and the call's value from that."""
    if not _is_moment(call) and not _is_quantile(call):
        return [call], lambda columns: columns[0]
    if call.distinct:
        raise Unsupported(f"{call.function}(DISTINCT …) is not offered; take the distinct rows in a subquery")
    return _quantile(call, *places[_counted(call)]) if _is_quantile(call) else _moments(call, rel)


def _scalar(name: str, *args: Expr) -> Expr:
    return functions.scalar(name, list(args))


def _double(value: float) -> Literal:
    return Literal(value, FLOAT64)


def _null(kind: DataType) -> Literal:
    return Literal(None, kind)


# ------------------------------------------------------------------------------------------- two variables


def _is_moment(call: Aggregation) -> bool:
    return call.function in ("corr", "covar_pop", "covar_samp")


def _moments(call: Aggregation, rel: Aggregate) -> tuple[list[Aggregation], Finish]:
    first, second = call.args
    x, y = _where_present(first, second, rel), _where_present(second, first, rel)
    variance = "var_samp" if call.function == "covar_samp" else "var_pop"
    arguments = [_scalar("+", x, y), _scalar("-", x, y), *([x, y] if call.function == "corr" else [])]
    parts = [functions.aggregate(variance, [arg], filter=call.filter) for arg in arguments]
    return parts, _correlation if call.function == "corr" else _covariance


def _where_present(value: Expr, other: Expr, rel: Aggregate) -> Expr:
    """The value, or NULL where the other one is: a pair counts only as a whole."""
    if not is_nullable(other, rel.input.schema):
        return value
    return Case(((Call("is_null", (other,), BOOL), _null(value.type)),), value, value.type)


def _covariance(columns: Sequence[Expr]) -> Expr:
    return _scalar("*", _scalar("-", columns[0], columns[1]), _double(0.25))


def _correlation(columns: Sequence[Expr]) -> Expr:
    """NaN where one variable is constant: the digits that are lost must not look like a correlation."""
    scale = _scalar("*", _scalar("sqrt", columns[2]), _scalar("sqrt", columns[3]))
    quotient = _scalar("/", _covariance(columns), scale)
    return Case(((_scalar("=", scale, _double(0.0)), _double(math.nan)),), quotient, FLOAT64)


# ----------------------------------------------------------------------------------------------- quantiles


def _is_quantile(call: Aggregation) -> bool:
    """Whether it is a quantile that is computed here: any value at a position, but only numbers between two."""
    if call.function == "quantile_disc":
        return True
    return call.function in ("median", "quantile_cont") and (call.args[0].type.is_float or call.args[0].type.is_integer)


def _counted(call: Aggregation) -> Expr:
    """The value that the quantile is of, NULL in rows that do not count."""
    value = call.args[0]
    if call.filter is None:
        return value
    return Case(((call.filter, value),), _null(value.type), value.type)


def _numbered(rel: Aggregate) -> tuple[Rel, dict[Expr, tuple[Expr, Expr]]]:
    """The input with two columns for each value that a quantile is of: its number in its group, and of how many."""
    values = list(dict.fromkeys(_counted(call) for call in rel.aggregates if _is_quantile(call)))
    if not values:
        return rel.input, {}
    calls = []
    for value in values:
        window = (*rel.keys, Call("is_null", (value,), BOOL))
        order = (SortKey(value, False, False),)
        calls.append(WindowCall(functions.window("row_number", []), window, order, UP_TO_PEERS))
        calls.append(WindowCall(functions.window("count", []), window, (), WHOLE_PARTITION))
    source = Window(rel.input, tuple(calls), tuple([f"place{index}" for index in range(len(calls))]))
    added = all_columns(source.schema)[len(rel.input.schema) :]
    return source, {value: (added[2 * index], added[2 * index + 1]) for index, value in enumerate(values)}


def _quantile(call: Aggregation, number: Expr, rows: Expr) -> tuple[list[Aggregation], Finish]:
    value, fraction = _counted(call), _fraction(call)
    place = functions.cast(_scalar("-", number, Literal(1, number.type)), FLOAT64)
    last = functions.cast(_scalar("-", rows, Literal(1, rows.type)), FLOAT64)

    def at(position: Expr) -> Aggregation:
        return functions.aggregate("min", [value], filter=_scalar("=", place, position))

    if call.function == "quantile_disc":
        return [at(_scalar("greatest", _double(0.0), _discrete(rows, fraction)))], lambda columns: columns[0]
    position = _scalar("*", last, _double(fraction))
    below = _scalar("floor", position)
    part = functions.aggregate("max", [_scalar("-", position, below)], filter=Call("is_not_null", (value,), BOOL))
    return [at(below), at(_scalar("ceil", position)), part], lambda columns: _between(columns, call.type)


def _fraction(call: Aggregation) -> float:
    if call.function == "median":
        return 0.5
    fraction = call.args[1]
    value = fraction.value if isinstance(fraction, Literal) else None
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise DomainFault(f"the fraction of {call.function} must be from 0 to 1, not {value!r}")
    return value


def _discrete(rows: Expr, fraction: float) -> Expr:
    """The position, from 0, of the first value that the fraction of all values does not exceed."""
    count = functions.cast(rows, FLOAT64)
    after = _scalar("floor", _scalar("-", count, _scalar("*", count, _double(fraction))))
    return _scalar("-", _scalar("-", count, after), _double(1.0))


def _between(columns: Sequence[Expr], kind: DataType) -> Expr:
    """The value so far between two neighbours; where they are one, infinities included, that one."""
    low, high, part = functions.cast(columns[0], FLOAT64), functions.cast(columns[1], FLOAT64), columns[2]
    between = _scalar("+", low, _scalar("*", _scalar("-", high, low), part))
    return functions.cast(Case(((_scalar("=", low, high), low),), between, FLOAT64), kind)
