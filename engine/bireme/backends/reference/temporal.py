"""Functions of dates, times, timestamps (in microseconds) and intervals on columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import calendar
from bireme.backends.reference.time_formats import format_moment
from bireme.backends.reference.time_parsing import strptime
from bireme.backends.reference.values import from_values, to_values
from bireme.backends.reference.vectors import (
    Numbers,
    any_null,
    from_floats,
    from_integers,
    integers,
    nulls_of,
    scaled,
    span_parts,
)
from bireme.data.types import DATE, INTERVAL, TIMESTAMP, DataType
from bireme.errors import ConversionFault
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MONTHS_OF: Final = {
    "millennium": 12_000, "century": 1_200, "decade": 120, "year": 12, "quarter": 3, "month": 1,
}  # fmt: skip
_TICKS_OF: Final = {
    "week": 7 * _DAY, "day": _DAY, "hour": 3600 * _SECOND, "minute": 60 * _SECOND, "second": _SECOND,
    "millisecond": 1000, "microsecond": 1,
}  # fmt: skip


def _micros(array: pa.Array, kind: DataType) -> Numbers:
    """Microseconds since 1970 of a date or timestamp."""
    values = integers(array)
    return scaled(values, _DAY) if kind is DATE else values


def _days(array: pa.Array, kind: DataType) -> Numbers:
    values = integers(array)
    return values if kind is DATE else values // _DAY


# ------------------------------------------------------------------------------------------------- parts


def _year(days: Numbers) -> Numbers:
    return calendar.civil(days)[0]


def _quarter(days: Numbers) -> Numbers:
    return (calendar.civil(days)[1] + 2) // 3


def _dayofyear(days: Numbers) -> Numbers:
    year = _year(days)
    return days - calendar.days_from_civil(year, np.ones_like(year), np.ones_like(year)) + 1


def _yearweek(days: Numbers) -> Numbers:
    year, week = calendar.iso_week(days)
    return year * 100 + np.where(year < 0, -week, week)


def _rounded_up(years: int) -> Callable[[Numbers], Numbers]:
    """The number of the span of so many years, from 1; before the year 1 from -1 down."""

    def compute(days: Numbers) -> Numbers:
        year = _year(days)
        return np.where(year > 0, (year - 1) // years + 1, -(-year // years) - 1)

    return compute


def _toward_zero(values: Numbers, divisor: int) -> Numbers:
    quotient = values // divisor
    rounded: Numbers = quotient + ((values < 0) & (quotient * divisor != values))
    return rounded


_OF_DAYS: Final[dict[str, Callable[[Numbers], Numbers]]] = {
    "year": _year,
    "quarter": _quarter,
    "month": lambda days: calendar.civil(days)[1],
    "week": lambda days: calendar.iso_week(days)[1],
    "day": lambda days: calendar.civil(days)[2],
    "dayofweek": lambda days: (calendar.weekday(days) + 1) % 7,
    "isodow": lambda days: calendar.weekday(days) + 1,
    "dayofyear": _dayofyear,
    "isoyear": lambda days: calendar.iso_week(days)[0],
    "yearweek": _yearweek,
    "decade": lambda days: _toward_zero(_year(days), 10),
    "century": _rounded_up(100),
    "millennium": _rounded_up(1000),
}
# Of microseconds since midnight, or of an interval's time.
_OF_CLOCK: Final[dict[str, Callable[[Numbers], Numbers]]] = {
    "hour": lambda micros: _toward_zero(micros, 3600 * _SECOND),
    "minute": lambda micros: _toward_zero(np.fmod(micros, 3600 * _SECOND), 60 * _SECOND),
    "second": lambda micros: _toward_zero(np.fmod(micros, 60 * _SECOND), _SECOND),
    "millisecond": lambda micros: _toward_zero(np.fmod(micros, 60 * _SECOND), 1000),
    "microsecond": lambda micros: np.fmod(micros, 60 * _SECOND),
}
_OF_MONTHS: Final[dict[str, Callable[[Numbers], Numbers]]] = {
    "year": lambda months: _toward_zero(months, 12),
    "quarter": lambda months: _toward_zero(np.fmod(months, 12), 3) + 1,
    "month": lambda months: np.fmod(months, 12),
    "decade": lambda months: _toward_zero(months, 120),
}


def _part(call: Call, args: list[pa.Array]) -> pa.Array:
    kind, name = call.args[0].type, call.function
    missing = nulls_of(args[0])
    if kind is INTERVAL:
        values = _interval_part(name, args[0])
    elif name in _OF_DAYS:
        values = _OF_DAYS[name](_days(args[0], kind))
    else:
        values = _OF_CLOCK[name](integers(args[0]) % _DAY)
    return from_integers(values, missing, call.type, lambda _: name)


def _interval_part(name: str, array: pa.Array) -> Numbers:
    months, days, nanoseconds = span_parts(array)
    if name == "day":
        return days
    return _OF_MONTHS[name](months) if name in _OF_MONTHS else _OF_CLOCK[name](_toward_zero(nanoseconds, 1000))


def _epoch(call: Call, args: list[pa.Array]) -> pa.Array:
    kind = call.args[0].type
    if kind is INTERVAL:
        values = _interval_seconds(args[0])
    elif kind is DATE:
        values = integers(args[0]).astype(np.float64) * 86_400.0
    else:
        values = integers(args[0]).astype(np.float64) / float(_SECOND)
    return from_floats(values, nulls_of(args[0]), call.type)


def _interval_seconds(array: pa.Array) -> Numbers:
    """A year counts 365.25 days, a month beyond whole years 30."""
    months, days, nanoseconds = span_parts(array)
    years = _toward_zero(months, 12)
    of_years: Numbers = years * 365.25 + (months - years * 12) * 30 + days
    return of_years * 86_400 + nanoseconds // 1000 / _SECOND


def _epoch_count(divisor: int) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        return from_integers(_toward_zero(integers(args[0]), divisor), nulls_of(args[0]), call.type, lambda _: "epoch")

    return evaluate


# ------------------------------------------------------------------------------ truncation and differences


def _unit(args: list[pa.Array]) -> str:
    return str(args[0][0].as_py()) if len(args[0]) else "day"


def _first_of(months: Numbers) -> Numbers:
    """The day on which a count of months since the year 0 begins."""
    year = months // 12
    return calendar.days_from_civil(year, months % 12 + 1, np.ones_like(year))


def _iso_start(days: Numbers) -> Numbers:
    """The Monday on which the ISO year of each day begins."""
    fourth = calendar.days_from_civil(
        calendar.iso_week(days)[0], np.ones(len(days), np.int64), np.full(len(days), 4, np.int64)
    )
    return fourth - calendar.weekday(fourth)


def _months(days: Numbers) -> Numbers:
    year, month, _ = calendar.civil(days)
    return year * 12 + month - 1


def _date_trunc(call: Call, args: list[pa.Array]) -> pa.Array:
    unit, kind = _unit(args), call.args[1].type
    if kind.unit == "ns":
        assert unit == "microsecond", "nanoseconds are cut off before anything else is done with them"
        return from_integers(integers(args[1]) // 1000, any_null(args), call.type, lambda _: "date_trunc")
    days, micros = _days(args[1], kind), _micros(args[1], kind)
    if unit in _MONTHS_OF:
        count = _MONTHS_OF[unit]
        months = _months(days)
        micros = scaled(_first_of(_toward_zero(months, count) * count), _DAY)
    elif unit == "isoyear":
        micros = scaled(_iso_start(days), _DAY)
    elif unit == "week":
        micros = scaled(days - calendar.weekday(days), _DAY)
    else:
        micros = micros // _TICKS_OF[unit] * _TICKS_OF[unit]
    return from_integers(micros, any_null(args), call.type, lambda _: f"date_trunc to {unit}")


def _boundaries(unit: str, days: Numbers, micros: Numbers) -> Numbers:
    """How many starts of the unit there have been since some fixed moment."""
    if unit in _MONTHS_OF:
        return _toward_zero(_months(days), _MONTHS_OF[unit])
    if unit == "isoyear":
        return calendar.iso_week(days)[0]
    return micros // _TICKS_OF[unit]


def _date_diff(call: Call, args: list[pa.Array]) -> pa.Array:
    unit = _unit(args)
    moments = list(zip(args[1:], call.args[1:], strict=True))
    if unit == "week":
        # DuckDB counts whole weeks between the days, not Mondays.
        first, second = [_days(array, arg.type) for array, arg in moments]
        counts = _toward_zero(second - first, 7)
    else:
        first, second = [_boundaries(unit, _days(array, arg.type), _micros(array, arg.type)) for array, arg in moments]
        counts = second - first
    return from_integers(counts, any_null(args), call.type, lambda _: "date_diff")


def _date_sub(call: Call, args: list[pa.Array]) -> pa.Array:
    """Whole units between two moments: counted from the earlier, negative where the second is the earlier."""
    unit = _unit(args)
    first, second = [_micros(array, arg.type) for array, arg in zip(args[1:], call.args[1:], strict=True)]
    if unit in _TICKS_OF:
        counts = _toward_zero(second - first, _TICKS_OF[unit])
    else:
        months = np.array([_whole_months(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)], np.int64)
        counts = _toward_zero(months, _MONTHS_OF["year" if unit == "isoyear" else unit])
    return from_integers(counts, any_null(args), call.type, lambda _: "date_sub")


def _whole_months(start: int, end: int) -> int:
    """Months that fit between; the last day of a month ends it, whatever its number."""
    if start > end:
        return -_whole_months(end, start)
    (start_day, start_rest), (end_day, end_rest) = divmod(start, _DAY), divmod(end, _DAY)
    months = int(_months(np.array([end_day]))[0] - _months(np.array([start_day]))[0])
    moved = int(calendar.add_months(np.array([start_day]), np.array([months]))[0])
    return months if (moved, start_rest) <= (end_day, end_rest) else months - 1


# ---------------------------------------------------------------------------------- making and formatting


def _make_date(call: Call, args: list[pa.Array]) -> pa.Array:
    missing = any_null(args)
    values = [_date_of(*row) for row in zip(*(integers(array).tolist() for array in args), missing, strict=True)]
    return from_integers(np.array(values, object), missing, call.type, lambda _: "make_date")


def _date_of(year: int, month: int, day: int, gone: bool) -> int:
    if gone:
        return 0
    one = np.array([1])
    if not (1 <= month <= 12 and abs(year) < 300_000):
        raise ConversionFault(f"there is no date {year}-{month}-{day}")
    if not 1 <= day <= int(calendar.days_in_month(one * year, one * month)[0]):
        raise ConversionFault(f"there is no date {year}-{month}-{day}")
    return int(calendar.days_from_civil(one * year, one * month, one * day)[0])


def _make_timestamp(call: Call, args: list[pa.Array]) -> pa.Array:
    missing = any_null(args)
    columns = [integers(array).tolist() for array in args[:5]]
    seconds = np.asarray(args[5].fill_null(0.0)).tolist()
    values = [0 if gone else _timestamp_of(*row) for gone, *row in zip(missing, *columns, seconds, strict=True)]
    return from_integers(np.array(values, object), missing, call.type, lambda _: "make_timestamp")


def _timestamp_of(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> int:
    micros = round(seconds * _SECOND) if seconds == seconds and abs(seconds) < 1e9 else -1
    time = (hour * 60 + minute) * 60 * _SECOND + micros
    if not (0 <= hour <= 24 and 0 <= minute < 60 and 0 <= micros <= 60 * _SECOND and time <= _DAY):
        raise ConversionFault(f"there is no time {hour}:{minute}:{seconds}")
    return _date_of(year, month, day, False) * _DAY + time


def _last_day(call: Call, args: list[pa.Array]) -> pa.Array:
    year, month, day = calendar.civil(integers(args[0]))
    return from_integers(
        integers(args[0]) - day + calendar.days_in_month(year, month),
        nulls_of(args[0]),
        call.type,
        lambda _: "last_day",
    )


def _strftime(call: Call, args: list[pa.Array]) -> pa.Array:
    kind, array = call.args[0].type, args[0]
    rests = [0] * len(array)
    if kind.unit == "ns":
        counts = integers(array)
        rests = (counts % 1000).tolist()
        kind, array = TIMESTAMP, from_integers(counts // 1000, nulls_of(array), TIMESTAMP, lambda _: "strftime")
    return from_values(
        [
            None if moment is None or template is None else format_moment(moment, template, rest)
            for moment, template, rest in zip(_moments(array, kind), args[1].to_pylist(), rests, strict=True)
        ],
        call.type,
    )


def _moments(array: pa.Array, kind: DataType) -> list[datetime.datetime | None]:
    if kind is TIMESTAMP:
        return to_values(array, kind)
    midnight = datetime.time()
    return [None if day is None else datetime.datetime.combine(day, midnight) for day in to_values(array, kind)]


def _name(names: tuple[str, ...], number: Callable[[Numbers], Numbers]) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        chosen = number(integers(args[0])).tolist()
        missing = nulls_of(args[0])
        return pa.array(
            [None if gone else names[index] for gone, index in zip(missing, chosen, strict=True)], pa.string()
        )

    return evaluate


_DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


FUNCTIONS: Final[dict[str, Evaluator]] = {
    **dict.fromkeys((*_OF_DAYS, *_OF_CLOCK), _part),
    "epoch": _epoch,
    "epoch_ms": _epoch_count(1000),
    "epoch_us": _epoch_count(1),
    "date_trunc": _date_trunc,
    "date_diff": _date_diff,
    "date_sub": _date_sub,
    "make_date": _make_date,
    "make_timestamp": _make_timestamp,
    "last_day": _last_day,
    "strftime": _strftime,
    "strptime": strptime(safe=False),
    "try_strptime": strptime(safe=True),
    "dayname": _name(_DAY_NAMES, calendar.weekday),
    "monthname": _name(_MONTH_NAMES, lambda days: calendar.civil(days)[1] - 1),
}  # fmt: skip
