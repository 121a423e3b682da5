"""Values to text and back, one value at a time: what a cast to and from VARCHAR means, in the forms DuckDB uses.

Values are in the form of `expr.Literal`. A text that cannot be read is a ValueError here; `conversion` makes a
ConversionFault of it.
"""

from __future__ import annotations

import datetime
import re
import struct
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Final

from bireme.data.exact_decimal import EXACT
from bireme.plan.expr import Interval

_STRAY: Final = re.compile(r"(?<!\d)_|_(?!\d)")
_STRAY_IN_HEXADECIMAL: Final = re.compile(r"(?<![\dA-Fa-f])_|_(?![\dA-Fa-f])")
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})
_DATE: Final = re.compile(r"(\d{1,6})([-/ \\])(\d{1,2})\2(\d{1,2})", re.ASCII)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?", re.ASCII)
_ZONE: Final = re.compile(r"(?:Z|UTC|([+-])(\d{1,2})(?::?(\d{2}))?)", re.ASCII | re.IGNORECASE)
_SPAN: Final = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)\s*([a-zµ]+)", re.ASCII | re.IGNORECASE)
_SPAN_CLOCK: Final = re.compile(r"([+-]?)(\d+):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?", re.ASCII)

NANOSECONDS_A_SECOND: Final = 1_000_000_000
NANOSECONDS_A_MICROSECOND: Final = 1_000
SECONDS_A_DAY: Final = 86_400
NANOSECONDS_A_DAY: Final = SECONDS_A_DAY * NANOSECONDS_A_SECOND
DAYS_A_MONTH: Final = 30
# The power of ten of the largest amounts of a unit that are looked at; no interval comes near it.
_ADJUSTED_MAX: Final = 30
_EPOCH: Final = datetime.datetime(1970, 1, 1)
UTC: Final = datetime.UTC

# Months, days, nanoseconds of one unit.
_UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "millennium": (12_000, 0, 0), "century": (1_200, 0, 0), "decade": (120, 0, 0), "year": (12, 0, 0),
    "quarter": (3, 0, 0), "month": (1, 0, 0), "week": (0, 7, 0), "day": (0, 1, 0),
    "hour": (0, 0, 3600 * NANOSECONDS_A_SECOND), "minute": (0, 0, 60 * NANOSECONDS_A_SECOND),
    "second": (0, 0, NANOSECONDS_A_SECOND), "millisecond": (0, 0, 1_000_000), "microsecond": (0, 0, 1_000),
    "nanosecond": (0, 0, 1),
}  # fmt: skip
_UNIT_NAMES: Final[dict[str, str]] = {
    "millennia": "millennium", "mil": "millennium", "mils": "millennium", "millenniums": "millennium",
    "centuries": "century", "cent": "century", "c": "century", "centurys": "century",
    "decades": "decade", "dec": "decade", "decs": "decade",
    "years": "year", "yr": "year", "yrs": "year", "y": "year",
    "quarters": "quarter",
    "months": "month", "mon": "month", "mons": "month",
    "weeks": "week", "w": "week", "weekofyear": "week",
    "days": "day", "d": "day", "dayofmonth": "day",
    "hours": "hour", "hr": "hour", "hrs": "hour", "h": "hour",
    "minutes": "minute", "min": "minute", "mins": "minute", "m": "minute",
    "seconds": "second", "sec": "second", "secs": "second", "s": "second",
    "milliseconds": "millisecond", "ms": "millisecond", "msec": "millisecond", "msecs": "millisecond",
    "microseconds": "microsecond", "us": "microsecond", "usec": "microsecond", "usecs": "microsecond",
    "nanoseconds": "nanosecond", "ns": "nanosecond", "nsec": "nanosecond",
}  # fmt: skip


def unit_name(text: str) -> str:
    """The singular name of a unit of time, as it is where it is not known."""
    lowered = text.strip().lower()
    return _UNIT_NAMES.get(lowered, lowered)


def is_span_unit(name: str) -> bool:
    """Whether `name` (from `unit_name`) measures a span of time."""
    return name in _UNITS


# ------------------------------------------------------------------------------------------------ reading


def read_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("true or false")


def read_number(text: str) -> Decimal:
    """A finite number, exact. An underscore between two digits separates them."""
    stripped = text.strip()
    is_hexadecimal = stripped[:2].lower() == "0x"
    if (_STRAY_IN_HEXADECIMAL if is_hexadecimal else _STRAY).search(stripped):
        raise ValueError("a number")
    if is_hexadecimal:
        return Decimal(int(stripped, 16))
    try:
        number = Decimal(stripped)
    except InvalidOperation:
        raise ValueError("a number") from None
    if not number.is_finite():
        raise ValueError("a finite number")
    return number


def read_date(text: str) -> datetime.date:
    stripped = text.strip()
    matched = _DATE.match(stripped)
    if matched is None:
        raise ValueError("a date such as 1995-01-31")
    if matched.end() != len(stripped):
        return read_timestamp(text)[0].date()
    return _civil(matched)


def _civil(matched: re.Match[str]) -> datetime.date:
    return datetime.date(int(matched[1]), int(matched[3]), int(matched[4]))


def read_clock(text: str) -> tuple[int, str]:
    """Nanoseconds since midnight, and what follows the time of day."""
    matched = _CLOCK.match(text)
    if matched is None:
        raise ValueError("a time such as 13:45:00")
    hour, minute, second = int(matched[1]), int(matched[2]), int(matched[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("a time of day")
    fraction = int((matched[4] or "").ljust(9, "0")[:9])
    count = (hour * 3600 + minute * 60 + second) * NANOSECONDS_A_SECOND + fraction
    return count, text[matched.end() :]


def read_time(text: str) -> int:
    """Nanoseconds since midnight; of a whole timestamp, its time of day."""
    if _DATE.match(text.strip()):
        return read_timestamp(text)[1]
    count, rest = read_clock(text.strip())
    if rest:
        raise ValueError("a time such as 13:45:00")
    return count


def read_timestamp(text: str) -> tuple[datetime.datetime, int, int]:
    """Midnight of the day, nanoseconds since then, and the seconds that a zone written in the text is ahead of UTC."""
    stripped = text.strip()
    matched = _DATE.match(stripped)
    if matched is None:
        raise ValueError("a timestamp such as 1995-01-31 13:45:00")
    day = datetime.datetime.combine(_civil(matched), datetime.time())
    rest = stripped[matched.end() :]
    if not rest:
        return day, 0, 0
    if rest[0] not in " T":
        raise ValueError("a timestamp such as 1995-01-31 13:45:00")
    count, rest = read_clock(rest[1:].lstrip())
    zone = _ZONE.fullmatch(rest.strip()) if rest.strip() else None
    if zone is None and rest.strip():
        raise ValueError("a timestamp such as 1995-01-31 13:45:00")
    ahead = int(zone[2]) * 3600 + int(zone[3] or 0) * 60 if zone is not None and zone[1] else 0
    return day, count, -ahead if zone is not None and zone[1] == "-" else ahead


def read_interval(text: str) -> Interval:
    """Amounts with units, a clock time, or both; a plain number is seconds. `ago` turns the sign."""
    rest = text.strip()
    turned = rest.lower().endswith("ago")
    rest = rest[:-3].rstrip() if turned else rest
    if not rest:
        raise ValueError("an interval such as 3 days")
    try:
        return in_range(_turned(span(Decimal(rest), "second"), turned))
    except InvalidOperation:
        pass
    months = days = nanoseconds = 0
    while rest:
        part, rest = _read_part(rest)
        months, days, nanoseconds = months + part.months, days + part.days, nanoseconds + part.nanoseconds
    return in_range(_turned(Interval(months, days, nanoseconds), turned))


def in_range(value: Interval) -> Interval:
    """The interval; OverflowError where a part of it is too large for its column."""
    bits = (31, 31, 63)
    if any(not -(1 << size) <= part < 1 << size for part, size in zip(value, bits, strict=True)):
        raise OverflowError("it leaves the range of an interval")
    return value


def _turned(value: Interval, turned: bool) -> Interval:
    return Interval(-value.months, -value.days, -value.nanoseconds) if turned else value


def _read_part(text: str) -> tuple[Interval, str]:
    clock = _SPAN_CLOCK.match(text)
    if clock is not None:
        seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + int(clock[4] or 0)
        count = seconds * NANOSECONDS_A_SECOND + int((clock[5] or "").ljust(9, "0")[:9])
        return Interval(0, 0, -count if clock[1] == "-" else count), text[clock.end() :].lstrip(" ,")
    matched = _SPAN.match(text)
    if matched is None or unit_name(matched[3]) not in _UNITS:
        raise ValueError("an interval such as 3 days")
    amount = Decimal(matched[2])
    part = span(EXACT.minus(amount) if matched[1] == "-" else amount, unit_name(matched[3]))
    return part, text[matched.end() :].lstrip(" ,")


def span(amount: Decimal, unit: str) -> Interval:
    """`amount` of a unit, as in DuckDB: years and longer units are rounded to months, a fraction of a month becomes
    days, one of a day time, rounded to microseconds; a fraction of a microsecond is dropped.
    """
    if amount.adjusted() > _ADJUSTED_MAX:
        raise OverflowError("it leaves the range of an interval")
    months, days, nanoseconds = _UNITS[unit]
    count = EXACT.multiply(amount, months or days or nanoseconds)
    if months >= _UNITS["year"][0]:
        return Interval(_rounded(count), 0, 0)
    if months:
        whole, rest = _split(count)
        left = span(EXACT.multiply(rest, DAYS_A_MONTH), "day")
        return Interval(whole, left.days, left.nanoseconds)
    if days:
        whole, rest = _split(count)
        return Interval(0, whole, _whole_microseconds(EXACT.multiply(rest, NANOSECONDS_A_DAY)))
    if nanoseconds <= NANOSECONDS_A_MICROSECOND:
        return Interval(0, 0, int(EXACT.divide(count, NANOSECONDS_A_MICROSECOND)) * NANOSECONDS_A_MICROSECOND)
    return Interval(0, 0, _whole_microseconds(count))


def _split(count: Decimal) -> tuple[int, Decimal]:
    whole = int(count)
    return whole, EXACT.subtract(count, whole)


def _whole_microseconds(nanoseconds: Decimal) -> int:
    return _rounded(EXACT.divide(nanoseconds, NANOSECONDS_A_MICROSECOND)) * NANOSECONDS_A_MICROSECOND


def _rounded(amount: Decimal) -> int:
    return int(amount.to_integral_value(ROUND_HALF_UP))


# ------------------------------------------------------------------------------------------------ writing


def write_float(value: float) -> str:
    """The shortest text that reads back as this double."""
    return repr(value)


def write_float32(value: float) -> str:
    """The shortest text that reads back as this float."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if value != value or struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return repr(float(text))
    return repr(value)


def write_decimal(value: Decimal, scale: int) -> str:
    return f"{value:.{scale}f}"


def write_clock(nanoseconds: int) -> str:
    """A time of day or a span in hours, minutes and seconds, without the zeros at its end."""
    seconds, fraction = divmod(nanoseconds, NANOSECONDS_A_SECOND)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def write_timestamp(nanoseconds: int) -> str:
    """A timestamp from the nanoseconds since 1970."""
    days, rest = divmod(nanoseconds, NANOSECONDS_A_DAY)
    return f"{(_EPOCH + datetime.timedelta(days=days)).date().isoformat()} {write_clock(rest)}"


def write_interval(value: Interval) -> str:
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = [
        f"{amount} {unit}{'' if abs(amount) == 1 else 's'}"
        for amount, unit in ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
        if amount
    ]
    if value.nanoseconds or not parts:
        # DuckDB keeps microseconds and shows no more.
        clock = write_clock(abs(value.nanoseconds) // 1000 * 1000)
        parts.append(f"-{clock}" if value.nanoseconds < 0 else clock)
    return " ".join(parts)


_QUOTED_IN_LISTS: Final = frozenset("'\"\\,:()[]{}=")


def quoted_element(text: str) -> str:
    """The text of an element as it stands in the text of a list: quoted where it could be read as something else."""
    plain = text and text.strip() == text and text.lower() != "null" and not _QUOTED_IN_LISTS.intersection(text)
    if plain:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """A text between quotes, in the text of a list or struct."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_ESCAPED: Final = frozenset(b"\"'\\")
_BLOB_PARTS: Final = re.compile(r"\\x([0-9A-Fa-f]{2})|([^\\])", re.ASCII | re.DOTALL)


def write_binary(value: bytes) -> str:
    """Printable ASCII as it is, every other byte (quotes and the backslash as well) as `\\xAB`."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in _ESCAPED else f"\\x{byte:02X}" for byte in value)


def read_binary(text: str) -> bytes:
    """The bytes of ASCII characters, and those that `\\xAB` spells."""
    if not text.isascii():
        raise ValueError(r"a blob: bytes beyond ASCII are written \xAB; encode() gives the bytes of a text")
    plain = _BLOB_PARTS.sub(lambda part: chr(int(part[1], 16)) if part[1] else part[2], text)
    if _BLOB_PARTS.sub("", text):
        raise ValueError(r"a blob: behind a backslash stand x and two hexadecimal digits")
    return plain.encode("latin-1")


# -------------------------------------------------------------------------------------------------- lists

_LIST_PART: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[][(){},]|[^]['"(){},]+""", re.DOTALL)
_BEHIND_BACKSLASH: Final = re.compile(r"\\(.)", re.DOTALL)
_CLOSED_BY: Final = {"[": "]", "(": ")", "{": "}"}


def read_list(text: str) -> list[str | None]:
    """The elements of a list as a cast to VARCHAR writes it; quotes around parts of an element fall away.

    Lists, structs and rows inside stay as they are written. ValueError for a text that is no list.
    """
    body = text.strip()
    if len(body) < 2 or body[0] != "[" or body[-1] != "]":
        raise ValueError("a list stands in brackets")
    elements: list[str | None] = []
    parts: list[str] = []
    open_ends: list[str] = []
    at = 1
    while at < len(body) - 1:
        match = _LIST_PART.match(body, at, len(body) - 1)
        if match is None:
            raise ValueError("a quote is not closed")
        part, at = match[0], match.end()
        if part == "," and not open_ends:
            elements.append(_element(parts))
            parts = []
            continue
        _open_or_close(part, open_ends)
        parts.append(part)
    if open_ends:
        raise ValueError(f"{open_ends[-1]!r} is missing")
    return [*elements, _element(parts)] if elements or "".join(parts).strip() else elements


def _open_or_close(part: str, open_ends: list[str]) -> None:
    if part in _CLOSED_BY:
        open_ends.append(_CLOSED_BY[part])
    elif len(part) == 1 and part in "])}" and (not open_ends or open_ends.pop() != part):
        raise ValueError(f"{part!r} closes nothing")


def _element(parts: list[str]) -> str | None:
    written = "".join(parts).strip()
    if written.upper() == "NULL":
        return None
    if written[:1] in _CLOSED_BY or not any(part[0] in "'\"" for part in parts):
        return written
    plain = [_BEHIND_BACKSLASH.sub(r"\1", part[1:-1]) if part[0] in "'\"" else part.strip() for part in parts]
    return "".join(plain)
