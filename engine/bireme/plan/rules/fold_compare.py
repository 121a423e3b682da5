"""Comparisons of a cast column with a constant become comparisons of the column: cheaper, and of use to scans.

Only where every value of the column keeps its order and identity through the cast.
"""

from __future__ import annotations

import datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

from bireme.data.types import BOOL, DataType, Kind
from bireme.errors import ConversionFault
from bireme.plan.expr import Call, Cast, Expr, InList, Literal
from bireme.plan.functions.conversion import convert
from bireme.plan.raises import is_lossless

FLIPPED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
# With a constant between two values of the column, `x < c` and `x <= c` hold where x is at most the lower one.
_AROUND: Final = {"lt": "le", "le": "le", "gt": "gt", "ge": "gt"}


def with_constant_right(call: Call) -> Call:
    """A comparison with its constant, if it has one, on the right."""
    left, right = call.args
    if left.__class__ is Literal and right.__class__ is not Literal:
        return Call(FLIPPED[call.function], (right, left), BOOL)
    return call


def uncast_comparison(call: Call) -> Expr:
    """The comparison on the uncast expression, where that means the same."""
    left, right = call.args
    if not (isinstance(left, Cast) and isinstance(right, Literal) and right.value is not None):
        return call
    source = left.arg.type
    if not _keeps_order(source, left.type):
        return call
    exact = _exact(right.value, left.type, source)
    if exact is not None:
        return Call(call.function, (left.arg, exact), BOOL)
    lower = _next_below(right.value, left.type, source) if call.function in _AROUND else None
    return call if lower is None else Call(_AROUND[call.function], (left.arg, lower), BOOL)


def uncast_list(test: InList) -> Expr:
    """The IN list on the uncast expression; items that no value of it can equal are left out."""
    if not isinstance(test.arg, Cast) or not _keeps_order(test.arg.arg.type, test.arg.type):
        return test
    source, target = test.arg.arg.type, test.arg.type
    items: list[Expr] = []
    for item in test.items:
        if not isinstance(item, Literal):
            return test
        exact = Literal(None, source) if item.value is None else _exact(item.value, target, source)
        if exact is not None:
            items.append(exact)
    return InList(test.arg.arg, tuple(items)) if items else test


def _keeps_order(source: DataType, target: DataType) -> bool:
    if source.kind is Kind.DATE:
        return target.kind is Kind.TIMESTAMP and target.unit == "us" and not target.zone
    return is_lossless(source, target) and source.kind is not Kind.NULL


def _exact(value: Any, target: DataType, source: DataType) -> Literal | None:
    """The value of the column's type that casts to `value`, if there is one."""
    try:
        back = convert(value, target, source)
        if back is None or convert(back, source, target) != value:
            return None
    except (ConversionFault, AssertionError):
        return None
    return Literal(back, source)


def _next_below(value: Any, target: DataType, source: DataType) -> Literal | None:
    """The greatest value of the column's type that is less than `value`, for whole numbers and dates."""
    if source.kind is Kind.DATE:
        return Literal(value.date(), source) if isinstance(value, datetime.datetime) else None
    if not source.is_integer or target.kind is not Kind.DECIMAL:
        return None
    floor = int(Decimal(value).to_integral_value(rounding=ROUND_FLOOR))
    return _exact(Decimal(floor), target, source)
