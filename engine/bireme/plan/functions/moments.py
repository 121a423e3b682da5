"""Moving a point in time by an interval, one value at a time, by the calendar.

Months first (a day beyond the end of the month becomes its last), then days, then time.
"""

from __future__ import annotations

import datetime
from typing import Any

from bireme.data.types import TIMESTAMP, DataType, Kind
from bireme.errors import ConversionFault
from bireme.plan.expr import Interval, Literal
from bireme.plan.functions.conversion import convert


def add_months(year: int, month: int, day: int, months: int) -> tuple[int, int, int]:
    """The day so many months later, or the last one of that month if it has fewer days."""
    import calendar

    index = year * 12 + month - 1 + months
    year, month = index // 12, index % 12 + 1
    return year, month, min(day, calendar.monthrange(year, month)[1])


def move(moment: datetime.datetime, span: Interval, sign: int) -> datetime.datetime:
    """`moment` plus (`sign` 1) or minus (-1) `span`; ValueError or OverflowError beyond the years 1 to 9999."""
    year, month, day = add_months(moment.year, moment.month, moment.day, sign * span.months)
    shifted = moment.replace(year=year, month=month, day=day)
    return shifted + sign * datetime.timedelta(days=span.days, microseconds=span.nanoseconds // 1000)


def move_constant(constant: Literal, span: Interval, sign: int, result: DataType) -> Literal | None:
    """A constant date or timestamp moved; None where it is no such constant or leaves the calendar."""
    if constant.type.kind not in (Kind.DATE, Kind.TIMESTAMP) or constant.type.unit == "ns":
        return None
    value: Any = constant.value
    try:
        moment = convert(value, constant.type, TIMESTAMP) if constant.type.kind is Kind.DATE else value
        return Literal(move(moment, span, sign), result)
    except (ValueError, OverflowError, ConversionFault):
        return None
