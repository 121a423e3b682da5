"""Semi-joins below groupings: groups that the join above would never meet are not made.

A correlated aggregate becomes, by unnesting, a grouping of a whole table that is joined with few rows by its keys.
Every row of the region's result has its keys among those of the other relations in the same equality class, so the
input of the grouping may be reduced to the keys of the most selective of these. That one is read a second time, so it
has to be a filtered table, small against what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Final, NamedTuple

from bireme.plan import tree
from bireme.plan.expr import Column, Expr
from bireme.plan.raises import may_raise
from bireme.plan.relation import Aggregate, Filter, Join, JoinKind, Project, Rel
from bireme.plan.rules.order_joins_graph import Attachment, JoinGraph, Unit
from bireme.plan.statistics.estimator import Estimator

# A reducer must leave at most this share of the keys, and read at most this share of what the grouping reads.
_KEPT_SHARE_MAX: Final = 0.25
_READ_SHARE_MAX: Final = 0.5


class _Reducer(NamedTuple):
    """The unit with a filtered table, and the column of that of which the keys are a part."""

    unit: int
    rel: Rel
    key: Expr


def reduce_groups(graph: JoinGraph, estimator: Estimator, shared: Container[Rel], visit: Callable[[Rel], Rel]) -> None:
    """Puts semi-joins below the groupings among the units of `graph`; `visit` orders the joins below them anew."""
    for number, unit in enumerate(graph.units):
        if not _is_grouping(unit.rel):
            continue
        for key, column, null_equal in _keys(graph, number):
            path = _path(unit.rel, column, shared)
            if path is None:
                continue
            path = path._replace(null_equal=null_equal)
            reducer, share = _best_reducer(graph, estimator, number, key, path)
            if reducer is not None:
                if not _is_reduced(path.grouping, reducer):
                    _replace(graph, number, visit(_with_semi_join(path, reducer)))
                # What the semi-join has kept meets the reducer for certain.
                graph.dependent.append((1 << number | 1 << reducer.unit, 1 / share))
                break


def _is_grouping(rel: Rel) -> bool:
    while isinstance(rel, (Filter, Project)):
        rel = rel.input
    return isinstance(rel, Aggregate) and bool(rel.keys) and rel.grouping_sets is None


def _keys(graph: JoinGraph, number: int) -> Iterator[tuple[Expr, int, bool]]:
    """What the unit is joined by: an expression over the rest of the graph, the unit's own column, and whether NULLs of
    both are equal.
    """
    unit = graph.units[number]
    attachment = unit.attachment
    if attachment is not None:
        if not attachment.null_aware:
            pairs = zip(attachment.left_keys, attachment.right_keys, strict=True)
            for index, (left, right) in enumerate(pairs):
                if isinstance(right, Column):
                    yield left, right.index, index < attachment.null_equal_count
        return
    for group in graph.classes:
        for member, units in group.members.items():
            if units == 1 << number and isinstance(member, Column):
                yield member, member.index - unit.start, False


class _Path(NamedTuple):
    """The relations from a unit down to its grouping, and the key that the grouping has for a column of the unit."""

    above: tuple[Rel, ...]
    grouping: Aggregate
    key: Expr
    null_equal: bool = False


def _path(rel: Rel, column: int, shared: Container[Rel]) -> _Path | None:
    above: list[Rel] = []
    while rel not in shared:
        match rel:
            case Filter(source):
                above.append(rel)
                rel = source
            case Project(source, exprs):
                expr = exprs[column]
                if not isinstance(expr, Column):
                    return None
                above.append(rel)
                rel, column = source, expr.index
            case Aggregate(_, keys):
                return _Path(tuple(above), rel, keys[column]) if column < len(keys) else None
            case _:
                return None
    return None


def _best_reducer(
    graph: JoinGraph, estimator: Estimator, number: int, key: Expr, path: _Path
) -> tuple[_Reducer | None, float]:
    """The reducer that leaves the fewest keys, if it is worth its reading, and the share of keys it leaves."""
    grouped = estimator.expression(path.grouping.input, path.key)
    read = max([estimator.rows(rel) for rel in tree.relations_outside_subqueries(path.grouping.input)])
    best: _Reducer | None = None
    best_share = _KEPT_SHARE_MAX
    for reducer in _reducers(graph, number, key):
        chain = estimator.chain(reducer.rel)
        if chain is None or estimator.rows(chain.scan) > _READ_SHARE_MAX * read:
            continue
        column = estimator.expression(reducer.rel, reducer.key)
        share = column.distinct / max(column.domain, grouped.domain, 1.0)
        if 0 < share <= best_share:
            best, best_share = reducer, share
    return best, best_share


def _reducers(graph: JoinGraph, number: int, key: Expr) -> Iterator[_Reducer]:
    """Tables that hold `key`, in every row of the result, among the values of a column."""
    equals = [] if may_raise(key) else [(key, graph.units_read(key))]
    for group in graph.classes:
        if key in group.members:
            equals = list(group.members.items())
    for member, units in equals:
        leaf = units.bit_length() - 1
        if units == 1 << leaf and leaf != number and graph.units[leaf].attachment is None:
            unit = graph.units[leaf]
            yield _Reducer(leaf, unit.rel, tree.shift(member, -unit.start))
    for index, unit in enumerate(graph.units):
        attachment = unit.attachment
        if attachment is not None and attachment.kind is JoinKind.SEMI:
            for left, right in zip(attachment.left_keys, attachment.right_keys, strict=True):
                if any(left is member for member, _ in equals):
                    yield _Reducer(index, attachment.right, right)


def _key_values(reducer: _Reducer) -> Rel:
    """The reducer's keys alone; the reducer itself where it has nothing else."""
    name = reducer.rel.schema.fields[reducer.key.index].name if isinstance(reducer.key, Column) else "key"
    return tree.project(reducer.rel, [reducer.key], [name])


def _semi_join(path: _Path, reducer: _Reducer) -> Join:
    keys, key = _key_values(reducer), path.key
    return Join(path.grouping.input, keys, JoinKind.SEMI, (key,), (Column(0, key.type),), None, int(path.null_equal))


def _is_reduced(grouping: Aggregate, reducer: _Reducer) -> bool:
    """Whether the grouping has this reducer below it already."""
    keys = _key_values(reducer)
    return any(
        isinstance(rel, Join) and rel.kind is JoinKind.SEMI and rel.right is keys
        for rel in tree.relations_outside_subqueries(grouping.input)
    )


def _with_semi_join(path: _Path, reducer: _Reducer) -> Rel:
    rel: Rel = tree.with_inputs(path.grouping, [_semi_join(path, reducer)])
    for above in reversed(path.above):
        rel = tree.with_inputs(above, [rel])
    return rel


def _replace(graph: JoinGraph, number: int, rel: Rel) -> None:
    unit = graph.units[number]
    attachment = unit.attachment
    if attachment is not None:
        attachment = Attachment(
            attachment.kind,
            rel,
            attachment.left_keys,
            attachment.right_keys,
            attachment.residual,
            attachment.null_equal_count,
            attachment.null_aware,
            attachment.needs,
        )
    graph.units[number] = Unit(rel, unit.start, attachment)
