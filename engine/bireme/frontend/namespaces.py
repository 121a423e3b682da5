"""The `.str` and `.dt` methods of expressions: Polars' names for functions of the registry."""

from __future__ import annotations

from typing import Any, Final

from bireme.errors import ArgumentFault
from bireme.frontend.expression import Expression, tree_of, when
from bireme.frontend.expression_tree import Function

# Polars' duration letters that name a calendar unit, for `dt.truncate`.
_UNITS: Final = {
    "1y": "year", "1q": "quarter", "1mo": "month", "1w": "week", "1d": "day", "1h": "hour", "1m": "minute",
    "1s": "second",
}  # fmt: skip


class _Namespace:
    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def _call(self, name: str, *others: Any) -> Expression:
        return Expression(Function(name, tuple([tree_of(value) for value in (self._expression, *others)])))


class StringNamespace(_Namespace):
    """Functions of texts; characters are Unicode code points."""

    __slots__ = ()

    def to_lowercase(self) -> Expression:
        return self._call("lower")

    def to_uppercase(self) -> Expression:
        return self._call("upper")

    def len_chars(self) -> Expression:
        return self._call("length")

    def contains(self, pattern: Any, *, literal: bool = False) -> Expression:
        """Whether a regular expression matches somewhere; with `literal`, whether the text occurs."""
        return self._call("contains" if literal else "regexp_matches", pattern)

    def starts_with(self, prefix: Any) -> Expression:
        return self._call("starts_with", prefix)

    def ends_with(self, suffix: Any) -> Expression:
        return self._call("ends_with", suffix)

    def like(self, pattern: str) -> Expression:
        """SQL's LIKE: `%` is any text, `_` any character."""
        return self._call("like", pattern)

    def ilike(self, pattern: str) -> Expression:
        """LIKE without regard to case."""
        return self._call("ilike", pattern)

    def slice(self, offset: int, length: int | None = None) -> Expression:
        """Characters from `offset` (from 0; negative from the end), `length` of them or all."""
        start = offset + 1 if offset >= 0 else offset
        return self._call("substring", start) if length is None else self._call("substring", start, length)

    def head(self, n: int) -> Expression:
        return self._call("left", n)

    def tail(self, n: int) -> Expression:
        return self._call("right", n)

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> Expression:
        """Replaces every match of a regular expression, or every occurrence of a text with `literal`."""
        return self._call("replace", pattern, value) if literal else self._call("regexp_replace", pattern, value, "g")

    def replace(self, pattern: str, value: str) -> Expression:
        """Replaces the first match of a regular expression."""
        return self._call("regexp_replace", pattern, value)

    def extract(self, pattern: str, group_index: int = 1) -> Expression:
        """A group of the first match of a regular expression."""
        return self._call("regexp_extract", pattern, group_index)

    def strip_chars(self, characters: str | None = None) -> Expression:
        return self._call("trim") if characters is None else self._call("trim", characters)

    def strip_chars_start(self, characters: str | None = None) -> Expression:
        return self._call("ltrim") if characters is None else self._call("ltrim", characters)

    def strip_chars_end(self, characters: str | None = None) -> Expression:
        return self._call("rtrim") if characters is None else self._call("rtrim", characters)

    def pad_start(self, length: int, fill_char: str = " ") -> Expression:
        """Pads to `length` characters on the left; longer texts stay as they are."""
        return when(self.len_chars() < length).then(self._call("lpad", length, fill_char)).otherwise(self._expression)

    def pad_end(self, length: int, fill_char: str = " ") -> Expression:
        """Pads to `length` characters on the right; longer texts stay as they are."""
        return when(self.len_chars() < length).then(self._call("rpad", length, fill_char)).otherwise(self._expression)

    def reverse(self) -> Expression:
        return self._call("reverse")

    def to_date(self) -> Expression:
        """Texts such as 1995-03-15 as dates."""
        return self._expression.cast("date")

    def to_datetime(self) -> Expression:
        """Texts such as 1995-03-15 10:30:00 as timestamps."""
        return self._expression.cast("timestamp")


class DateTimeNamespace(_Namespace):
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
        truncated = Function("date_trunc", (tree_of(unit), tree_of(self._expression)))
        return Expression(truncated)

    def strftime(self, format: str) -> Expression:
        """The text of a date or time in a format such as %Y-%m-%d."""
        return self._call("strftime", format)
