"""Sums of one value with several constants added become one sum and one count: sum(x + c) = sum(x) + c * count(x).

Only exact numbers, only where bounds of `x` prove that no `x + c` leaves its type, which would be an error, and only
where that leaves fewer aggregates than there were. Metadata that lies can thus hide that error, but not change a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bireme.data.types import HUGEINT, Kind
from bireme.plan import functions
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Call, Expr, Literal
from bireme.plan.relation import Aggregate, Project, Rel
from bireme.plan.statistics.bounds import Bounds, scaled, type_range
from bireme.plan.tree import all_columns, map_where


def share_sums(plan: Rel, context: PlanContext) -> Rel:
    """`plan` with such sums shared."""
    bounds = context.bounds
    return map_where(plan, (Aggregate,), _is_shared, lambda rel: _shared(rel, bounds))


def _is_shared(rel: Aggregate) -> bool:
    """Whether there are sums enough to share."""
    return len(rel.aggregates) > 2


class _Shifted(NamedTuple):
    """A sum of `value` plus, or with `sign` -1 minus, a constant."""

    value: Expr
    sign: int
    constant: Literal


def _shared(rel: Rel, bounds: Bounds) -> Rel:
    if not isinstance(rel, Aggregate) or rel.grouping_sets is not None:
        return rel
    found = [_shifted(rel, call, bounds) for call in rel.aggregates]
    values = [each.value for each in found if each is not None]
    # A sum and a count take their place, so two of a value bring nothing.
    found = [each if each is not None and values.count(each.value) > 2 else None for each in found]
    if not any(found):
        return rel
    return _rebuilt(rel, found)


def _shifted(rel: Aggregate, call: Aggregation, bounds: Bounds) -> _Shifted | None:
    """The sum taken apart, where that is proved to change nothing."""
    if call.function != "sum" or call.distinct or call.filter is not None:
        return None
    added = call.args[0]
    if not isinstance(added, Call) or added.function not in ("add", "subtract") or not _is_exact(added):
        return None
    value, constant = added.args
    if isinstance(value, Literal) and added.function == "add":
        value, constant = constant, value
    if not isinstance(constant, Literal) or not _is_exact(value) or not _is_exact(constant):
        return None
    shift = _Shifted(value, -1 if added.function == "subtract" else 1, constant)
    return shift if _fits(rel, added, shift, bounds) else None


def _is_exact(expr: Expr) -> bool:
    return expr.type.is_integer or expr.type.kind is Kind.DECIMAL


def _fits(rel: Aggregate, added: Call, shift: _Shifted, bounds: Bounds) -> bool:
    """Whether no value plus the constant can leave the type of the addition."""
    known, limits = bounds.value(rel.input, shift.value), type_range(added.type)
    constant = scaled(shift.constant.value, added.type)
    if known is None or limits is None or constant is None:
        return False
    scale: int = 10 ** (added.type.scale - shift.value.type.scale)
    low, high = known.low * scale + shift.sign * constant, known.high * scale + shift.sign * constant
    return limits.low <= low and high <= limits.high


def _rebuilt(rel: Aggregate, found: Sequence[_Shifted | None]) -> Rel:
    calls: dict[Aggregation, int] = {}

    def position(call: Aggregation) -> int:
        return len(rel.keys) + calls.setdefault(call, len(calls))

    places = []
    for call, shift in zip(rel.aggregates, found, strict=True):
        if shift is None:
            places.append((position(call), -1))
        else:
            total, count = functions.aggregate("sum", [shift.value]), functions.aggregate("count", [shift.value])
            places.append((position(total), position(count)))
    width = len(rel.keys)
    names = (*rel.names[:width], *[f"part{index}" for index in range(len(calls))])
    grouped = Aggregate(rel.input, rel.keys, tuple(calls), names)
    columns = all_columns(grouped.schema)
    values: list[Expr] = []
    for call, shift, (total_at, count_at) in zip(rel.aggregates, found, places, strict=True):
        values.append(columns[total_at] if shift is None else _sum(call, shift, columns[total_at], columns[count_at]))
    return Project(grouped, (*columns[:width], *values), rel.names)


def _sum(call: Aggregation, shift: _Shifted, total: Expr, count: Expr) -> Expr:
    times = functions.scalar("*", [functions.cast(count, HUGEINT), shift.constant])
    return functions.cast(functions.scalar("+" if shift.sign > 0 else "-", [total, times]), call.type)
