"""Functions of points in time that came after those of `temporal`: buckets, ages, counts from a day, and intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import calendar
from bireme.backends.reference.vectors import (
    Bools,
    Numbers,
    any_null,
    floats,
    from_floats,
    from_integers,
    from_span_parts,
    integers,
    intervals,
    nulls_of,
    scaled,
)
from bireme.data.types import DATE
from bireme.errors import ConversionFault, DomainFault, Overflow
from bireme.plan.expr import Call
from bireme.plan.functions.texts import NANOSECONDS_A_SECOND

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MONTHS_A_YEAR: Final = 12
# Buckets of days begin on a Monday, 2000-01-03, those of months in January 2000; counted from 1970.
_ORIGIN_DAY: Final = 10_959
_ORIGIN_MONTH: Final = 30 * _MONTHS_A_YEAR
_JULIAN_DAY: Final = 2_440_588
_SECONDS_MAX: Final = 1e12
_ZERO: Final = np.zeros(1, np.int64)
# How many of a unit an interval may be made of, and microseconds of which a thousandfold fits 64 bits.
_AMOUNT_MAX: Final = 10**18
_MICROSECONDS_MAX: Final = 9_223_372_036_854_774.0


def _make_time(call: Call, args: list[pa.Array]) -> pa.Array:
    missing = any_null(args)
    hours, minutes = (integers(array).tolist() for array in args[:2])
    seconds = floats(args[2]).tolist()
    values = [0 if gone else _time_of(*row) for gone, *row in zip(missing, hours, minutes, seconds, strict=True)]
    return from_integers(np.array(values, np.int64), missing, call.type, lambda _: "make_time")


def _time_of(hour: int, minute: int, seconds: float) -> int:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= seconds < 60):
        raise ConversionFault(f"there is no time {hour}:{minute}:{seconds}")
    return (hour * 60 + minute) * 60 * _SECOND + round(seconds * _SECOND)


def _nanoseconds(call: Call, args: list[pa.Array]) -> pa.Array:
    counts = integers(args[0])
    if call.args[0].type.unit != "ns":
        counts = scaled(counts, 1000)
    return from_integers(counts, nulls_of(args[0]), call.type, lambda _: "epoch_ns")


def _instant(call: Call, args: list[pa.Array]) -> pa.Array:
    missing, seconds = nulls_of(args[0]), floats(args[0])
    outside = ~(np.abs(seconds) <= _SECONDS_MAX) & ~missing
    if outside.any():
        raise Overflow(f"{seconds[outside][0]} seconds since 1970 leave the range of timestamps")
    counts = np.rint(np.where(missing, 0.0, seconds) * _SECOND).astype(np.int64)
    return from_integers(counts, missing, call.type, lambda _: "to_timestamp")


def _julian(call: Call, args: list[pa.Array]) -> pa.Array:
    counts = integers(args[0])
    days = counts.astype(np.float64) if call.args[0].type is DATE else counts / _DAY
    return from_floats(days + _JULIAN_DAY, nulls_of(args[0]), call.type)


# ------------------------------------------------------------------------------------------------ buckets


def _time_bucket(call: Call, args: list[pa.Array]) -> pa.Array:
    missing = any_null(args)
    of_days = call.type is DATE
    rows = zip(missing, intervals(args[0]), integers(args[1]).tolist(), strict=True)
    values = [0 if gone else _bucket(width, count, of_days) for gone, width, count in rows]
    return from_integers(np.array(values, object), missing, call.type, lambda _: "time_bucket")


def _bucket(width: Any, count: int, of_days: bool) -> int:
    """The start of the bucket, in days or in microseconds, as the point is given."""
    time = width.days * _DAY + width.nanoseconds // 1000
    if (width.months > 0) == (time > 0) or width.months < 0 or time < 0:
        raise DomainFault("the width of time_bucket is a number of months, or a time in days and less, above nothing")
    if width.months:
        start = _month_bucket(width.months, count if of_days else count // _DAY)
        return start if of_days else start * _DAY
    moment = count * _DAY if of_days else count
    origin = _ORIGIN_DAY * _DAY
    begin: int = origin + (moment - origin) // time * time
    return begin // _DAY if of_days else begin


def _month_bucket(width: int, day: int) -> int:
    year, month, _ = (int(part[0]) for part in calendar.civil(np.array([day])))
    since = (year - 1970) * _MONTHS_A_YEAR + month - 1 - _ORIGIN_MONTH
    start = _ORIGIN_MONTH + since // width * width
    first = np.array([1])
    return int(calendar.days_from_civil(first * (1970 + start // 12), first * (start % 12 + 1), first)[0])


# --------------------------------------------------------------------------------------------------- ages


def _age(call: Call, args: list[pa.Array]) -> pa.Array:
    """Calendar years, months and days, and time, between points; what is missing in days is taken from the month of
    the earlier one.
    """
    one, other = [integers(array) for array in args]
    sign = np.where(one < other, -1, 1)
    (day, time), (before_day, before_time) = _split(np.maximum(one, other)), _split(np.minimum(one, other))
    year, month, day = calendar.civil(day)
    before_year, before_month, before_day = calendar.civil(before_day)
    rest, is_short = _borrowed(time - before_time, np.array([_DAY]))
    days, is_less = _borrowed(day - before_day - is_short, calendar.days_in_month(before_year, before_month))
    months = (year - before_year) * _MONTHS_A_YEAR + month - before_month - is_less
    return from_span_parts((months * sign, days * sign, rest * 1000 * sign), any_null(args))


def _split(points: Numbers) -> tuple[Numbers, Numbers]:
    """Days since 1970, and microseconds after midnight."""
    days = points // _DAY
    return days, points - days * _DAY


def _borrowed(values: Numbers, unit: Numbers) -> tuple[Numbers, Numbers]:
    """The values, with a unit more where they are negative; and 1 where that was taken."""
    is_negative = values < 0
    return np.where(is_negative, values + unit, values), is_negative.astype(np.int64)


# ------------------------------------------------------------------------------------- intervals of a unit


def _span(months: int = 0, days: int = 0, nanoseconds: int = 0) -> Evaluator:
    """to_years and its like."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        missing = nulls_of(args[0])
        if call.args[0].type.is_float:
            time = _nanoseconds_of(floats(args[0]), nanoseconds, missing)
            return from_span_parts((_ZERO, _ZERO, time), missing)
        amounts = integers(args[0])
        _check_amounts(amounts, missing)
        parts = [scaled(amounts, unit) if unit else _ZERO for unit in (months, days, nanoseconds)]
        return from_span_parts(parts, missing)

    return evaluate


def _nanoseconds_of(amounts: Numbers, unit: int, missing: Bools) -> Numbers:
    """In whole microseconds; beyond the range of intervals where there are too many of them."""
    _check_amounts(amounts, missing)
    microseconds = np.rint(np.where(missing, 0.0, amounts) * unit / 1000)
    if (np.abs(microseconds) > _MICROSECONDS_MAX).any():
        return scaled(microseconds.astype(object), 1000)
    return microseconds.astype(np.int64) * 1000


def _check_amounts(amounts: Numbers, missing: Bools) -> None:
    outside = ~((amounts >= -_AMOUNT_MAX) & (amounts <= _AMOUNT_MAX)) & ~missing
    if outside.any():
        raise Overflow(f"an interval of {amounts[outside][0]} leaves its range")


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "make_time": _make_time,
    "epoch_ns": _nanoseconds,
    "to_timestamp": _instant,
    "julian": _julian,
    "time_bucket": _time_bucket,
    "age": _age,
    **{f"to_{unit}": _span(months=count) for unit, count in (
        ("millennia", 12_000), ("centuries", 1_200), ("decades", 120), ("years", 12), ("quarters", 3), ("months", 1))},
    "to_weeks": _span(days=7),
    "to_days": _span(days=1),
    "to_hours": _span(nanoseconds=3600 * NANOSECONDS_A_SECOND),
    "to_minutes": _span(nanoseconds=60 * NANOSECONDS_A_SECOND),
    "to_seconds": _span(nanoseconds=NANOSECONDS_A_SECOND),
    "to_milliseconds": _span(nanoseconds=1_000_000),
    "to_microseconds": _span(nanoseconds=1_000),
}  # fmt: skip
