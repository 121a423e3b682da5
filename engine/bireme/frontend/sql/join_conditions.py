"""The conditions of joins, taken apart: pairs of keys, an expression over each side, and what is left.

Columns of the right side stand behind the `width` columns of the left one; in what is returned, expressions over the
right side are over its own columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from bireme.errors import ClauseFault, Unsupported
from bireme.frontend.asof import Nearness
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
        pair = _key_pair(part, width)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


class AsOf(NamedTuple):
    """What an ASOF JOIN is by: keys, an inequality, conditions on right rows, and one on pairs."""

    keys: list[Pair]
    near: Nearness
    tests: list[Expr]
    residual: Expr | None


def split_asof(condition: Expr | None, width: int) -> AsOf:
    """The condition of an ASOF JOIN."""
    keys, rest = split(condition, width)
    places = [place for part in rest if (place := _place_pair(part, width)) is not None]
    if len(places) != 1:
        raise ClauseFault(f"an ASOF JOIN needs one inequality such as l.t >= r.t, and has {len(places)}")
    others = [part for part in rest if _place_pair(part, width) is None]
    if any(map(tree.holds_subquery, others)):
        raise Unsupported("a subquery in the condition of an ASOF JOIN is not supported; compute it in FROM")
    tests = [part for part in others if _is_of_right(part, width)]
    residual = tree.conjoin([part for part in others if part not in tests])
    return AsOf(keys, places[0], [tree.shift(part, -width) for part in tests], residual)


def _place_pair(part: Expr, width: int) -> Nearness | None:
    """An inequality of an expression over each side."""
    if not isinstance(part, Call) or part.function not in _MIRRORED or not _can_be_key(part):
        return None
    a, b = part.args
    if _is_across(a, b, width):
        return Nearness(a, tree.shift(b, -width), part.function)
    if _is_across(b, a, width):
        return Nearness(b, tree.shift(a, -width), _MIRRORED[part.function])
    return None


def _key_pair(part: Expr, width: int) -> Pair | None:
    if not tree.is_call(part, "eq") or not _can_be_key(part):
        return None
    a, b = part.args  # type: ignore[attr-defined]
    if _is_across(a, b, width):
        return a, tree.shift(b, -width)
    if _is_across(b, a, width):
        return b, tree.shift(a, -width)
    return None


def _can_be_key(part: Expr) -> bool:
    return not any(inner.__class__ in _NO_KEYS for inner in tree.walk(part))


def _is_across(a: Expr, b: Expr, width: int) -> bool:
    """Whether `a` reads columns of the left side alone, and `b` of the right side alone."""
    lefts, a_mask, b_mask = (1 << width) - 1, tree.column_mask(a), tree.column_mask(b)
    return a_mask != 0 and b_mask != 0 and not a_mask & ~lefts and not b_mask & lefts


def _is_of_right(part: Expr, width: int) -> bool:
    mask = tree.column_mask(part)
    return mask != 0 and not mask & ((1 << width) - 1)
