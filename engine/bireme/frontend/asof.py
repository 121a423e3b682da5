"""As-of joins as windows and one join by keys: each left row meets the nearest right row on one side of it.

Among the rows of both sides with equal keys, in order, the number of right rows up to a left row is the number of the
right row that it meets. So the work is that of two sorts and a join, out of core as those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bireme.data.types import BOOL, INT64
from bireme.plan import functions
from bireme.plan.expr import UP_TO_PEERS, WHOLE_PARTITION, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Filter, Join, JoinKind, Project, Rel, Union, Window
from bireme.plan.tree import all_columns, remap, select, shift

# Of the comparisons `left … right`: whether the nearest row comes first from the end, and whether equal ones count.
_DESCENDING: Final = {"ge": False, "gt": False, "le": True, "lt": True}
_STRICT: Final = {"ge": False, "gt": True, "le": False, "lt": True}
COMPARISONS: Final = frozenset(_DESCENDING)

Pair = tuple[Expr, Expr]


class Nearness(NamedTuple):
    """What makes a right row near: an expression over each side, of one type, and how the left one compares with it."""

    left: Expr
    right: Expr
    comparison: str

    @property
    def descending(self) -> bool:
        return _DESCENDING[self.comparison]

    @property
    def is_strict(self) -> bool:
        return _STRICT[self.comparison]


def asof_join(
    left: Rel, right: Rel, keys: Sequence[Pair], on: Nearness, kind: JoinKind, *, null_equal_count: int = 0,
    tests: Sequence[Expr] = (), residual: Expr | None = None,
) -> Rel:  # fmt: skip
    """Rows of `left` with the nearest row of `right`, of those with equal keys, as joins of that kind keep them.

    `keys` are pairs of an expression over each side, of one type. NULL compares with nothing, but is equal to NULL in
    the first keys. Right rows that fail `tests` are not there to be met; left rows that fail `residual` meet none.
    """
    tests = (functions.scalar("is_not_null", (on.right,)), *tests)
    near = Filter(right, functions.scalar("and", tests))
    lefts, wanted = _with_wanted(left, near, keys, on)
    rights = [key for _, key in keys]
    order = SortKey(on.right, on.descending)
    keeps_all = kind in (JoinKind.RIGHT, JoinKind.FULL)
    met = _numbered_where(right, tests, rights, order) if keeps_all else _numbered(near, rights, order)
    width, start = len(left.schema), len(lefts.schema)
    keys_of_both = wanted, (*rights, Column(len(right.schema), INT64))
    joined = Join(lefts, met, kind, *keys_of_both, residual, null_equal_count)
    kept = [*range(width)]
    if kind not in (JoinKind.SEMI, JoinKind.ANTI):
        kept += range(start, start + len(right.schema))
    return select(joined, kept)


def asof_join_where(left: Rel, right: Rel, keys: Sequence[Pair], on: Nearness, kind: JoinKind, holds: Expr) -> Rel:
    """The same where a pair must also fulfil `holds`: of the pairs that do, the nearest of each left row.

    All pairs are made, so it takes what they take.
    """
    width, right_width = len(left.schema), len(right.schema)
    near = functions.scalar(on.comparison, (on.left, shift(on.right, width)))
    condition = functions.scalar("and", (near, holds))
    lefts, rights = tuple([key for key, _ in keys]), tuple([key for _, key in keys])
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return Join(left, right, kind, lefts, rights, condition)
    row = WindowCall(functions.window("row_number", ()), (), (), WHOLE_PARTITION)
    numbered = Window(left, (row,), ("row",))
    moved = [*range(width), *range(width + 1, width + 1 + right_width)]
    pairs = Join(numbered, right, JoinKind.INNER, lefts, rights, remap(condition, moved))
    order = SortKey(shift(on.right, width + 1), not on.descending)
    place = WindowCall(functions.window("row_number", ()), (Column(width, INT64),), (order,), WHOLE_PARTITION)
    placed = Window(pairs, (place,), ("place",))
    first = functions.scalar("eq", (Column(len(placed.schema) - 1, INT64), Literal(1, INT64)))
    nearest = select(Filter(placed, first), range(width, width + 1 + right_width))
    joined = Join(numbered, nearest, kind, (Column(width, INT64),), (Column(0, INT64),))
    return select(joined, [*range(width), *range(width + 2, width + 2 + right_width)])


def _with_wanted(left: Rel, near: Rel, keys: Sequence[Pair], on: Nearness) -> tuple[Rel, tuple[Expr, ...]]:
    """The left rows with columns behind theirs, and what tells the right row that each meets: keys, and its number."""
    width, count = len(left.schema), len(keys)
    both = _together(left, near, keys, on)
    partition = tuple([Column(width + index, pair[0].type) for index, pair in enumerate(keys)])
    place, second = Column(width + count, on.left.type), Column(width + count + 1, BOOL)
    order = (SortKey(place, on.descending), SortKey(second))
    ranked = Window(both, (WindowCall(functions.window("rank", ()), partition, order, UP_TO_PEERS),), ("rank",))
    lefts = Filter(ranked, functions.scalar("eq", (second, Literal(not on.is_strict, BOOL))))
    before = functions.scalar("subtract", (Column(width + count + 3, INT64), Column(width + count + 2, INT64)))
    wanted = functions.case([(functions.scalar("is_not_null", (place,)), before)], None)
    return lefts, (*partition, wanted)


def _numbered(right: Rel, keys: Sequence[Expr], order: SortKey) -> Rel:
    """The right rows, each with its number among those with equal keys."""
    number = WindowCall(functions.window("row_number", ()), tuple(keys), (order,), WHOLE_PARTITION)
    return Window(right, (number,), ("number",))


def _numbered_where(right: Rel, tests: Sequence[Expr], keys: Sequence[Expr], order: SortKey) -> Rel:
    """All right rows, with numbers for those that pass the tests."""
    passes = functions.scalar("is_true", (functions.scalar("and", tests),))
    numbered = _numbered(right, [*keys, passes], order)
    columns = all_columns(numbered.schema)
    number = functions.case([(passes, columns[-1])], None)
    return Project(numbered, (*columns[:-1], number), numbered.schema.names)


def _together(left: Rel, right: Rel, keys: Sequence[Pair], on: Nearness) -> Rel:
    """The rows of both sides: left columns, keys, the place, whether the row comes second of equal ones, and for left
    rows their rank among left rows. Right rows have no left columns.
    """
    left_first = on.is_strict
    names = (*left.schema.names, *[f"key{index}" for index in range(len(keys))], "place", "second", "left_rank")
    partition = tuple([key for key, _ in keys])
    rank = WindowCall(functions.window("rank", ()), partition, (SortKey(on.left, on.descending),), UP_TO_PEERS)
    ranked = Window(left, (rank,), ("rank",))
    own = (
        *all_columns(left.schema),
        *partition,
        on.left,
        Literal(not left_first, BOOL),
        Column(len(left.schema), INT64),
    )
    nothing = [Literal(None, kind) for kind in left.schema.types]
    other = (*nothing, *[key for _, key in keys], on.right, Literal(left_first, BOOL), Literal(None, INT64))
    return Union((Project(ranked, own, names), Project(right, other, names)))
