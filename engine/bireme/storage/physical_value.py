"""Values from the integers that columns store: what a count of days, or an unscaled decimal, stands for.

Rule: exact or None. Values are in the form of `plan.expr.Literal.value`; what Python's own types cannot hold (a date
after 9999, nanoseconds in a time of day) gives None.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from bireme.data.types import DataType, Kind
from bireme.plan.expr import Value

NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_DAY_NANOSECONDS: Final = 86_400 * 10**9

Decoder = Callable[[Any], Value]


def count_decoder(kind: DataType) -> Decoder | None:
    """Turns the integer that a column of this type stores into a value; None for types that store something else."""
    match kind.kind:
        case Kind.INT8 | Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.UINT8 | Kind.UINT16 | Kind.UINT32 | Kind.UINT64:
            return int
        case Kind.DECIMAL:
            return lambda count: unscaled_decimal(count, kind.scale)
        case Kind.DATE:
            return date_of
        case Kind.DURATION:
            return int
        case Kind.TIME:
            return lambda count: _time_of(count * NANOSECONDS[kind.unit])
        case Kind.TIMESTAMP if kind.unit == "ns":
            return int
        case Kind.TIMESTAMP:
            zone = datetime.UTC if kind.zone else None
            return lambda count: _moment_of(count * NANOSECONDS[kind.unit] // 1000, zone)
        case _:
            return None


def date_of(days: int) -> Value:
    """The date `days` after 1970-01-01."""
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        return None


def unscaled_decimal(unscaled: int, scale: int) -> Decimal:
    """The decimal `unscaled` / 10 ** `scale`, built from digits: arithmetic would round to the context's precision."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _time_of(nanoseconds: int) -> Value:
    if nanoseconds % 1000 or not 0 <= nanoseconds < _DAY_NANOSECONDS:
        return None
    return (_EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)).time()


def _moment_of(microseconds: int, zone: datetime.timezone | None) -> Value:
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=zone)
