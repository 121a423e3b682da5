"""Lists made of numbers, and of the elements of other lists at the same places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.allowance import ask
from bireme.backends.reference.collected import list_array
from bireme.backends.reference.elements import BYTES_AN_ELEMENT, Elements, spread
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Numbers, any_null, bools, check_elements, integers, magnitude, widened
from bireme.data import arrays
from bireme.data.types import to_arrow
from bireme.errors import ValueTooLarge
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_SERIES_MAX: Final = 1 << 24
# Bounds up to this differ by what 64 bits hold.
_NARROW_MAX: Final = 1 << 61


def _series(is_open: bool) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        missing = any_null(args)
        start, stop, step = _bounds([integers(arg) for arg in args])
        lengths = np.where(missing, 0, _lengths(start, stop, step, is_open))
        if (lengths > _SERIES_MAX).any():
            raise ValueTooLarge(f"a list of more than {_SERIES_MAX} numbers; use the table function instead")
        counts = lengths.astype(np.int64)
        total = int(counts.sum())
        check_elements(total)
        ask(BYTES_AN_ELEMENT * total, f"the numbers of {call.function}")
        numbers = spread(start, counts, step).astype(np.int64, copy=False)
        return list_array(to_arrow(call.type), arrays.from_numpy(numbers), counts, missing)

    return evaluate


def _bounds(given: list[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Start, stop and step."""
    rows = len(given[0])
    if len(given) == 1:
        given = [np.zeros(rows, np.int64), given[0]]
    largest = max(map(magnitude, given))
    start, stop, step = (*given, np.ones(rows, np.int64))[:3]
    if largest <= _NARROW_MAX:
        return start, stop, step
    start, stop, step = (widened(each, 1 << 64) for each in (start, stop, step))
    return start, stop, step


def _lengths(start: Numbers, stop: Numbers, step: Numbers, is_open: bool) -> Numbers:
    """How many numbers there are; none where a step of 0 leads nowhere."""
    stride = np.where(step == 0, 1, step)
    counts = -((start - stop) // stride) if is_open else (stop - start) // stride + 1
    lengths: Numbers = np.where(step == 0, 0, np.maximum(counts, 0))
    return lengths


def _zip(call: Call, args: list[pa.Array]) -> pa.Array:
    """NULL is a list without elements; where one list has no further element, NULL takes its place."""
    lists = [Elements(array, arg.type) for array, arg in zip(args[:-1], call.args[:-1], strict=True)]
    lengths = np.stack([each.lengths for each in lists])
    counts = np.where(bools(args[-1]), lengths.min(axis=0), lengths.max(axis=0))
    kind = to_arrow(call.type)
    columns = [_at_places(each, counts, field.type) for each, field in zip(lists, kind.value_type, strict=True)]
    rows = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    return list_array(kind, rows, counts, np.zeros(len(counts), np.bool_))


def _at_places(lists: Elements, counts: Rows, kind: pa.DataType) -> pa.Array:
    """The first so many elements of each list, NULL behind its end."""
    ones = np.ones(len(counts), np.int64)
    places = spread(np.zeros(len(counts), np.int64), counts, ones)
    rows = np.repeat(np.arange(len(counts)), counts)
    elements = np.where(places < lists.lengths[rows], lists.starts[rows] + places, -1)
    values = lists.picked(elements)
    return values if values.type == kind else values.cast(kind)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "range": _series(is_open=True),
    "generate_series": _series(is_open=False),
    "list_zip": _zip,
}
