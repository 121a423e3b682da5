"""Whether evaluating an expression can fail for some row (overflow, a cast that does not convert).

A `False` is a proof; a `True` only the lack of one. Rules ask before they evaluate an expression for rows that it would
not have seen where it stood. Which functions can fail at all is in `functions`; here it is proved of some calls of them
that they do not.
"""

from __future__ import annotations

from typing import Final

from bireme.data.node import note
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Call, Cast, Column, Expr, Literal
from bireme.plan.functions import can_fail
from bireme.plan.tree import operands

# Of these the registry says that they fail, since a constant argument may be wrong; that is seen when they are bound.
_CHECKED_WHEN_BOUND: Final = frozenset({"like", "ilike", "regexp_matches", "regexp_replace", "regexp_extract"})
_EXACT: Final = frozenset(
    {Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.UINT16, Kind.UINT32, Kind.UINT64}
)


def may_raise(expr: Expr) -> bool:
    """Whether `expr` may raise a DataError for some row; remembered on the expression."""
    if expr.__class__ is Column or expr.__class__ is Literal:
        return False
    try:
        return expr._facts  # type: ignore[no-any-return]
    except AttributeError:
        known = _raises_itself(expr) or any(may_raise(part) for part in operands(expr))
        note(expr, known)
        return known


def _raises_itself(expr: Expr) -> bool:
    """Whether the outermost operation of `expr` may raise."""
    match expr:
        case Call(function, args, type_):
            if function in _CHECKED_WHEN_BOUND:
                return any(arg.__class__ is not Literal for arg in args[1:])
            return can_fail(expr) and not _cannot_overflow(function, args, type_)
        case Cast(arg, type_, safe):
            return not safe and not _always_converts(arg.type, type_)
    return False


def _cannot_overflow(function: str, args: tuple[Expr, ...], type_: DataType) -> bool:
    """Whether arithmetic of this kind stays within its result type for all arguments."""
    if function in ("add", "subtract", "multiply", "negate") and type_.is_float:
        return True
    if function == "modulo" and type_.is_integer and args[1].__class__ is Literal:
        return args[1].value not in (0, -1)
    if type_.kind is not Kind.DECIMAL or any(arg.type.kind is not Kind.DECIMAL for arg in args):
        return False
    if function == "multiply":
        return type_.precision >= sum(arg.type.precision for arg in args)
    if function in ("add", "subtract"):
        digits = max(arg.type.precision - arg.type.scale for arg in args)
        return type_.precision - type_.scale > digits
    return function in ("negate", "abs")


def _always_converts(source: DataType, target: DataType) -> bool:
    """Whether a cast gives a value for every value of `source`, if not an exact one."""
    if is_lossless(source, target) or (target.kind is Kind.STRING and not source.is_nested):
        return True
    if target.is_float:
        return source.is_integer or source.kind is Kind.DECIMAL or (source.is_float and target.bits == 64)
    if target.kind is Kind.DECIMAL and source.kind is Kind.DECIMAL:
        return _whole_digits(target) > _whole_digits(source)  # rounding may carry into one more digit
    if target.kind is Kind.DATE:
        return source.kind is Kind.TIMESTAMP
    return source.kind is Kind.BOOL and target.is_integer


def is_lossless(source: DataType, target: DataType) -> bool:
    """Whether every value of `source` has an exact equal in `target`, so that a cast keeps equality and order."""
    if source is target or source.kind is Kind.NULL:
        return True
    if source.kind in _EXACT and target.kind in _EXACT:
        if source.is_signed == target.is_signed:
            return source.bits <= target.bits
        return target.is_signed and source.bits < target.bits
    if target.kind is Kind.DECIMAL:
        if source.kind is Kind.DECIMAL:
            return target.scale >= source.scale and _whole_digits(target) >= source.precision - source.scale
        return source.kind in _EXACT and _whole_digits(target) >= _DIGITS[source.bits] - (source.kind is Kind.INT64)
    if target.is_float:
        if source.is_float:
            return source.bits <= target.bits
        return source.kind in _EXACT and source.bits < (25 if target.bits == 32 else 54)
    return False


def _whole_digits(type_: DataType) -> int:
    return type_.precision - type_.scale


# Of the largest unsigned value; the largest signed one of 64 bits has one less.
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
