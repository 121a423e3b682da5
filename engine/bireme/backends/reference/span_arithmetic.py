"""Arithmetic with intervals on whole columns: their months, days and nanoseconds are three columns of numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import calendar
from bireme.backends.reference.vectors import (
    Numbers,
    any_null,
    exact_difference,
    exact_product,
    exact_sum,
    floats,
    from_span_parts,
    integers,
    nulls_of,
    scaled,
    span_parts,
    truncated_quotient,
)
from bireme.data.types import DATE, DataType, Kind
from bireme.errors import DomainFault, Overflow
from bireme.plan.functions.texts import DAYS_A_MONTH, NANOSECONDS_A_DAY, SECONDS_A_DAY

_ZERO: Final = np.zeros(1, np.int64)
# The last double of which a thousandfold fits 64 bits.
_MICROSECONDS_MAX: Final = 9_223_372_036_854_774.0
_INT32_BOUND: Final = 1 << 31


def negated(array: pa.Array) -> pa.Array:
    """Every part with its sign turned."""
    parts = [exact_difference(_ZERO, part) for part in span_parts(array)]
    return from_span_parts(parts, nulls_of(array))


def summed(args: list[pa.Array], sign: int) -> pa.Array:
    """The sum of two columns, or their difference."""
    combine = exact_sum if sign > 0 else exact_difference
    parts = [combine(one, other) for one, other in zip(*map(span_parts, args), strict=True)]
    return from_span_parts(parts, any_null(args))


def moved(args: list[pa.Array], kind: DataType, sign: int) -> Numbers:
    """Dates (as microseconds of timestamps), timestamps or times that a column of intervals moves, or moves back."""
    counts = integers(args[0])
    unit = "us" if kind is DATE else kind.unit
    ticks_a_day = calendar.TICKS_A_DAY[unit]
    months, days, nanoseconds = span_parts(args[1])
    if sign < 0:
        months, days, nanoseconds = -months, -days, exact_difference(_ZERO, nanoseconds)
    ticks = truncated_quotient(nanoseconds, np.array([NANOSECONDS_A_DAY // ticks_a_day]))
    if kind.kind is Kind.TIME:
        turned: Numbers = exact_sum(counts, ticks) % ticks_a_day
        return turned
    day, rest = (counts, _ZERO) if kind is DATE else (counts // ticks_a_day, counts % ticks_a_day)
    if months.any():
        day = calendar.add_months(day, months)
    found = exact_sum(scaled(day + days, ticks_a_day), exact_sum(rest, ticks))
    outside = np.asarray((found < -(1 << 63)) | (found >= 1 << 63), np.bool_) & ~any_null(args)
    if outside.any():
        raise Overflow("a timestamp moved by an interval leaves its range")
    return found


def between(kind: DataType, args: list[pa.Array]) -> pa.Array:
    """The interval between two timestamps: whole days, and the rest as time."""
    ticks_a_day = calendar.TICKS_A_DAY[kind.unit]
    difference = exact_difference(integers(args[0]), integers(args[1]))
    days = truncated_quotient(difference, np.array([ticks_a_day]))
    rest = (difference - days * ticks_a_day) * (NANOSECONDS_A_DAY // ticks_a_day)
    return from_span_parts((_ZERO, days, rest), any_null(args))


def times(args: list[pa.Array], kind: DataType, *, inverse: bool = False) -> pa.Array:
    """Intervals times or divided by numbers of a type; fractions of months become days, those of days time."""
    missing = any_null(args)
    if kind.is_integer:
        factors = integers(args[1])
        return from_span_parts([exact_product(part, factors) for part in span_parts(args[0])], missing)
    factor = np.where(missing, 1.0, floats(args[1]))
    if inverse and (factor == 0).any():
        raise DomainFault("division by zero of an interval; write nullif(divisor, 0) to get NULL instead")
    if not np.isfinite(factor).all():
        raise Overflow("an interval times an infinite number leaves its range")
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [part / factor if inverse else part * factor for part in span_parts(args[0])]
        months, days, microseconds = _carried(*parts)
    _check_range(months, days, microseconds)
    return from_span_parts((_whole(months), _whole(days), _whole(microseconds) * 1000), missing)


def _carried(months: Numbers, days: Numbers, nanoseconds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Whole months, days and microseconds of such with fractions."""
    whole_months, whole_days = np.trunc(months), np.trunc(days)
    rest_of_months = _micro((months - whole_months) * DAYS_A_MONTH)
    rest_of_days = _micro((days - whole_days + rest_of_months - np.trunc(rest_of_months)) * SECONDS_A_DAY)
    more_days = np.trunc(rest_of_days / SECONDS_A_DAY)
    microseconds = np.rint(nanoseconds / 1000 + (rest_of_days - more_days * SECONDS_A_DAY) * 1_000_000)
    return whole_months, whole_days + np.trunc(rest_of_months) + more_days, microseconds


def _micro(values: Numbers) -> Numbers:
    """Rounded to six places, as PostgreSQL does it against what doubles leave over."""
    rounded: Numbers = np.rint(values * 1_000_000) / 1_000_000
    return rounded


def _whole(values: Numbers) -> Numbers:
    whole: Numbers = values.astype(np.int64)
    return whole


def _check_range(months: Numbers, days: Numbers, microseconds: Numbers) -> None:
    bounds = ((months, _INT32_BOUND), (days, _INT32_BOUND), (microseconds, _MICROSECONDS_MAX))
    if not all((np.abs(values) <= bound).all() for values, bound in bounds):
        raise Overflow("an interval leaves the range of its months, days or nanoseconds")
