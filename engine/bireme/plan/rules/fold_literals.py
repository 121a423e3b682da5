"""The value of a function of constants, where it is certain; None leaves the call for run time.

Nothing that would raise is folded: it may stand in a branch that no row reaches. What functions mean in full is in the
backends; here are those that are common with constants: comparisons, arithmetic, dates and intervals.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from bireme.data.exact_decimal import EXACT
from bireme.data.types import BOOL, FLOAT64, TIMESTAMP, DataType, Kind
from bireme.plan.expr import Call, Expr, Interval, Literal
from bireme.plan.functions.moments import move
from bireme.plan.functions.texts import in_range

_Fold = Callable[[Call, list[Any]], Literal | None]
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
COMPARISONS: Final = frozenset(_COMPARE)
_NULL_IN_NULL_OUT: Final = COMPARISONS | {"add", "subtract", "multiply", "divide", "negate", "like", "not"}


def fold_call(call: Call) -> Literal | None:
    """The constant that `call` is, if all its arguments are constants (or one is NULL that makes it NULL)."""
    constants = [arg for arg in call.args if arg.__class__ is Literal]
    if not constants:
        return None
    values: list[Any] = [each.value for each in constants]
    if None in values:
        return Literal(None, call.type) if call.function in _NULL_IN_NULL_OUT else None
    if len(values) < len(call.args):
        return None
    if call.function in _COMPARE:
        return _compared(call.function, values, call.args[0].type)
    fold = _FOLDS.get(call.function)
    return None if fold is None else fold(call, values)


def _compared(function: str, values: list[Any], kind: DataType) -> Literal | None:
    if kind.kind in (Kind.INTERVAL, Kind.LIST, Kind.STRUCT, Kind.MAP):
        return None
    left, right = values
    if kind.is_float:
        left, right = _float_order(left), _float_order(right)
    return Literal(bool(_COMPARE[function](left, right)), BOOL)


def _float_order(value: float) -> tuple[int, float]:
    """A key that orders floats with NaN equal to itself and last."""
    return (1, 0.0) if math.isnan(value) else (0, value)


# ---------------------------------------------------------------------------------------- arithmetic


def _number(value: Any, type_: DataType) -> Literal | None:
    """The exact `value` as a constant of `type_`, if it fits."""
    if type_.is_integer:
        bits = type_.bits
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_.is_signed else (0, (1 << bits) - 1)
        return Literal(int(value), type_) if low <= value <= high else None
    if type_.kind is Kind.DECIMAL:
        return _decimal(Decimal(value), type_)
    if type_ is FLOAT64:
        return Literal(float(value), type_)
    return None


def _decimal(value: Decimal, type_: DataType) -> Literal | None:
    scaled = value.quantize(Decimal((0, (1,), -type_.scale)), context=EXACT)
    return Literal(scaled, type_) if scaled == value and len(scaled.as_tuple().digits) <= type_.precision else None


def _arithmetic(exact: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]) -> _Fold:
    """A fold of numbers and points in time: `exact` of decimals, `plain` of whole numbers and doubles."""

    def fold(call: Call, values: list[Any]) -> Literal | None:
        left, right = values
        if call.type.is_numeric:
            if not (call.args[0].type.is_numeric and call.args[1].type.is_numeric):
                return _days_between(left, right, call.type) if plain is operator.sub else None
            return _number(_of_numbers(exact, plain, left, right), call.type)
        return _temporal(call, left, right)

    return fold


def _multiplied(call: Call, values: list[Any]) -> Literal | None:
    left, right = values
    if not call.type.is_numeric:
        return None
    return _number(_of_numbers(EXACT.multiply, operator.mul, left, right), call.type)


def _of_numbers(exact: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return exact(left, right) if isinstance(left, Decimal) or isinstance(right, Decimal) else plain(left, right)


def _divided(call: Call, values: list[Any]) -> Literal | None:
    if call.type is not FLOAT64 or any(arg.type is not FLOAT64 for arg in call.args) or values[1] == 0:
        return None
    return Literal(values[0] / values[1], FLOAT64)


def _negated(call: Call, values: list[Any]) -> Literal | None:
    value = values[0]
    if isinstance(value, Interval):
        return Literal(Interval(-value.months, -value.days, -value.nanoseconds), call.type)
    return (
        _number(EXACT.minus(value) if isinstance(value, Decimal) else -value, call.type)
        if call.type.is_numeric
        else None
    )


# --------------------------------------------------------------------------------- dates and intervals


def _days_between(left: Any, right: Any, type_: DataType) -> Literal | None:
    if type(left) is not datetime.date or type(right) is not datetime.date:
        return None
    return _number((left - right).days, type_)


def _temporal(call: Call, left: Any, right: Any) -> Literal | None:
    sign = -1 if call.function == "subtract" else 1
    if isinstance(right, Interval):
        return _moved(left, right, sign, call.type)
    if isinstance(left, Interval) and sign == 1:
        return _moved(right, left, sign, call.type)
    return None


def moved(start: datetime.datetime, span: Interval) -> datetime.datetime | None:
    """A timestamp moved by an interval; None where that leaves the calendar."""
    found = _moved(start, span, 1, TIMESTAMP)
    return found.value if found is not None and isinstance(found.value, datetime.datetime) else None


def _moved(start: Any, span: Interval, sign: int, type_: DataType) -> Literal | None:
    """A date or timestamp moved by whole months (to the last day where that is missing), days, then time."""
    if isinstance(start, Interval):
        parts = [a + sign * b for a, b in zip(start, span, strict=True)]
        try:
            return Literal(in_range(Interval(*parts)), type_)
        except OverflowError:
            return None
    if not isinstance(start, datetime.date) or span.nanoseconds % 1000 or getattr(start, "tzinfo", None) is not None:
        return None
    if type_.kind not in (Kind.DATE, Kind.TIMESTAMP) or type_.unit not in ("", "us"):
        return None
    try:
        moment = move(_as_datetime(start), span, sign)
    except (OverflowError, ValueError):
        return None
    if type_.kind is Kind.TIMESTAMP:
        return Literal(moment, type_)
    return None if span.nanoseconds else Literal(moment.date(), type_)


def _as_datetime(value: datetime.date) -> datetime.datetime:
    return value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)


_FOLDS: Final[dict[str, _Fold]] = {
    "add": _arithmetic(EXACT.add, operator.add),
    "subtract": _arithmetic(EXACT.subtract, operator.sub),
    "multiply": _multiplied,
    "divide": _divided,
    "negate": _negated,
}


def is_null_literal(expr: Expr) -> bool:
    """Whether `expr` is a constant NULL."""
    return expr.__class__ is Literal and expr.value is None
