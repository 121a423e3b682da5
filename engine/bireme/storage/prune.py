"""Which parts of a table a filter cannot be TRUE in, proved from bounds. Pure.

Rule: a predicate is evaluated over sets of truth values. Each subexpression gives every truth value that it may take on
some row, never fewer; a part may be skipped where TRUE is not among them. What is not understood may be anything.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bireme.data.types import DataType, Kind
from bireme.plan.expr import Call, Cast, Column, Expr, InList, Literal, Value

# Sets of truth values, as bits.
TRUE: Final = 1
FALSE: Final = 2
NULL: Final = 4
ANY: Final = TRUE | FALSE | NULL


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every value that is not NULL lies within [`low`, `high`]; None is no bound.

    `nulls` is None where it is not known. A NaN may lie above any bound, so floats have no `high`.
    """

    rows: int
    low: Value = None
    high: Value = None
    nulls: int | None = None


Columns = Sequence[Callable[[], Bounds]]


def may_be_true(filters: Sequence[Expr], columns: Columns) -> bool:
    """Whether all `filters` may be TRUE on one row, for columns with the bounds that `columns` give when asked."""
    try:
        return all(truth(predicate, columns) & TRUE for predicate in filters)
    except TypeError:  # values that Python does not compare, such as a date and a moment: nothing is proved
        return True


def undecided(filters: Sequence[Expr], columns: Columns) -> tuple[Expr, ...] | None:
    """Those of `filters` that columns with these bounds may fail; None where one of them is TRUE on no row."""
    found = []
    try:
        for predicate in filters:
            truths = truth(predicate, columns)
            if not truths & TRUE:
                return None
            if truths != TRUE:
                found.append(predicate)
    except TypeError:  # see `may_be_true`
        return tuple(filters)
    return tuple(found)


def truth(expr: Expr, columns: Columns) -> int:
    """The truth values that a BOOL expression may take."""
    match expr:
        case Call(function, args):
            rule = _RULES.get(function)
            return ANY if rule is None else rule(function, args, columns)
        case Literal(value, DataType(kind=Kind.BOOL | Kind.NULL)):
            return NULL if value is None else TRUE if value else FALSE
        case Column(_, DataType(kind=Kind.BOOL)):
            return _compare("eq", (expr, _TRUE_LITERAL), columns)
        case InList(arg, items):
            return _in_list(arg, items, columns)
        case _:
            return ANY


def _not(truths: int) -> int:
    return (truths & NULL) | (FALSE if truths & TRUE else 0) | (TRUE if truths & FALSE else 0)


def _negation(_: str, args: Sequence[Expr], columns: Columns) -> int:
    return _not(truth(args[0], columns))


def _conjunction(_: str, args: Sequence[Expr], columns: Columns) -> int:
    result = TRUE
    for arg in args:
        result = _and_pair(result, truth(arg, columns))
    return result


def _disjunction(_: str, args: Sequence[Expr], columns: Columns) -> int:
    result = FALSE
    for arg in args:
        result = _not(_and_pair(_not(result), _not(truth(arg, columns))))
    return result


def _and_pair(left: int, right: int) -> int:
    # NULL needs one side NULL and the other one not FALSE.
    null = NULL if (left & NULL and right & (TRUE | NULL)) or (right & NULL and left & (TRUE | NULL)) else 0
    return (left & right & TRUE) | ((left | right) & FALSE) | null


def _compare(function: str, args: Sequence[Expr], columns: Columns) -> int:
    left, right = operand(args[0], columns), operand(args[1], columns)
    if left is None or right is None:
        return ANY
    if _is_all_null(left) or _is_all_null(right):
        return NULL
    truths = _compare_values(function, left, right)
    return truths | (NULL if _may_be_null(left) or _may_be_null(right) else 0)


def _compare_values(function: str, left: Bounds, right: Bounds) -> int:
    """What comparing values that are not NULL may give."""
    below, equal, above = _orders(left, right)
    match function:
        case "lt":
            return _flags(below, equal or above)
        case "le":
            return _flags(below or equal, above)
        case "gt":
            return _flags(above, below or equal)
        case "ge":
            return _flags(above or equal, below)
        case "eq":
            return _flags(equal, below or above)
        case _:
            return _flags(below or above, equal)


def _orders(left: Bounds, right: Bounds) -> tuple[bool, bool, bool]:
    """Whether some left value may be below, equal to, and above some right value."""
    below = left.low is None or right.high is None or _less(left.low, right.high)
    above = left.high is None or right.low is None or _less(right.low, left.high)
    apart = (left.high is not None and right.low is not None and _less(left.high, right.low)) or (
        right.high is not None and left.low is not None and _less(right.high, left.low)
    )
    return below, not apart, above


def _flags(may_be_true: bool, may_be_false: bool) -> int:
    return (TRUE if may_be_true else 0) | (FALSE if may_be_false else 0)


def _less(left: Value, right: Value) -> bool:
    return left < right  # type: ignore[operator]


def _distinct(function: str, args: Sequence[Expr], columns: Columns) -> int:
    left, right = operand(args[0], columns), operand(args[1], columns)
    if left is None or right is None:
        return TRUE | FALSE
    if _may_be_null(left) or _may_be_null(right):
        if not (_may_be_null(left) and _may_be_null(right)) and (_is_all_null(left) or _is_all_null(right)):
            truths = TRUE
        else:
            truths = TRUE | FALSE
    else:
        truths = _compare_values("ne", left, right)
    return truths if function == "is_distinct" else _not(truths)


def _is_null(function: str, args: Sequence[Expr], columns: Columns) -> int:
    found = operand(args[0], columns)
    if found is None:
        return TRUE | FALSE
    truths = _flags(_may_be_null(found), not _is_all_null(found))
    return truths if function == "is_null" else _not(truths)


def _is_truth(function: str, args: Sequence[Expr], columns: Columns) -> int:
    truths = truth(args[0], columns)
    wanted = TRUE if function.endswith("true") else FALSE
    result = _flags(bool(truths & wanted), bool(truths & ~wanted))
    return _not(result) if function.startswith("is_not") else result


def _in_list(arg: Expr, items: Sequence[Expr], columns: Columns) -> int:
    found = operand(arg, columns)
    if found is None:
        return ANY
    if _is_all_null(found):
        return NULL if items else FALSE
    result = NULL if _may_be_null(found) else 0
    misses = FALSE
    for item in items:
        other = operand(item, columns)
        if other is None or _may_be_null(other):
            misses |= NULL
        if other is None or (not _is_all_null(other) and _orders(found, other)[1]):
            result |= TRUE
    return result | misses


def _prefix(function: str, args: Sequence[Expr], columns: Columns) -> int:
    """LIKE and starts_with: TRUE only for strings within the range of the pattern's literal prefix."""
    found = operand(args[0], columns)
    pattern = args[1]
    if found is None or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return ANY
    if _is_all_null(found):
        return NULL
    prefix: str | None = pattern.value
    if function == "like":
        prefix = _like_prefix(pattern.value, args[2:])
    if not prefix:
        return ANY
    below = isinstance(found.high, str) and found.high < prefix
    above = isinstance(found.low, str) and found.low > prefix and not found.low.startswith(prefix)
    return FALSE | (NULL if _may_be_null(found) else 0) | (0 if below or above else TRUE)


def _like_prefix(pattern: str, escape_args: Sequence[Expr]) -> str | None:
    escape = ""
    if escape_args:
        literal = escape_args[0]
        if not isinstance(literal, Literal) or not isinstance(literal.value, str):
            return None
        escape = literal.value
    # From an escape on the pattern is not followed: what stands before it is a prefix all the same.
    stops = "%_" + escape
    return re.split(f"[{re.escape(stops)}]", pattern, maxsplit=1)[0]


def operand(expr: Expr, columns: Columns) -> Bounds | None:
    """The bounds of an operand of a comparison; None for what is not understood."""
    match expr:
        case Column(index):
            return columns[index]()
        case Literal(None):
            return Bounds(1, nulls=1)
        case Literal(value, kind):
            return _literal_bounds(value, kind)
        case Cast(arg, kind) if keeps_order(arg.type, kind):
            found = operand(arg, columns)
            return found if found is None or arg.type.kind is not Kind.DATE else _as_moments(found, kind)
        case _:
            return None


def _literal_bounds(value: Value, kind: DataType) -> Bounds | None:
    if value != value:  # NaN is above every number: no bound tells
        return None
    if kind.kind in (Kind.INTERVAL, Kind.TIMESTAMP) and not isinstance(value, (int, datetime.datetime)):
        return None
    return Bounds(1, value, value, 0)


def keeps_order(source: DataType, target: DataType) -> bool:
    """Whether a cast gives equal values: it neither rounds nor overflows, so bounds hold for its result."""
    if source.is_integer and target.is_integer:
        return source is target or (target.bits > source.bits and (target.is_signed or not source.is_signed))
    if source.is_integer and target.kind is Kind.DECIMAL:
        return target.precision - target.scale >= len(str(1 << source.bits))
    if source.kind is Kind.DECIMAL and target.kind is Kind.DECIMAL:
        return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale
    if source.kind is Kind.FLOAT32 and target.kind is Kind.FLOAT64:
        return True
    if source.is_integer and source.bits <= 32 and target.kind is Kind.FLOAT64:
        return True
    return source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP and target.unit == "us" and not target.zone


def _as_moments(found: Bounds, kind: DataType) -> Bounds:
    low, high = (
        datetime.datetime(value.year, value.month, value.day) if isinstance(value, datetime.date) else None
        for value in (found.low, found.high)
    )
    return Bounds(found.rows, low, high, found.nulls)


def _may_be_null(found: Bounds) -> bool:
    return found.nulls != 0


def _is_all_null(found: Bounds) -> bool:
    return found.nulls is not None and found.nulls >= found.rows


Rule = Callable[[str, Sequence[Expr], Columns], int]
_TRUE_LITERAL: Final = Literal(True, DataType(Kind.BOOL))
_RULES: Final[dict[str, Rule]] = {
    "and": _conjunction,
    "or": _disjunction,
    "not": _negation,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compare),
    **dict.fromkeys(("is_distinct", "is_not_distinct"), _distinct),
    **dict.fromkeys(("is_null", "is_not_null"), _is_null),
    **dict.fromkeys(("is_true", "is_not_true", "is_false", "is_not_false"), _is_truth),
    **dict.fromkeys(("like", "starts_with"), _prefix),
}
