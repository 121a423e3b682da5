"""What strptime reads: a text by a template of DuckDB's specifiers, in English, whatever the locale.

A day comes from month and day where either is given, else from a week or a day of the year. Hours may stand for either
half of the day where AM or PM is said. What the parts leave open is 1900-01-01, midnight.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.reference.time_formats import DAYS, MONTHS, Moment
from bireme.backends.reference.values import from_values
from bireme.errors import ConversionFault, DomainFault
from bireme.plan.expr import Call

_MONTHS_SHORT: Final = "|".join(name[:3] for name in MONTHS)
_MONTH_NAMES: Final = {name.lower()[:3]: number for number, name in enumerate(MONTHS, start=1)}

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]
Fields = dict[str, int]


def _number(field: str, least: int, most: int) -> Callable[[str], Fields]:
    def read(text: str) -> Fields:
        value = int(text)
        if not least <= value <= most:
            raise ValueError(text)
        return {field: value}

    return read


def _short_year(text: str) -> Fields:
    """Of 1969 to 2068, as POSIX has it."""
    number = int(text)
    return {"year": number + (1900 if number > 68 else 2000)}


def _fraction(text: str) -> Fields:
    micros, rest = divmod(int(text.ljust(9, "0")), 1000)
    if rest:
        raise ValueError(text)
    return {"microsecond": micros}


def _offset(text: str) -> Fields:
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:])
    return {"offset": -seconds if text[0] == "-" else seconds}


def _month(text: str) -> Fields:
    return {"month": _MONTH_NAMES[text.lower()[:3]]}


# What each specifier takes of the text, and what it says.
_READERS: Final[Mapping[str, tuple[str, Callable[[str], Fields]]]] = {
    "Y": (r"\d{1,4}", _number("year", 1, 9999)),
    "y": (r"\d{1,2}", _short_year),
    "m": (r"\d{1,2}", _number("month", 1, 12)),
    "b": (_MONTHS_SHORT, _month),
    "h": (_MONTHS_SHORT, _month),
    "B": ("|".join(MONTHS), _month),
    "d": (r"\d{1,2}", _number("day", 1, 31)),
    "j": (r"\d{1,3}", _number("day_of_year", 1, 366)),
    "H": (r"\d{1,2}", _number("hour", 0, 23)),
    "I": (r"\d{1,2}", _number("hour", 1, 12)),
    "p": ("AM|PM", lambda text: {"afternoon": text.upper() == "PM"}),
    "M": (r"\d{1,2}", _number("minute", 0, 59)),
    "S": (r"\d{1,2}", _number("second", 0, 59)),
    "g": (r"\d{1,3}", _fraction),
    "f": (r"\d{1,6}", _fraction),
    "n": (r"\d{1,9}", _fraction),
    "a": ("|".join(name[:3] for name in DAYS), lambda _: {}),
    "A": ("|".join(DAYS), lambda _: {}),
    "w": (r"\d", _number("weekday", 0, 6)),
    "u": (r"\d", _number("iso_weekday", 1, 7)),
    "U": (r"\d{1,2}", _number("week_from_sunday", 0, 53)),
    "W": (r"\d{1,2}", _number("week_from_monday", 0, 53)),
    "V": (r"\d{1,2}", _number("iso_week", 1, 53)),
    "G": (r"\d{1,4}", _number("iso_year", 1, 9999)),
    "z": (r"[+-]\d\d(?::?\d\d(?::?\d\d)?)?", _offset),
}
# The name of a zone is not a number: it stays apart.
_ZONE: Final = r"[A-Za-z][\w+/-]*"
_SHORTHANDS: Final = {"x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S", "c": "%Y-%m-%d %H:%M:%S"}
_TOKEN: Final = re.compile(r"%-?(?P<specifier>.?)|(?P<space>\s+)|(?P<other>[^%\s]+)", re.DOTALL)


def strptime(safe: bool) -> Evaluator:
    """The function; where `safe`, NULL for a text that does not fit."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        parsers: dict[str, Callable[[str], Moment]] = {}
        values: list[Moment | None] = []
        for text, template in zip(args[0].to_pylist(), args[1].to_pylist(), strict=True):
            if text is None or template is None:
                values.append(None)
                continue
            if template not in parsers:
                parsers[template] = moment_parser(template)
            values.append(_parsed(parsers[template], text, safe))
        return from_values(values, call.type)

    return evaluate


def _parsed(parse: Callable[[str], Moment], text: str, safe: bool) -> Moment | None:
    try:
        return parse(text)
    except ConversionFault:
        if safe:
            return None
        raise


def moment_parser(template: str) -> Callable[[str], Moment]:
    """What reads the texts of a template. DomainFault for a template that cannot be read; the reader raises
    ConversionFault for a text that does not fit."""
    parts, specifiers = _compiled(template.strip())
    if not parts:
        raise DomainFault("the format of strptime is empty")
    expression = re.compile("".join(parts), re.ASCII)

    def parse(text: str) -> Moment:
        match = expression.fullmatch(text.strip())
        try:
            if match is None:
                raise ValueError(text)
            return _moment(specifiers, match.groups())
        except (ValueError, OverflowError):
            raise ConversionFault(f"the text {text!r} does not fit the format {template!r}") from None

    return parse


def _compiled(template: str) -> tuple[list[str], list[str]]:
    """The parts of a template's expression, and the specifiers of its groups."""
    parts: list[str] = []
    specifiers: list[str] = []
    for token in _TOKEN.finditer(template):
        specifier = token["specifier"]
        if specifier is None:
            parts.append(r"\s+" if token["space"] else re.escape(token["other"]))
        elif specifier in _SHORTHANDS:
            inner, more = _compiled(_SHORTHANDS[specifier])
            parts += inner
            specifiers += more
        elif specifier == "%":
            parts.append("%")
        elif specifier == "Z" or specifier in _READERS:
            parts.append(f"((?i:{_ZONE if specifier == 'Z' else _READERS[specifier][0]}))")
            specifiers.append(specifier)
        else:
            raise DomainFault(f"strptime knows no specifier %{specifier} (in {template!r})")
    return parts, specifiers


def _moment(specifiers: list[str], texts: Sequence[str]) -> Moment:
    """The moment that parts of a text mean, in UTC where they name an offset or zone; the later of two alike counts."""
    fields: Fields = {}
    zone = None
    for specifier, text in zip(specifiers, texts, strict=True):
        if specifier == "Z":
            zone = _zone(text)
        else:
            fields.update(_READERS[specifier][1](text))
    day = datetime.datetime.combine(_day(fields), datetime.time())
    minute, second, microsecond = [fields.get(name, 0) for name in ("minute", "second", "microsecond")]
    moment = day.replace(hour=_hour(fields), minute=minute, second=second, microsecond=microsecond)
    if zone is not None:
        moment = moment.replace(tzinfo=zone).astimezone(datetime.UTC).replace(tzinfo=None)
    return moment - datetime.timedelta(seconds=fields.get("offset", 0))


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        raise ValueError(name) from None


def _hour(fields: Fields) -> int:
    hour = fields.get("hour", 0)
    if "afternoon" not in fields:
        return hour
    if hour > 12:
        raise ValueError(hour)
    return hour % 12 + 12 * fields["afternoon"]


def _day(fields: Fields) -> datetime.date:
    year = fields.get("year", 1900)
    if "month" in fields or "day" in fields:
        return datetime.date(year, fields.get("month", 1), fields.get("day", 1))
    counted = fields.keys() & {"day_of_year", "week_from_sunday", "week_from_monday", "iso_week"}
    if len(counted) > 1 or ("iso_week" in counted and "year" in fields):
        raise ValueError(counted)
    if "day_of_year" in fields:
        day = datetime.date(year, 1, 1) + datetime.timedelta(days=fields["day_of_year"] - 1)
        if day.year != year:
            raise ValueError(day)
        return day
    if "iso_week" in fields:
        return datetime.date.fromisocalendar(
            fields.get("iso_year", 1900), fields["iso_week"], fields.get("iso_weekday", 1)
        )
    return _day_of_week(year, fields)


def _day_of_week(year: int, fields: Fields) -> datetime.date:
    """Weeks begin on Sunday (%U) or Monday (%W), the day where none is given; the first whole one is 1."""
    start = datetime.date(year, 1, 1)
    if "week_from_sunday" in fields:
        first, days = (6 - start.weekday()) % 7, fields.get("weekday", 0)
        week = fields["week_from_sunday"]
    elif "week_from_monday" in fields:
        first, days = -start.weekday() % 7, (fields.get("weekday", 1) - 1) % 7
        week = fields["week_from_monday"]
    else:
        return start
    return start + datetime.timedelta(days=first + 7 * (week - 1) + days)
