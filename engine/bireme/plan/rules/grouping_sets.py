"""Grouping sets become a union of plain groupings.

Where one set has the keys of all others, as in ROLLUP and CUBE, and all aggregates can be aggregated again, the rows
are grouped once, by that set, and the others are made of its groups. Otherwise each is grouped from one shared input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.types import FLOAT64, HUGEINT, INT64, DataType
from bireme.errors import Unsupported
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Call, Case, Cast, Expr, Literal
from bireme.plan.relation import Aggregate, Project, Rel, Union
from bireme.plan.tree import TRUE, all_columns

# What to aggregate partial results with; counts are summed.
AGAIN: Final = {
    "sum": "sum", "min": "min", "max": "max", "bool_and": "bool_and", "bool_or": "bool_or", "any_value": "any_value",
    "count": "sum", "count_star": "sum",
}  # fmt: skip
# Aggregates for which a NULL argument is a row like any other, so that a CASE cannot stand for FILTER.
_SEES_NULL: Final = frozenset({"first", "last", "array_agg"})


def expand_grouping_sets(rel: Aggregate) -> Rel:
    """One aggregate for each grouping set, padded to the columns of `rel`."""
    assert rel.grouping_sets is not None
    return _union([_one_set(rel, number) for number in range(len(rel.grouping_sets))])


def _union(sources: Sequence[Rel]) -> Rel:
    return sources[0] if len(sources) == 1 else Union(tuple(sources))


def _one_set(rel: Aggregate, number: int) -> Rel:
    assert rel.grouping_sets is not None
    chosen = sorted(set(rel.grouping_sets[number]))
    kept = [rel.names[index] for index in chosen]
    grouped = Aggregate(
        rel.input, tuple([rel.keys[index] for index in chosen]), rel.aggregates, (*kept, *rel.names[len(rel.keys) :])
    )
    return _padded(rel, number, grouped, chosen, all_columns(grouped.schema)[len(chosen) :])


def _padded(rel: Aggregate, number: int, grouped: Rel, chosen: Sequence[int], values: Sequence[Expr]) -> Rel:
    """`grouped` begins with the keys `chosen`; the others are NULL."""
    columns = all_columns(grouped.schema)
    keys: list[Expr] = [Literal(None, key.type) for key in rel.keys]
    for position, index in enumerate(chosen):
        keys[index] = columns[position]
    return Project(grouped, (*keys, *values, Literal(number, INT64)), rel.schema.names)


# ------------------------------------------------------------------------------------ sets made of others


def nested_grouping_sets(rel: Aggregate) -> Rel | None:
    """The sets made of the groups of the finest one; None where that is not offered."""
    assert rel.grouping_sets is not None
    sets = [sorted(set(chosen)) for chosen in rel.grouping_sets]
    finest = max(sets, key=len)
    calls = [without_filter(call) for call in rel.aggregates]
    if len(sets) < 2 or not all(set(finest).issuperset(chosen) for chosen in sets) or not all(map(_is_again, calls)):
        return None
    parts: dict[Aggregation, int] = {}
    for call in calls:
        for part in _parts(call):
            parts.setdefault(part, len(parts))
    names = (*[rel.names[index] for index in finest], *[f"part{index}" for index in range(len(parts))])
    grouped = Aggregate(rel.input, tuple([rel.keys[index] for index in finest]), tuple(parts), names)
    return _union([_of_finest(rel, number, grouped, finest, calls) for number in range(len(sets))])


def _is_again(call: Aggregation) -> bool:
    if call.distinct or call.order:
        return False
    return call.function in AGAIN or (call.function == "avg" and call.type is FLOAT64)


def _parts(call: Aggregation) -> list[Aggregation]:
    if call.function != "avg":
        return [call]
    return [functions.aggregate("sum", call.args), functions.aggregate("count", call.args)]


def _of_finest(
    rel: Aggregate, number: int, grouped: Aggregate, finest: Sequence[int], calls: Sequence[Aggregation]
) -> Rel:
    assert rel.grouping_sets is not None
    chosen = sorted(set(rel.grouping_sets[number]))
    source, values = _regrouped(grouped, [finest.index(index) for index in chosen])
    by_part = dict(zip(grouped.aggregates, values, strict=True))
    finals = []
    for call in calls:
        total, *counts = [by_part[part] for part in _parts(call)]
        finals.append(_mean(total, counts[0]) if counts else total)
    return _padded(rel, number, source, chosen, finals)


def _regrouped(grouped: Aggregate, places: Sequence[int]) -> tuple[Rel, list[Expr]]:
    """The groups by some of their keys, and what became of each aggregate."""
    width = len(grouped.keys)
    columns = all_columns(grouped.schema)
    if len(places) == width:
        return grouped, list(columns[width:])
    again = tuple(
        [
            Aggregation(AGAIN[call.function], (columns[width + index],), again_type(call))
            for index, call in enumerate(grouped.aggregates)
        ]
    )
    names = (*[grouped.names[place] for place in places], *grouped.names[width:])
    coarse = Aggregate(grouped, tuple([columns[place] for place in places]), again, names)
    found = all_columns(coarse.schema)[len(places) :]
    return coarse, [
        counted(value) if call.function in _COUNTS else value
        for call, value in zip(grouped.aggregates, found, strict=True)
    ]


_COUNTS: Final = ("count", "count_star")


def again_type(call: Aggregation) -> DataType:
    return HUGEINT if call.function in _COUNTS else call.type


def counted(total: Expr) -> Expr:
    """A sum of counts as a count."""
    return Call("coalesce", (Cast(total, INT64), Literal(0, INT64)), INT64)


def _mean(total: Expr, count: Expr) -> Expr:
    return functions.scalar("divide", [functions.cast(total, FLOAT64), functions.cast(count, FLOAT64)])


# -------------------------------------------------------------------------------------------- filters


def without_filter(call: Aggregation) -> Aggregation:
    """The same aggregate with a CASE around its arguments instead of FILTER."""
    if call.filter is None:
        return call
    if call.function in _SEES_NULL:
        raise Unsupported(
            f"{call.function}(…) FILTER (WHERE …) is not offered; filter the rows in a subquery, or use any_value"
        )
    if call.function == "count_star":
        return Aggregation("count", (_where(call.filter, TRUE),), call.type)
    args = tuple([_where(call.filter, arg) for arg in call.args])
    return Aggregation(call.function, args, call.type, call.distinct, None, call.order)


def _where(condition: Expr, value: Expr) -> Expr:
    return Case(((condition, value),), Literal(None, value.type), value.type)
