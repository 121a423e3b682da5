"""Aggregates lose DISTINCT, FILTER and grouping sets, so that backends need none of them.

`f(DISTINCT x)` per key becomes `f(x)` over the distinct pairs of key and `x`. Aggregates that can be aggregated again
ride along on that first grouping; others are computed apart and joined on the keys. FILTER becomes a CASE around the
arguments. What becomes of grouping sets is in `grouping_sets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.errors import Unsupported
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Column, Expr, SortKey, WindowCall
from bireme.plan.relation import Aggregate, Join, JoinKind, Project, Rel, Union, Window
from bireme.plan.rules.grouping_sets import (
    AGAIN,
    again_type,
    counted,
    expand_grouping_sets,
    nested_grouping_sets,
    without_filter,
)
from bireme.plan.tree import all_columns, column, map_where, project

# Aggregates whose value over distinct arguments is the one over all of them.
_BLIND_TO_REPEATS: Final = frozenset({"min", "max", "any_value", "bool_and", "bool_or", "first", "last"})


def split_distinct(plan: Rel, _: PlanContext) -> Rel:
    """`plan` with only plain aggregates."""
    return map_where(plan, (Aggregate, Window), _is_split, _split)


def _is_split(rel: Aggregate | Window) -> bool:
    """Whether there may be anything to do."""
    if isinstance(rel, Window) or rel.grouping_sets is not None:
        return True
    return any(call.distinct or call.filter is not None for call in rel.aggregates)


def _split(rel: Rel) -> Rel:
    if isinstance(rel, Window):
        return _unfiltered_window(rel)
    if not isinstance(rel, Aggregate):
        return rel
    if rel.grouping_sets is not None:
        return nested_grouping_sets(rel) or _split_expanded(expand_grouping_sets(rel))
    if not any(call.distinct or call.filter is not None for call in rel.aggregates):
        return rel
    calls = [_plain_if_blind(without_filter(call)) for call in rel.aggregates]
    if not any(call.distinct for call in calls):
        return Aggregate(rel.input, rel.keys, tuple(calls), rel.names)
    return _by_arguments(rel, calls)


def _split_expanded(expanded: Rel) -> Rel:
    """Splits the aggregates that a grouping-set expansion made; what is below them is done already."""
    match expanded:
        case Union(sources):
            return Union(tuple([_split_expanded(source) for source in sources]))
        case Project(source, exprs, names):
            return Project(_split(source), exprs, names)
    return expanded


# -------------------------------------------------------------------------------------------- filters


def _unfiltered_window(rel: Window) -> Window:
    if all(call.call.filter is None for call in rel.calls):
        return rel
    calls = [
        WindowCall(without_filter(call.call), call.partition, call.order, call.frame, call.ignore_nulls)
        for call in rel.calls
    ]
    return Window(rel.input, tuple(calls), rel.names)


def _plain_if_blind(call: Aggregation) -> Aggregation:
    if call.distinct and call.function in _BLIND_TO_REPEATS:
        return Aggregation(call.function, call.args, call.type, False, None, call.order)
    return call


# ------------------------------------------------------------------------------------------- distinct


def _by_arguments(rel: Aggregate, calls: Sequence[Aggregation]) -> Rel:
    """Groups the aggregates by the arguments they want distinct; each group is computed by one part."""
    groups: dict[tuple[Expr, ...], list[int]] = {}
    plain: list[int] = []
    for index, call in enumerate(calls):
        if call.distinct:
            groups.setdefault(call.args, []).append(index)
        else:
            plain.append(index)
    riding = [index for index in plain if calls[index].function in AGAIN]
    apart = [index for index in plain if index not in riding]
    if apart:
        riding, apart = [], plain
    parts: list[tuple[Rel, list[int]]] = []
    for args, members in groups.items():
        parts.append((_two_levels(rel, calls, args, members, riding), [*members, *riding]))
        riding = []
    if apart:
        parts.append((_one_level(rel, calls, apart), apart))
    return joined_groups(rel, parts)


def _one_level(rel: Aggregate, calls: Sequence[Aggregation], members: list[int]) -> Rel:
    width = len(rel.keys)
    names = (*rel.names[:width], *[rel.names[width + index] for index in members])
    return Aggregate(rel.input, rel.keys, tuple([calls[index] for index in members]), names)


def _two_levels(
    rel: Aggregate, calls: Sequence[Aggregation], args: tuple[Expr, ...], members: list[int], riding: list[int]
) -> Rel:
    """First by keys and arguments, then by keys: `members` over the distinct arguments, `riding` in both steps."""
    width, inner_width = len(rel.keys), len(rel.keys) + len(args)
    partial = tuple([calls[index] for index in riding])
    names = (*rel.names[:width], *["distinct" for _ in args], *[rel.names[width + index] for index in riding])
    inner = Aggregate(rel.input, (*rel.keys, *args), partial, names)
    columns = all_columns(inner.schema)
    over = dict(zip(args, columns[width:inner_width], strict=True))
    outer = [_over_distinct(calls[index], over) for index in members]
    for position, index in enumerate(riding, start=inner_width):
        call = calls[index]
        outer.append(Aggregation(AGAIN[call.function], (columns[position],), again_type(call)))
    outer_names = (*rel.names[:width], *[rel.names[width + index] for index in [*members, *riding]])
    grouped = Aggregate(inner, columns[:width], tuple(outer), outer_names)
    values: list[Expr] = list(all_columns(grouped.schema))
    for position, index in enumerate(riding, start=width + len(members)):
        if calls[index].function in ("count", "count_star"):
            values[position] = counted(values[position])
    return project(grouped, values, outer_names)


def _over_distinct(call: Aggregation, over: dict[Expr, Column]) -> Aggregation:
    if any(key.expr not in over for key in call.order):
        raise Unsupported(f"{call.function}(DISTINCT … ORDER BY …) can only be ordered by its own arguments")
    order = tuple([SortKey(over[key.expr], key.descending, key.nulls_first) for key in call.order])
    return Aggregation(call.function, tuple([over[arg] for arg in call.args]), call.type, False, None, order)


def joined_groups(rel: Aggregate, parts: list[tuple[Rel, list[int]]]) -> Rel:
    """Joins the parts on the keys, which are the same in all, and restores the order of columns."""
    width = len(rel.keys)
    joined, where = parts[0][0], {index: width + position for position, index in enumerate(parts[0][1])}
    for part, members in parts[1:]:
        base = len(joined.schema)
        left_keys = all_columns(joined.schema)[:width]
        right_keys = all_columns(part.schema)[:width]
        joined = Join(joined, part, JoinKind.INNER, left_keys, right_keys, None, width)
        where.update({index: base + width + position for position, index in enumerate(members)})
    order = [*range(width), *[where[index] for index in range(len(rel.aggregates))]]
    return project(joined, [column(joined.schema, position) for position in order], rel.names)
