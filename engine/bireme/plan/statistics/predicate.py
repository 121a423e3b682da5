"""How often a predicate is TRUE where no sample can tell: rules of thumb over what the columns look like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bireme.data.node import replaced
from bireme.plan import tree
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Literal, ScalarSubquery
from bireme.plan.relation import Rel
from bireme.plan.statistics.column import ColumnEstimate

if TYPE_CHECKING:
    from bireme.plan.statistics.estimator import Estimator

# Selinger's third for a comparison of which nothing is known (Selinger et al. 1979), a tenth for a pattern.
_COMPARISON_SHARE: Final = 1 / 3
_PATTERN_SHARE: Final = 0.1
_FLAG_SHARE: Final = 0.5
_SHARE_MIN: Final = 1e-9
_FLIPPED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
COMPARISONS: Final = frozenset(_FLIPPED)
_RANGES: Final = frozenset({"lt", "le", "gt", "ge"})
_PATTERNS: Final = frozenset({"like", "ilike", "starts_with", "ends_with", "contains", "regexp_matches"})


def conjunction(estimator: Estimator, rel: Rel, parts: Sequence[Expr]) -> float:
    """The share of rows for which all `parts` are TRUE; a lower and an upper bound of one operand belong together."""
    share = 1.0
    lower: dict[Expr, float] = {}
    for part in parts:
        alone = share_of_part = _share(estimator, rel, part)
        if part.__class__ is Call and part.function in _RANGES:
            operand = part.args[0]
            other = lower.get(operand)
            if other is None:
                lower[operand] = alone
            elif alone + other > 1:
                share_of_part = (alone + other - 1) / other
        share *= share_of_part
    return max(share, _SHARE_MIN)


def share(estimator: Estimator, rel: Rel, condition: Expr) -> float:
    """The share of the rows of `rel` for which `condition` is TRUE."""
    return conjunction(estimator, rel, tree.conjuncts(condition))


def _share(estimator: Estimator, rel: Rel, condition: Expr) -> float:
    match condition:
        case Call():
            return _call_share(estimator, rel, condition.function, condition.args)
        case Literal():
            return 1.0 if condition.value is True else 0.0
        case InList(arg, items):
            column = estimator.expression(rel, arg)
            return min(1.0, len(items) / max(column.distinct, 1.0)) * (1 - column.null_share)
        case Column() | Case() | Cast():
            return _FLAG_SHARE
        case _:
            return _COMPARISON_SHARE


def _call_share(estimator: Estimator, rel: Rel, function: str, args: tuple[Expr, ...]) -> float:
    if function in _FLIPPED and len(args) == 2:
        left, right = estimator.expression(rel, args[0]), estimator.expression(rel, args[1])
        return compared(function, left, right)
    match function:
        case "and":
            return conjunction(estimator, rel, args)
        case "or":
            return 1 - math.prod([1 - _share(estimator, rel, arg) for arg in args])
        case "not":
            return 1 - _share(estimator, rel, args[0])
        case "is_null":
            return estimator.expression(rel, args[0]).null_share
        case "is_not_null":
            return 1 - estimator.expression(rel, args[0]).null_share
        case "is_true":
            return _share(estimator, rel, args[0])
        case "is_not_true":
            return 1 - _share(estimator, rel, args[0])
        case "is_not_distinct" | "is_distinct":
            left, right = estimator.expression(rel, args[0]), estimator.expression(rel, args[1])
            same = compared("eq", left, right)
            return same if function == "is_not_distinct" else 1 - same
        case _:
            return _PATTERN_SHARE if function in _PATTERNS else _COMPARISON_SHARE


def compared(function: str, left: ColumnEstimate, right: ColumnEstimate) -> float:
    """The share of pairs of values for which a comparison is TRUE."""
    present = (1 - left.null_share) * (1 - right.null_share)
    if function in ("eq", "ne"):
        same = 1 / max(left.distinct, right.distinct, 1.0)
        return present * (same if function == "eq" else 1 - same)
    if function in ("gt", "ge"):
        left, right = right, left
    return present * _below(left, right)


def _below(left: ColumnEstimate, right: ColumnEstimate) -> float:
    """How often a value of `left` is below one of `right`."""
    if left.mean is not None and left.deviation is not None and (middle := _middle(right)) is not None:
        return _normal_below(middle, left.mean, left.deviation)
    if right.mean is not None and right.deviation is not None and (middle := _middle(left)) is not None:
        return 1 - _normal_below(middle, right.mean, right.deviation)
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return _COMPARISON_SHARE
    if right.low == right.high:
        return _inside(right.low, left.low, left.high)
    if left.low == left.high:
        return 1 - _inside(left.low, right.low, right.high)
    return _COMPARISON_SHARE


def _middle(column: ColumnEstimate) -> float | None:
    if column.mean is not None:
        return column.mean
    return None if column.low is None or column.high is None else (column.low + column.high) / 2


def _normal_below(value: float, mean: float, deviation: float) -> float:
    if deviation <= 0:
        return 1.0 if mean < value else 0.0
    return max(_SHARE_MIN, 0.5 * (1 + math.erf((value - mean) / (deviation * math.sqrt(2)))))


def _inside(value: float, low: float, high: float) -> float:
    if high <= low:
        return 1.0 if low < value else 0.0
    return min(1.0, max(0.0, (value - low) / (high - low)))


def restrict(
    estimator: Estimator, rel: Rel, column: ColumnEstimate, index: int, parts: Sequence[Expr]
) -> ColumnEstimate:
    """What `column`, at `index` of `rel`, looks like after those of `parts` that are about this column alone."""
    mask = 1 << index
    for part in parts:
        if tree.column_mask(part) == mask:
            column = _restricted(estimator, rel, column, index, part)
    return column


def _restricted(estimator: Estimator, rel: Rel, column: ColumnEstimate, index: int, part: Expr) -> ColumnEstimate:
    match part:
        case InList(Column(at), items) if at == index:
            return _scaled(column, len(items) / max(column.domain, 1.0))
        case Call("or", args) if all(_is_equality(arg, index) for arg in args):
            return _scaled(column, len(args) / max(column.domain, 1.0))
        case Call(function, (Column(at), other)) if at == index and function in _FLIPPED:
            return _bounded(estimator, rel, column, function, other)
        case Call(function, (other, Column(at))) if at == index and function in _FLIPPED:
            return _bounded(estimator, rel, column, _FLIPPED[function], other)
        case _:
            return _scaled(column, estimator.selectivity(rel, part))


def _is_equality(part: Expr, index: int) -> bool:
    match part:
        case Call("eq", (Column(at), Literal())) | Call("eq", (Literal(), Column(at))):
            return at == index
        case _:
            return False


def _scaled(column: ColumnEstimate, kept: float) -> ColumnEstimate:
    kept = min(1.0, kept)
    return replaced(column, distinct=max(column.distinct * kept, 1.0), domain=max(column.domain * kept, 1.0))


def _bounded(estimator: Estimator, rel: Rel, column: ColumnEstimate, function: str, other: Expr) -> ColumnEstimate:
    if not isinstance(other, (Literal, ScalarSubquery)):
        return column
    limit = estimator.expression(rel, other)
    if function == "eq":
        return replaced(column, distinct=1.0, domain=1.0, low=limit.low, high=limit.high)
    if function == "ne" or limit.low is None or column.low is None or column.high is None:
        return column
    low, high = column.low, column.high
    if function in ("lt", "le"):
        high = min(high, limit.low)
    else:
        low = max(low, limit.low)
    width = column.high - column.low
    kept = max(0.0, high - low) / width if width > 0 else 1.0
    return replaced(_scaled(column, kept), low=low, high=max(low, high))
