"""The `.dt`, `.list` and `.struct` methods of expressions: Polars' names for functions of the registry."""

from __future__ import annotations

from typing import Any, Final

from bireme.errors import ArgumentFault
from bireme.frontend.arguments import row_count
from bireme.frontend.expression import Expression, lit, tree_of, when
from bireme.frontend.expression_tree import EachElement
from bireme.frontend.namespaces import Namespace

# Polars' duration letters that name a calendar unit, for `dt.truncate`.
_UNITS: Final = {
    "1y": "year", "1q": "quarter", "1mo": "month", "1w": "week", "1d": "day", "1h": "hour", "1m": "minute",
    "1s": "second",
}  # fmt: skip


class DateTimeNamespace(Namespace):
    """Functions of dates and times."""

    __slots__ = ()

    def year(self) -> Expression:
        return self._call("year")

    def quarter(self) -> Expression:
        return self._call("quarter")

    def month(self) -> Expression:
        return self._call("month")

    def week(self) -> Expression:
        """The ISO week."""
        return self._call("week")

    def day(self) -> Expression:
        return self._call("day")

    def weekday(self) -> Expression:
        """Monday is 1, Sunday 7."""
        day = self._call("dayofweek")
        return when(day == 0).then(7).otherwise(day)

    def ordinal_day(self) -> Expression:
        return self._call("dayofyear")

    def hour(self) -> Expression:
        return self._call("hour")

    def minute(self) -> Expression:
        return self._call("minute")

    def second(self) -> Expression:
        return self._call("second")

    def date(self) -> Expression:
        return self._expression.cast("date")

    def truncate(self, every: str) -> Expression:
        """The start of the calendar unit: 1y, 1q, 1mo, 1w, 1d, 1h, 1m or 1s."""
        unit = _UNITS.get(every, every if every in _UNITS.values() else None)
        if unit is None:
            raise ArgumentFault(f"truncate() takes one of {', '.join(_UNITS)}, not {every!r}")
        return lit(unit)._call("date_trunc", self._expression)

    def strftime(self, format: str) -> Expression:
        """The text of a date or time in a format such as %Y-%m-%d."""
        return self._call("strftime", format)

    def to_string(self, format: str) -> Expression:
        return self.strftime(format)

    def time(self) -> Expression:
        return self._expression.cast("time")

    def iso_year(self) -> Expression:
        return self._call("isoyear")

    def century(self) -> Expression:
        return self._call("century")

    def millennium(self) -> Expression:
        return self._call("millennium")

    def is_leap_year(self) -> Expression:
        year = self.year()
        return ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)

    def month_start(self) -> Expression:
        """The first day of the month, at the same time of day."""
        return self._moved(1 - self.day())

    def month_end(self) -> Expression:
        """The last day of the month, at the same time of day."""
        return self._moved(self._call("last_day")._call("day") - self.day())

    def _moved(self, days: Expression) -> Expression:
        return self._expression + days.cast("integer")._call("to_days")

    def millisecond(self) -> Expression:
        """The thousandths of the second."""
        return self._call("millisecond") % 1_000

    def microsecond(self) -> Expression:
        """The millionths of the second."""
        return self._call("microsecond") % 1_000_000

    def epoch(self, time_unit: str = "us") -> Expression:
        """Counts of a unit (s, ms, us or ns) since 1970."""
        if time_unit == "s":
            return self._call("epoch_us") // 1_000_000
        if time_unit not in ("ms", "us", "ns"):
            raise ArgumentFault(f"time_unit must be s, ms, us or ns, not {time_unit!r}")
        return self._call(f"epoch_{time_unit}")

    def timestamp(self, time_unit: str = "us") -> Expression:
        return self.epoch(time_unit)


class StructNamespace(Namespace):
    """The fields of structs."""

    __slots__ = ()

    def field(self, name: str) -> Expression:
        """The field of this name; the column is called like it."""
        return self._call("struct_extract", name).alias(name)


class ListNamespace(Namespace):
    """Functions of lists. Places count from 0, and from -1 backwards; outside of the list is NULL."""

    __slots__ = ()

    def len(self) -> Expression:
        return self._call("list_length")

    def sum(self) -> Expression:
        return self._call("list_sum")

    def mean(self) -> Expression:
        return self._call("list_avg")

    def min(self) -> Expression:
        return self._call("list_min")

    def max(self) -> Expression:
        return self._call("list_max")

    def first(self) -> Expression:
        return self._call("list_first")

    def last(self) -> Expression:
        return self._call("list_last")

    def eval(self, expr: Expression) -> Expression:
        """What an expression of `element()` gives for each element."""
        return self._each("list_transform", expr)

    def filter(self, predicate: Expression) -> Expression:
        """The elements for which a condition on `element()` is TRUE."""
        return self._each("list_filter", predicate)

    def _each(self, name: str, body: Expression) -> Expression:
        return Expression(EachElement(name, tree_of(self._expression), tree_of(body)))

    def get(self, index: int) -> Expression:
        """The element at a place."""
        return self._call("list_extract", index + 1 if index >= 0 else index)

    def slice(self, offset: int, length: int | None = None) -> Expression:
        """`length` elements (all if not given) from a place on."""
        first = offset + 1 if offset >= 0 else offset
        if length is None:
            return self._call("list_slice", first, -1)
        if offset >= 0:
            return self._call("list_slice", first, offset + length)
        return self._call("list_slice", first, -1).list.head(length)

    def head(self, n: int = 5) -> Expression:
        return self._call("list_slice", 1, row_count(n, "head()"))

    def tail(self, n: int = 5) -> Expression:
        return self._call("list_slice", -n, -1) if row_count(n, "tail()") else self.head(0)

    def contains(self, item: Any) -> Expression:
        return self._call("list_contains", item)

    def reverse(self) -> Expression:
        return self._call("list_reverse")

    def sort(self, *, descending: bool = False, nulls_last: bool = False) -> Expression:
        return self._call("list_sort", "DESC" if descending else "ASC", "NULLS LAST" if nulls_last else "NULLS FIRST")

    def join(self, separator: str) -> Expression:
        """The texts of the elements that are not NULL, with the separator between them."""
        return self._call("array_to_string", separator)

    def concat(self, other: Any) -> Expression:
        return self._call("list_concat", other)
