"""Joins that keep rows without a match, with subqueries in their condition.

The pairs for which the condition holds are found by an inner join of numbered rows; these numbers then join each side
to the other. How an inner join is filtered by subqueries is `unnest_subqueries`' concern, which gives it as `keep`.
"""

from __future__ import annotations

from collections.abc import Callable

from bireme.data.types import BOOL, INT64
from bireme.plan.expr import WHOLE_PARTITION, Aggregation, Call, Column, Expr, WindowCall
from bireme.plan.relation import Join, JoinKind, Rel, Window
from bireme.plan.rules.unnest_apply import move_outer
from bireme.plan.tree import conjoin, conjuncts, map_expr, remap, select, with_plan

# The rows of a relation for which a condition is TRUE.
Keep = Callable[[Rel, Expr], Rel]


def outer_join(rel: Join, keep: Keep) -> Rel:
    """A LEFT, RIGHT, FULL, SEMI or ANTI join without its residual condition."""
    if rel.kind is JoinKind.RIGHT:
        return _swapped(rel, keep)
    left = numbered_rows(rel.left)
    if rel.kind is JoinKind.FULL:
        return _full(rel, left, keep)
    left_width, right_width = len(rel.left.schema), len(rel.right.schema)
    pairs = select(_pairs(rel, left, rel.right, keep), range(left_width, left_width + 1 + right_width))
    joined = Join(left, pairs, rel.kind, (_number(left_width),), (_number(0),))
    kept = [*range(left_width)]
    if rel.kind is JoinKind.LEFT:
        kept += range(left_width + 2, left_width + 2 + right_width)
    return select(joined, kept)


def _pairs(rel: Join, left: Rel, right: Rel, keep: Keep) -> Rel:
    """The pairs of rows for which the condition holds; `left` has a number behind its columns."""
    width = len(rel.left.schema)
    moved = [*range(width), *range(width + 1, width + 1 + len(rel.right.schema))]
    inner = Join(left, right, JoinKind.INNER, rel.left_keys, rel.right_keys, None, rel.null_equal_count)
    assert rel.residual is not None
    return keep(inner, _move(rel.residual, moved))


def _full(rel: Join, left: Rel, keep: Keep) -> Rel:
    """Left rows with the numbers of the right rows that they match, joined to those by number."""
    left_width, right_width = len(rel.left.schema), len(rel.right.schema)
    right = numbered_rows(rel.right)
    numbers = select(_pairs(rel, left, right, keep), [left_width, left_width + 1 + right_width])
    lefts = Join(left, numbers, JoinKind.LEFT, (_number(left_width),), (_number(0),))
    joined = Join(lefts, right, JoinKind.FULL, (_number(left_width + 2),), (_number(right_width),))
    start = left_width + 3
    return select(joined, [*range(left_width), *range(start, start + right_width)])


def _swapped(rel: Join, keep: Keep) -> Rel:
    left_width, right_width = len(rel.left.schema), len(rel.right.schema)
    swap = [*range(right_width, right_width + left_width), *range(right_width)]
    assert rel.residual is not None
    residual = _move(rel.residual, swap)
    mirrored = Join(rel.right, rel.left, JoinKind.LEFT, rel.right_keys, rel.left_keys, residual, rel.null_equal_count)
    return select(outer_join(mirrored, keep), swap)


def _number(index: int) -> Column:
    return Column(index, INT64)


def keys_in_residual(rel: Join) -> Join:
    """The same join without keys: their comparisons are conjuncts of the residual."""
    left_width = len(rel.left.schema)
    right_positions = [*range(left_width, left_width + len(rel.right.schema))]
    parts = conjuncts(rel.residual)
    for index, (left_key, right_key) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True)):
        function = "is_not_distinct" if index < rel.null_equal_count else "eq"
        parts.append(Call(function, (left_key, _move(right_key, right_positions)), BOOL))
    return Join(rel.left, rel.right, rel.kind, (), (), conjoin(parts))


def numbered_rows(rel: Rel) -> Rel:
    """`rel` with a column that is different in every row.

    What reads it twice relies on its running once, so that both see the same numbers: a `Window` that is read twice
    does (`share`), and nothing is pushed below one without partitions.
    """
    number = WindowCall(Aggregation("row_number", (), INT64), (), (), WHOLE_PARTITION)
    return Window(rel, (number,), ("row",))


def _move(expr: Expr, positions: list[int]) -> Expr:
    """`expr`, and the outer columns of subqueries in it, with the columns of its operator moved."""
    moved = map_expr(expr, lambda part: with_plan(part, lambda plan: move_outer(plan, positions)))
    return remap(moved, positions)
