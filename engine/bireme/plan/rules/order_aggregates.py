"""Aggregates with ORDER BY inside become plain ones over sorted rows.

All calls that want one order are computed over one sort of the input; those that want none, too, unless they follow the
order in which rows came. Several orders are several groupings, joined on the keys.
"""

from __future__ import annotations

from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, SortKey
from bireme.plan.relation import Aggregate, Rel, Sort
from bireme.plan.rules.split_distinct import joined_groups
from bireme.plan.states import sees_order
from bireme.plan.tree import map_where


def order_aggregates(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without orders inside aggregates."""
    return map_where(plan, (Aggregate,), _has_order, _ordered)


def _has_order(rel: Aggregate) -> bool:
    return any(call.order for call in rel.aggregates)


def _ordered(rel: Rel) -> Rel:
    if not isinstance(rel, Aggregate) or not _has_order(rel):
        return rel
    by_order: dict[tuple[SortKey, ...], list[int]] = {}
    indifferent: list[int] = []
    for index, call in enumerate(rel.aggregates):
        if call.order or sees_order(call.function):
            by_order.setdefault(call.order, []).append(index)
        else:
            indifferent.append(index)
    parts: list[tuple[Rel, list[int]]] = []
    for order, members in by_order.items():
        members = sorted([*members, *indifferent])
        indifferent = []
        parts.append((_sorted(rel, order, members), members))
    return joined_groups(rel, parts)


def _sorted(rel: Aggregate, order: tuple[SortKey, ...], members: list[int]) -> Rel:
    """The groups with the aggregates `members`, over rows in this order."""
    width = len(rel.keys)
    calls = tuple([_plain(rel.aggregates[index]) for index in members])
    names = (*rel.names[:width], *[rel.names[width + index] for index in members])
    return Aggregate(Sort(rel.input, order) if order else rel.input, rel.keys, calls, names)


def _plain(call: Aggregation) -> Aggregation:
    return Aggregation(call.function, call.args, call.type, call.distinct, call.filter)
