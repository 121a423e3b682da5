"""The conditions of joins, taken apart: pairs of keys, an expression over each side, and what is left.

Columns of the right side stand behind the `width` columns of the left one; in what is returned, expressions over the
right side are over its own columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from bireme.errors import ClauseFault, Unsupported
from bireme.frontend.asof import Nearness
from bireme.frontend.sql.correlation import depths
from bireme.plan import tree
from bireme.plan.expr import Call, Exists, Expr, OuterColumn, QuantifiedSubquery, ScalarSubquery

# Parts that a key of a join does not hold: they stay in its residual condition.
_NO_KEYS: Final = frozenset({OuterColumn, ScalarSubquery, Exists, QuantifiedSubquery})
_MIRRORED: Final = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}

Pair = tuple[Expr, Expr]


def split(condition: Expr | None, width: int) -> tuple[list[Pair], list[Expr]]:
    """The pairs of keys of a condition, and its other parts."""
    pairs: list[Pair] = []
    rest: list[Expr] = []
    for part in tree.conjuncts(condition):
        pair = _pair(part, "eq", width)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


class AsOf(NamedTuple):
    """What an ASOF JOIN is by: keys, in the first of which NULLs are equal, and an inequality.

    `tests` are conditions on right rows, `residual` is one on left rows, and `holds` one on both.
    """

    keys: list[Pair]
    null_equal_count: int
    near: Nearness
    tests: list[Expr]
    residual: Expr | None
    holds: Expr | None


def split_asof(condition: Expr | None, width: int) -> AsOf:
    """The condition of an ASOF JOIN."""
    keys, rest = split(condition, width)
    alike = {part: pair for part in rest if (pair := _pair(part, "is_not_distinct", width)) is not None}
    places = {part: place for part in rest if (place := _place_pair(part, width)) is not None}
    if any(map(_reads_around, rest)):
        raise Unsupported("a correlated subquery in the condition of an ASOF JOIN is not supported; compute it in FROM")
    if len(places) != 1:
        raise ClauseFault(f"an ASOF JOIN needs one inequality such as l.t >= r.t, and has {len(places)}")
    others = [part for part in rest if part not in alike and part not in places]
    if any(map(tree.holds_subquery, others)):
        raise Unsupported("a subquery in the condition of an ASOF JOIN is not supported; compute it in FROM")
    lefts = (1 << width) - 1
    tests = [part for part in others if tree.column_mask(part) & ~lefts and not tree.column_mask(part) & lefts]
    own = [part for part in others if not tree.column_mask(part) & ~lefts]
    of_both = [part for part in others if part not in tests and part not in own]
    (near,) = places.values()
    shifted = [tree.shift(part, -width) for part in tests]
    return AsOf([*alike.values(), *keys], len(alike), near, shifted, tree.conjoin(own), tree.conjoin(of_both))


def _place_pair(part: Expr, width: int) -> Nearness | None:
    """An inequality of an expression over each side."""
    if not isinstance(part, Call) or part.function not in _MIRRORED or _reads_around(part):
        return None
    a, b = part.args
    if _is_across(a, b, width):
        return Nearness(a, tree.shift(b, -width), part.function)
    if _is_across(b, a, width):
        return Nearness(b, tree.shift(a, -width), _MIRRORED[part.function])
    return None


def _pair(part: Expr, function: str, width: int) -> Pair | None:
    """A comparison of an expression over each side, of the left and of the right one."""
    if not tree.is_call(part, function) or not _can_be_key(part):
        return None
    a, b = part.args  # type: ignore[attr-defined]
    if _is_across(a, b, width):
        return a, tree.shift(b, -width)
    if _is_across(b, a, width):
        return b, tree.shift(a, -width)
    return None


def _can_be_key(part: Expr) -> bool:
    return not any(inner.__class__ in _NO_KEYS for inner in tree.walk(part))


def _reads_around(part: Expr) -> bool:
    """Whether it holds a subquery that reads columns around itself."""
    return any(inner.inputs and next(depths(inner), None) is not None for inner in tree.walk(part))


def _is_across(a: Expr, b: Expr, width: int) -> bool:
    """Whether `a` reads columns of the left side alone, and `b` of the right side alone."""
    lefts, a_mask, b_mask = (1 << width) - 1, tree.column_mask(a), tree.column_mask(b)
    return a_mask != 0 and b_mask != 0 and not a_mask & ~lefts and not b_mask & lefts
