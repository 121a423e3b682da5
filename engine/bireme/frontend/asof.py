"""As-of joins as windows and one join by keys: each left row meets the nearest right row on one side of it.

Among the rows of both sides with equal keys, in order, the number of right rows up to a left row is the number of the
right row that it meets. So the work is that of two sorts and a join, out of core as those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.types import BOOL, INT64
from bireme.plan import functions
from bireme.plan.expr import UP_TO_PEERS, WHOLE_PARTITION, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Filter, Join, JoinKind, Project, Rel, Union, Window
from bireme.plan.tree import all_columns

# Of the comparisons `left … right`: whether the nearest row comes first from the end, and whether equal ones count.
_DESCENDING: Final = {"ge": False, "gt": False, "le": True, "lt": True}
_STRICT: Final = {"ge": False, "gt": True, "le": False, "lt": True}
COMPARISONS: Final = frozenset(_DESCENDING)

Pair = tuple[Expr, Expr]


def asof_join(left: Rel, right: Rel, keys: Sequence[Pair], on: Pair, comparison: str, kind: JoinKind) -> Rel:
    """Each row of `left` (INNER: that has one) with the nearest row of `right` for which `on` compares so.

    Pairs are of an expression over each side, of one type. NULL compares with nothing.
    """
    descending, strict = _DESCENDING[comparison], _STRICT[comparison]
    width, count = len(left.schema), len(keys)
    known = Filter(right, functions.scalar("is_not_null", (on[1],)))
    met = _numbered(known, [key for _, key in keys], on[1], descending)
    both = _together(left, known, keys, on, descending=descending, left_first=strict)
    numbers = Column(width + count + 3, INT64), Column(width + count + 2, INT64)
    place = Column(width + count, on[0].type)
    partition = tuple([Column(width + index, pair[0].type) for index, pair in enumerate(keys)])
    order = (SortKey(place, descending), SortKey(Column(width + count + 1, BOOL)))
    ranked = Window(both, (WindowCall(functions.window("rank", ()), partition, order, UP_TO_PEERS),), ("rank",))
    lefts = Filter(ranked, functions.scalar("eq", (Column(width + count + 1, BOOL), Literal(not strict, BOOL))))
    before = functions.scalar("subtract", numbers)
    wanted = functions.case([(functions.scalar("is_not_null", (place,)), before)], None)
    right_width = len(right.schema)
    right_keys = (*[key for _, key in keys], Column(right_width, INT64))
    joined = Join(lefts, met, kind, (*partition, wanted), right_keys)
    columns = all_columns(joined.schema)
    start = len(lefts.schema)
    kept = (*columns[:width], *columns[start : start + right_width])
    return Project(joined, kept, (*left.schema.names, *right.schema.names))


def _numbered(right: Rel, keys: Sequence[Expr], on: Expr, descending: bool) -> Rel:
    """The right rows, each with its number among those with equal keys."""
    order = (SortKey(on, descending),)
    number = WindowCall(functions.window("row_number", ()), tuple(keys), order, WHOLE_PARTITION)
    return Window(right, (number,), ("number",))


def _together(left: Rel, right: Rel, keys: Sequence[Pair], on: Pair, *, descending: bool, left_first: bool) -> Rel:
    """The rows of both sides: left columns, keys, the place, whether the row comes second of equal ones, and for left
    rows their rank among left rows. Right rows have no left columns.
    """
    names = (*left.schema.names, *[f"key{index}" for index in range(len(keys))], "place", "second", "left_rank")
    partition = tuple([key for key, _ in keys])
    rank = WindowCall(functions.window("rank", ()), partition, (SortKey(on[0], descending),), UP_TO_PEERS)
    ranked = Window(left, (rank,), ("rank",))
    own = (*all_columns(left.schema), *partition, on[0], Literal(not left_first, BOOL), Column(len(left.schema), INT64))
    nothing = [Literal(None, kind) for kind in left.schema.types]
    other = (*nothing, *[key for _, key in keys], on[1], Literal(left_first, BOOL), Literal(None, INT64))
    return Union((Project(ranked, own, names), Project(right, other, names)))
