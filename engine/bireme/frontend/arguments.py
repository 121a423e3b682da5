"""Checks of plain arguments of the DataFrame API: names, whole numbers, flags. Errors come at the call that is wrong.

What expressions accept is in `expression_tree` and `resolve`, what names mean in a frame in `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bireme.errors import ArgumentFault

# No table has more rows; larger limits mean the same.
_ROWS_MAX: Final = (1 << 63) - 1


def column_name(value: Any, call: str) -> str:
    """A name that a column is given, or is found by."""
    if not isinstance(value, str):
        raise ArgumentFault(f"{call} takes column names as texts, not {value!r}")
    return value


def column_names(values: Any, call: str) -> list[str]:
    """One name, or several."""
    if isinstance(values, str):
        return [values]
    return [column_name(value, call) for value in elements(values, call, "column names")]


def elements(values: Any, call: str, what: str) -> list[Any]:
    """The elements of an argument that must have some."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise ArgumentFault(f"{call} takes {what}, not {type(values).__name__}")
    return list(values)


def row_count(value: Any, call: str) -> int:
    """A number of rows, at least 0."""
    # Anything that says it is a whole number will do (numpy's do), but a flag is a mistake.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentFault(f"{call} takes whole numbers of rows, not {value!r}")
    count = value.__index__()
    if count < 0:
        raise ArgumentFault(f"{call} takes an offset and a length of at least 0; sort descending to count from the end")
    return min(int(count), _ROWS_MAX)


def one_each(value: Any, count: int, name: str) -> list[bool]:
    """A flag for each of `count` sort keys, from one for all or one for each."""
    flags = [value] * count if isinstance(value, bool) else elements(value, name, "True or False, or one for each key")
    if not all(isinstance(flag, bool) for flag in flags):
        raise ArgumentFault(f"{name} takes True or False, or one for each key, not {value!r}")
    if len(flags) != count:
        raise ArgumentFault(f"{name} has {len(flags)} values for {count} sort keys")
    return flags
