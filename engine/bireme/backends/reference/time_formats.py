"""What strftime writes: the specifiers that DuckDB knows, in English, whatever the locale."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

from bireme.errors import DomainFault

Moment = datetime.datetime

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _hour_12(moment: Moment) -> int:
    return moment.hour % 12 or 12


def _week_from(first: int) -> Callable[[Moment], str]:
    """The week of the year, weeks beginning on a weekday (0 for Monday); days before the first one are in week 0."""
    return lambda moment: f"{(moment.timetuple().tm_yday + 6 - (moment.weekday() - first) % 7) // 7:02}"


_WRITERS: Final[dict[str, Callable[[Moment], str]]] = {
    "%": lambda moment: "%",
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "-y": lambda moment: f"{moment.year % 100}",
    "m": lambda moment: f"{moment.month:02}",
    "-m": lambda moment: f"{moment.month}",
    "d": lambda moment: f"{moment.day:02}",
    "-d": lambda moment: f"{moment.day}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "-j": lambda moment: f"{moment.timetuple().tm_yday}",
    "H": lambda moment: f"{moment.hour:02}",
    "-H": lambda moment: f"{moment.hour}",
    "I": lambda moment: f"{_hour_12(moment):02}",
    "-I": lambda moment: f"{_hour_12(moment)}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "M": lambda moment: f"{moment.minute:02}",
    "-M": lambda moment: f"{moment.minute}",
    "S": lambda moment: f"{moment.second:02}",
    "-S": lambda moment: f"{moment.second}",
    "f": lambda moment: f"{moment.microsecond:06}",
    "g": lambda moment: f"{moment.microsecond // 1000:03}",
    "a": lambda moment: DAYS[moment.weekday()][:3],
    "A": lambda moment: DAYS[moment.weekday()],
    "b": lambda moment: MONTHS[moment.month - 1][:3],
    "h": lambda moment: MONTHS[moment.month - 1][:3],
    "B": lambda moment: MONTHS[moment.month - 1],
    "w": lambda moment: f"{moment.isoweekday() % 7}",
    "u": lambda moment: f"{moment.isoweekday()}",
    "U": _week_from(6),
    "W": _week_from(0),
    "G": lambda moment: f"{moment.isocalendar().year:04}",
    "V": lambda moment: f"{moment.isocalendar().week:02}",
    "x": lambda moment: f"{moment.year:04}-{moment.month:02}-{moment.day:02}",
    "X": lambda moment: f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}",
    "T": lambda moment: f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}",
    "c": lambda moment: f"{_WRITERS['x'](moment)} {_WRITERS['X'](moment)}",
    "z": lambda moment: "+00",
    "Z": lambda moment: "",
}


def format_moment(moment: Moment, template: str, nanoseconds: int = 0) -> str:
    """The text of a moment and the nanoseconds behind its microseconds; DomainFault for a specifier not known."""
    parts = []
    position = 0
    while position < len(template):
        character = template[position]
        position += 1
        if character != "%":
            parts.append(character)
            continue
        length = 2 if template[position : position + 1] == "-" else 1
        specifier = template[position : position + length]
        if specifier == "n":
            parts.append(f"{moment.microsecond * 1000 + nanoseconds:09}")
            position += length
            continue
        writer = _WRITERS.get(specifier)
        if writer is None:
            raise DomainFault(f"strftime knows no specifier %{specifier} (in {template!r})")
        parts.append(writer(moment))
        position += length
    return "".join(parts)
