"""The `.str` methods of expressions: Polars' names for functions of texts. Others are in `namespaces_of_values`."""

from __future__ import annotations

from typing import Any

from bireme.errors import ArgumentFault
from bireme.frontend.expression import Expression, lit, when


class Namespace:
    """One family of methods of an expression."""

    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def _call(self, name: str, *others: Any) -> Expression:
        return self._expression._call(name, *others)


class StringNamespace(Namespace):
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

    def to_date(self, format: str | None = None, *, strict: bool = True) -> Expression:
        """Texts as dates: such as 1995-03-15, or in a format."""
        if format is not None:
            return self.strptime("date", format, strict=strict)
        return self._expression.cast("date", strict=strict)

    def to_datetime(self, format: str | None = None, *, strict: bool = True) -> Expression:
        """Texts as timestamps: such as 1995-03-15 10:30:00, or in a format."""
        if format is not None:
            return self.strptime("timestamp", format, strict=strict)
        return self._expression.cast("timestamp", strict=strict)

    def len_bytes(self) -> Expression:
        return self._call("octet_length")

    def strip_prefix(self, prefix: str) -> Expression:
        """Without the text at the start, where it is there."""
        rest = self._call("substring", len(prefix) + 1)
        return when(self.starts_with(prefix)).then(rest).otherwise(self._expression)

    def strip_suffix(self, suffix: str) -> Expression:
        """Without the text at the end, where it is there."""
        if not suffix:
            return self._expression
        return when(self.ends_with(suffix)).then(self._call("left", -len(suffix))).otherwise(self._expression)

    def zfill(self, length: int) -> Expression:
        """Zeros in front, behind a sign, up to `length` characters."""
        signed = self._call("regexp_matches", "^[+-]")
        digits = when(signed).then(self._call("substring", 2)).otherwise(self._expression)
        sign = when(signed).then(self._call("left", 1)).otherwise("")
        wanted = when(signed).then(length - 1).otherwise(length)
        padded = digits._call("lpad", wanted, "0")
        return when(self.len_chars() >= length).then(self._expression).otherwise(sign + padded)

    def split(self, by: Any) -> Expression:
        """A list of the parts between separators."""
        return self._call("string_split", by)

    def find(self, pattern: str, *, literal: bool = False) -> Expression:
        """Where it first matches, in bytes from 0; NULL where it does not. Texts only, with `literal`."""
        if not literal:
            raise ArgumentFault("find() takes literal=True: places of regular expressions are not offered")
        place = self._call("position", pattern)
        return when(place > 0).then(self._call("left", place - 1)._call("octet_length"))

    def extract_all(self, pattern: Any) -> Expression:
        """A list of all matches of a regular expression."""
        return self._call("regexp_extract_all", pattern)

    def count_matches(self, pattern: str, *, literal: bool = False) -> Expression:
        """How often a regular expression matches."""
        escaped = lit(pattern)._call("regexp_escape") if literal else pattern
        return self.extract_all(escaped)._call("list_length")

    def to_integer(self, *, strict: bool = True) -> Expression:
        return self._expression.cast(int, strict=strict)

    def strptime(self, dtype: Any, format: str, *, strict: bool = True) -> Expression:
        """The date or timestamp that a text in this format means; what does not fit is NULL where not `strict`."""
        return self._call("strptime" if strict else "try_strptime", format).cast(dtype)
