"""Functions of points in time that came after those of `temporal`: buckets, ages, and counts from a fixed day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import calendar
from bireme.backends.reference.vectors import (
    any_null,
    floats,
    from_floats,
    from_integers,
    from_intervals,
    integers,
    intervals,
    nulls_of,
    scaled,
)
from bireme.data.types import DATE
from bireme.errors import ConversionFault, DomainFault, Overflow
from bireme.plan.expr import Call, Interval

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MONTHS_A_YEAR: Final = 12
# Buckets of days begin on a Monday, 2000-01-03, those of months in January 2000; counted from 1970.
_ORIGIN_DAY: Final = 10_959
_ORIGIN_MONTH: Final = 30 * _MONTHS_A_YEAR
_JULIAN_DAY: Final = 2_440_588
_SECONDS_MAX: Final = 1e12


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
    missing = any_null(args)
    rows = zip(missing, integers(args[0]).tolist(), integers(args[1]).tolist(), strict=True)
    return from_intervals([None if gone else age(later, earlier) for gone, later, earlier in rows])


def age(later: int, earlier: int) -> Interval:
    """Calendar years, months and days, and time, between points in microseconds; what is missing in days is taken from
    the month of the earlier one.
    """
    if later < earlier:
        return Interval(*(-part for part in age(earlier, later)))
    (year, month, day), time = _fields(later)
    (before_year, before_month, before_day), before_time = _fields(earlier)
    months, days = (year - before_year) * _MONTHS_A_YEAR + month - before_month, day - before_day
    rest = time - before_time
    if rest < 0:
        rest, days = rest + _DAY, days - 1
    if days < 0:
        one = np.array([1])
        days += int(calendar.days_in_month(one * before_year, one * before_month)[0])
        months -= 1
    return Interval(months, days, rest * 1000)


def _fields(count: int) -> tuple[tuple[int, int, int], int]:
    days, time = divmod(count, _DAY)
    year, month, day = (int(part[0]) for part in calendar.civil(np.array([days])))
    return (year, month, day), time


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "make_time": _make_time,
    "epoch_ns": _nanoseconds,
    "to_timestamp": _instant,
    "julian": _julian,
    "time_bucket": _time_bucket,
    "age": _age,
}
