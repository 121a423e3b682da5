"""Functions of lists on columns, one python list at a time.

Elements are equal and ordered as in `backends.reference.keys`: NaN equals NaN and is the greatest number, and a day is
as long as 24 hours. NULL elements are skipped where values are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.collected import list_array
from bireme.backends.reference.keys import interval_nanoseconds
from bireme.backends.reference.pattern_parts import all_matches, split
from bireme.backends.reference.values import by_row, from_values, to_values
from bireme.data.types import to_arrow
from bireme.errors import OutOfRoom, Overflow
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_SERIES_MAX: Final = 1 << 24
# Room for sums of decimals of 38 digits.
EXACT: Final = Context(prec=80)


def element_key(value: Any) -> Any:
    """What equal elements share; it can be hashed."""
    if isinstance(value, list | dict):
        return tuple(map(element_key, value.values() if isinstance(value, dict) else value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else _compared(value)


def element_order(value: Any) -> tuple[Any, ...]:
    """What elements that are not NULL are sorted by; NULLs inside of them are behind all values."""
    if isinstance(value, list | dict):
        parts = value.values() if isinstance(value, dict) else value
        return tuple([(part is None, () if part is None else element_order(part)) for part in parts])
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else _compared(value)


def _compared(value: Any) -> Any:
    # The only tuples among values are intervals.
    return interval_nanoseconds(*value) if isinstance(value, tuple) else value


def not_null(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


# ------------------------------------------------------------------------------------------ whole columns


def _list_value(call: Call, args: list[pa.Array]) -> pa.Array:
    rows, width = len(args[0]), len(args)
    kind = to_arrow(call.type)
    together = pa.concat_arrays([arg if arg.type == kind.value_type else arg.cast(kind.value_type) for arg in args])
    places = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    none = np.zeros(rows, np.bool_)
    return list_array(kind, together.take(pa.array(places)), np.full(rows, width), none)


def _length(call: Call, args: list[pa.Array]) -> pa.Array:
    return pc.list_value_length(args[0]).cast(pa.int64())


def _flatten(call: Call, args: list[pa.Array]) -> pa.Array:
    return by_row(lambda lists: [value for values in lists if values is not None for value in values])(call, args)


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    columns = [to_values(array, arg.type) for array, arg in zip(args, call.args, strict=True)]
    joined = []
    for row in zip(*columns, strict=True):
        joined.append([value for values in not_null(row) for value in values])
    return from_values(joined, call.type)


def _joined(values: Sequence[Any], separator: str) -> str | None:
    present = not_null(values)
    return None if values and not present else separator.join(present)


# ---------------------------------------------------------------------------------------------- elements


def _extract(values: Sequence[Any], index: int) -> Any:
    at = index - 1 if index > 0 else len(values) + index
    return values[at] if index != 0 and 0 <= at < len(values) else None


def sliced(values: Any, first: int, last: int) -> Any:
    start = first - 1 if first > 0 else max(0, len(values) + first if first else 0)
    end = last if last >= 0 else len(values) + last + 1
    return values[start : max(start, end)]


def _position(values: Sequence[Any], wanted: Any) -> int | None:
    keys = [element_key(value) for value in values]
    return keys.index(element_key(wanted)) + 1 if element_key(wanted) in keys else None


def _positions(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, wanted = (to_values(array, arg.type) for array, arg in zip(args, call.args, strict=True))
    found = [None if values is None else _position(values, value) for values, value in zip(lists, wanted, strict=True)]
    return from_values(found, call.type)


def _contains(values: Sequence[Any], wanted: Any) -> bool:
    return _position(values, wanted) is not None


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list({element_key(value): value for value in reversed(not_null(values))}.values())[::-1]


def _intersection(one: Sequence[Any] | None, other: Sequence[Any] | None) -> list[Any] | None:
    if one is None:
        return None
    keys = set(map(element_key, not_null(other or ())))
    return [value for value in _distinct(one) if element_key(value) in keys]


def _sort(values: Sequence[Any], descending: bool, nulls_first: bool) -> list[Any]:
    ordered = sorted(not_null(values), key=element_order, reverse=descending)
    nulls = [None] * (len(values) - len(ordered))
    return nulls + ordered if nulls_first else ordered + nulls


def _extreme(choose: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda values: choose(not_null(values), key=element_order, default=None)


# ----------------------------------------------------------------------------------------------- numbers


def _sum(call: Call, args: list[pa.Array]) -> pa.Array:
    def total(values: Sequence[Any]) -> Any:
        found = not_null(values)
        if not found:
            return None
        if call.type.is_float:
            return sum(found)
        exact = Decimal(sum(found)) if isinstance(found[0], int) else exact_sum(found)
        if abs(exact) >= 10 ** (call.type.precision - call.type.scale):
            raise Overflow(f"list_sum of {exact} leaves the range of {call.type}; cast to double first")
        return exact

    return by_row(total)(call, args)


def exact_sum(values: Sequence[Decimal]) -> Decimal:
    """The sum of decimals, whose own addition keeps 28 digits."""
    return reduce(EXACT.add, values, Decimal(0))


def _average(values: Sequence[Any]) -> float | None:
    found = not_null(values)
    if not found:
        return None
    # Whole numbers are divided exactly, and rounded once.
    if isinstance(found[0], Decimal):
        return float(exact_sum(found)) / len(found)
    return float(sum(found) / len(found))


def _series(is_open: bool) -> Callable[..., list[int]]:
    def numbers(*bounds: int) -> list[int]:
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if step == 0:
            return []
        end = stop if is_open else stop + (1 if step > 0 else -1)
        if len(range(start, end, step)) > _SERIES_MAX:
            raise OutOfRoom(f"a list of more than {_SERIES_MAX} numbers; use the table function instead")
        return list(range(start, end, step))

    return numbers


# ------------------------------------------------------------------------------------------------- texts


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "list_value": _list_value,
    "list_length": _length,
    "list_distinct": by_row(_distinct),
    "list_unique": by_row(lambda values: len(_distinct(values))),
    "list_reverse": by_row(lambda values: values[::-1]),
    "list_min": by_row(_extreme(min)),
    "list_max": by_row(_extreme(max)),
    "list_first": by_row(lambda values: _extract(values, 1)),
    "list_last": by_row(lambda values: _extract(values, -1)),
    "list_count": by_row(lambda values: len(not_null(values))),
    "list_sum": _sum,
    "list_avg": by_row(_average),
    "list_contains": by_row(_contains),
    "list_position": _positions,
    "list_concat": _concat,
    "list_has_any": by_row(
        lambda one, other: bool(set(map(element_key, not_null(one))) & set(map(element_key, other)))
    ),
    "list_has_all": by_row(lambda one, other: set(map(element_key, not_null(other))) <= set(map(element_key, one))),
    "list_intersect": by_row(_intersection, strict=False),
    "list_extract": by_row(_extract),
    "list_slice": by_row(sliced),
    "array_to_string": by_row(_joined),
    "flatten": _flatten,
    "list_sort": by_row(_sort),
    "range": by_row(_series(is_open=True)),
    "generate_series": by_row(_series(is_open=False)),
    "string_split": by_row(_split),
    "string_split_regex": by_row(split),
    "regexp_extract_all": by_row(lambda text, pattern, group=0: all_matches(text, pattern, group)),
}
