"""Tables that are numbers alone: their names say what is in them, so that a catalog needs no more to find one.

`range(0, 10, 2)` and `generate_series(1, 5, 1)` are such names, canonical with all three numbers.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from bireme.errors import OutOfRoom

FUNCTIONS: Final = ("range", "generate_series")

_NAME: Final = re.compile(r"(range|generate_series)\((-?\d+), (-?\d+), (-?\d+)\)")
_INT64_MAX: Final = (1 << 63) - 1


class Series(NamedTuple):
    """The name of the one column, and its numbers."""

    column: str
    numbers: range


def series_name(function: str, start: int, stop: int, step: int) -> str:
    """The name of the table that the function gives; `generate_series` holds `stop` itself."""
    return f"{function}({start}, {stop}, {step})"


def series_named(name: str) -> Series | None:
    """What a name stands for; None where it is no such name. A step of zero gives nothing."""
    matched = _NAME.fullmatch(name)
    if matched is None:
        return None
    function, start, stop, step = matched[1], int(matched[2]), int(matched[3]), int(matched[4])
    if step == 0:
        return Series(function, range(0))
    end = stop + (1 if step > 0 else -1) if function == "generate_series" else stop
    numbers = range(start, end, step)
    if max(abs(start), abs(stop)) > _INT64_MAX:
        raise OutOfRoom(f"{name} leaves the range of bigint")
    return Series(function, numbers)
