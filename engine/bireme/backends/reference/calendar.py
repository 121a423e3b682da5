"""The proleptic Gregorian calendar on counts of days and ticks since 1970, for any year.

Functions on arrays of days are whole-number arithmetic (the algorithms of Howard Hinnant's «chrono-compatible low-level
date algorithms»); moving one value by an interval is a loop's body.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bireme.backends.reference.vectors import Numbers
from bireme.data.types import DATE, DataType, Kind
from bireme.errors import Overflow
from bireme.plan.expr import Interval

TICKS_A_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NANOSECONDS_A_TICK: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAYS_AN_ERA: Final = 146_097
_YEARS_AN_ERA: Final = 400
_EPOCH_SHIFT: Final = 719_468
# By the number of the month; none has 0.
_MONTH_LENGTHS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def civil(days: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Year, month and day of each count of days since 1970-01-01."""
    shifted = days + _EPOCH_SHIFT
    era = shifted // _DAYS_AN_ERA
    # Days of an era are few: numpy divides narrow numbers without a sign several times as fast.
    of_era = (shifted - era * _DAYS_AN_ERA).astype(np.uint32)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * month_from_march + 2) // 5 + 1
    month = np.where(month_from_march < 10, month_from_march + 3, month_from_march - 9)
    year = year_of_era + era * _YEARS_AN_ERA + (month <= 2)
    return year, month.astype(np.int64), day.astype(np.int64)


def days_from_civil(year: Numbers, month: Numbers, day: Numbers) -> Numbers:
    """The count of days since 1970-01-01."""
    year = year - (month <= 2)
    era = year // _YEARS_AN_ERA
    of_era = year - era * _YEARS_AN_ERA
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    day_of_era = of_era * 365 + of_era // 4 - of_era // 100 + of_year
    days: Numbers = era * _DAYS_AN_ERA + day_of_era - _EPOCH_SHIFT
    return days


def days_in_month(year: Numbers, month: Numbers) -> Numbers:
    """How many days the month has."""
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % _YEARS_AN_ERA == 0))
    days: Numbers = _MONTH_LENGTHS[month] + (is_leap & (month == 2))
    return days


def weekday(days: Numbers) -> Numbers:
    """0 for Monday to 6 for Sunday."""
    return (days + 3) % 7


def iso_week(days: Numbers) -> tuple[Numbers, Numbers]:
    """ISO year and week: those of the Thursday of the same week."""
    thursday = days - weekday(days) + 3
    year, _, _ = civil(thursday)
    start = days_from_civil(year, np.ones_like(year), np.ones_like(year))
    return year, (thursday - start) // 7 + 1


def add_months(days: Numbers, months: Numbers) -> Numbers:
    """The same day so many months later, or the last of that month."""
    year, month, day = civil(days)
    index = year * 12 + month - 1 + months
    year, month = index // 12, index % 12 + 1
    return days_from_civil(year, month, np.minimum(day, days_in_month(year, month)))


def move(count: int, kind: DataType, span: Interval) -> int:
    """A date (giving microseconds of a timestamp), timestamp or time moved by an interval."""
    if kind.kind is Kind.TIME:
        day = TICKS_A_DAY[kind.unit]
        return (count + _ticks(span.nanoseconds, kind.unit)) % day
    unit = "us" if kind is DATE else kind.unit
    ticks = TICKS_A_DAY[unit]
    days, rest = (count, 0) if kind is DATE else divmod(count, ticks)
    if span.months:
        days = int(add_months(np.array([days]), np.array([span.months]))[0])
    moved = (days + span.days) * ticks + rest + _ticks(span.nanoseconds, unit)
    if not -(1 << 63) <= moved < 1 << 63:
        raise Overflow("a timestamp moved by an interval leaves its range")
    return moved


def _ticks(nanoseconds: int, unit: str) -> int:
    """Nanoseconds in ticks of a unit, toward zero."""
    step = _NANOSECONDS_A_TICK[unit]
    return nanoseconds // step if nanoseconds >= 0 else -(-nanoseconds // step)
