"""Inequalities of a join's condition that the order of the build rows answers, instead of a test of every pair.

A join table keeps its rows in the order of one expression over them, the first range key; bounds of it leave a run of
rows. Of a second one it knows the largest (or smallest) value of every run, so that a bound of it from one side is
answered, too. So one or two inequalities over one key are (`x between lo and hi`), and two over two (intervals that
overlap). What else the condition says is tested of the pairs that are left. Decides only; the order is kept in
`native/kernels/range_index`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from bireme.data.node import Node, node
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Call, Expr
from bireme.plan.raises import may_raise
from bireme.plan.tree import column_mask, conjoin, conjuncts, holds_subquery, shift

# With keys beside the inequalities, pairs of equal keys are tested where a key has fewer build rows than this.
_ROWS_PER_KEY_MIN: Final = 16
# Fewer build rows are tested one by one.
_BUILD_ROWS_MIN: Final = 32

_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_UPPER: Final = frozenset({"lt", "le"})


@node
class RangeKeys(Node):
    """What a join table keeps its rows in the order of: one or two expressions over the build rows. Bounds of the
    second one are upper ones where it `is_bounded_above`, else lower ones.
    """

    exprs: tuple[Expr, ...]
    is_bounded_above: bool = False


@node
class RangeBound(Node):
    """Build rows are wanted whose range key number `key` compares by lt, le, gt or ge with `value` of the stream."""

    key: int
    comparison: str
    value: Expr


@node
class RangeBounds(Node):
    """What rows of a stream ask of range keys, and what is to be tested of the pairs that are found (None: nothing)."""

    bounds: tuple[RangeBound, ...]
    rest: Expr | None


class Ranges(NamedTuple):
    """How the condition of a join is answered."""

    keys: RangeKeys
    bounds: RangeBounds


class _Inequality(NamedTuple):
    """The build side's expression (over the build rows), how it compares, and with what of the stream."""

    key: Expr
    comparison: str
    value: Expr
    part: Expr

    @property
    def is_upper(self) -> bool:
        return self.comparison in _UPPER


def ranges_of(condition: Expr | None, stream_columns: int) -> Ranges | None:
    """What the order of build rows answers of a condition over the columns of the stream followed by the build side's;
    None for nothing.
    """
    parts = conjuncts(condition)
    found = [each for each in (_inequality(part, stream_columns) for part in parts) if each is not None]
    if not found:
        return None
    by_key: dict[Expr, list[_Inequality]] = {}
    for each in found:
        by_key.setdefault(each.key, []).append(each)
    sided = {key: _one_each_side(inequalities) for key, inequalities in by_key.items()}
    first = next((key for key, sides in sided.items() if len(sides) == 2), found[0].key)
    second = next((sides[0] for key, sides in sided.items() if key is not first), None)
    chosen = [*sided[first], *([] if second is None else [second])]
    bounds = [RangeBound(0 if each.key is first else 1, each.comparison, each.value) for each in chosen]
    answered = {each.part for each in chosen}
    rest = conjoin([part for part in parts if part not in answered])
    exprs = (first,) if second is None else (first, second.key)
    return Ranges(RangeKeys(exprs, second is not None and second.is_upper), RangeBounds(tuple(bounds), rest))


def _one_each_side(inequalities: list[_Inequality]) -> list[_Inequality]:
    """The first lower and the first upper bound, as far as there are."""
    uppers = [each for each in inequalities if each.is_upper]
    lowers = [each for each in inequalities if not each.is_upper]
    return [*lowers[:1], *uppers[:1]]


def _inequality(part: Expr, stream_columns: int) -> _Inequality | None:
    if not isinstance(part, Call) or part.function not in _MIRRORED or may_raise(part) or holds_subquery(part):
        return None
    a, b = part.args
    if a.type is not b.type or not _has_order(a.type):
        return None
    stream = (1 << stream_columns) - 1
    if _reads_only(a, ~stream) and _reads_only(b, stream):
        return _Inequality(shift(a, -stream_columns), part.function, b, part)
    if _reads_only(b, ~stream) and _reads_only(a, stream):
        return _Inequality(shift(b, -stream_columns), _MIRRORED[part.function], a, part)
    return None


def _reads_only(expr: Expr, mask: int) -> bool:
    used = column_mask(expr)
    return used != 0 and not used & ~mask


def _has_order(kind: DataType) -> bool:
    """Whether equal values of the type are alike, so that one order is that of all comparisons."""
    return kind.kind not in (Kind.NULL, Kind.INTERVAL) and not kind.is_nested


def is_worth_planning(*, has_keys: bool, rows_per_key: float) -> bool:
    """Whether to plan for ranges, with about so many build rows that have one join key."""
    return not has_keys or rows_per_key >= _ROWS_PER_KEY_MIN


def saves_pairs(build_rows: int, *, is_unique: bool) -> bool:
    """Whether ranges are of use once it is known how many build rows there are, and whether no two have equal keys."""
    return build_rows >= _BUILD_ROWS_MIN and not is_unique
