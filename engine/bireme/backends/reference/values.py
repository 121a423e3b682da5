"""Columns as lists of python values in the form of `expr.Literal`, and back: for what has no better way.

NULL is None.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.allowance import ask
from bireme.backends.reference.vectors import (
    INT64_BOUND,
    check_elements,
    from_floats,
    from_integers,
    from_intervals,
    integers,
    intervals,
    nulls_of,
)
from bireme.data import arrays
from bireme.data.record import plain
from bireme.data.types import STRING, DataType, Kind, to_arrow
from bireme.errors import ConversionFault
from bireme.plan.expr import Call

# With the place that it is taken from.
_BYTES_AN_ELEMENT: Final = 24

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def to_values(array: pa.Array, kind: DataType) -> list[Any]:
    """The values of a column of type `kind`. Raises ConversionFault for dates that python cannot express."""
    if kind.kind is Kind.INTERVAL and not pa.types.is_null(array.type):
        return list(intervals(array))
    if kind.kind is Kind.LIST and not pa.types.is_null(array.type):
        return _list_values(array, kind.children[0].type)
    if kind.kind is Kind.STRUCT and not pa.types.is_null(array.type):
        return _struct_values(array, kind)
    if kind.unit == "ns" and not pa.types.is_null(array.type):
        counts = integers(array).tolist()
        return [None if gone else count for gone, count in zip(nulls_of(array), counts, strict=True)]
    try:
        values: list[Any] = plain(array).to_pylist()
    except (ValueError, OverflowError):
        raise ConversionFault(f"a {kind} outside the years 1 to 9999 cannot be converted") from None
    return values


def _list_values(array: pa.Array, element: DataType) -> list[Any]:
    values = to_values(array.values, element)
    offsets = array.offsets.to_pylist()
    spans = zip(nulls_of(array), offsets, offsets[1:], strict=False)
    return [None if gone else values[start:end] for gone, start, end in spans]


def _struct_values(array: pa.Array, kind: DataType) -> list[Any]:
    names = [child.name for child in kind.children]
    columns = [to_values(array.field(place), child.type) for place, child in enumerate(kind.children)]
    rows = zip(nulls_of(array), zip(*columns, strict=True), strict=True)
    return [None if gone else dict(zip(names, values, strict=True)) for gone, values in rows]


def from_values(values: list[Any], kind: DataType) -> pa.Array:
    """A column of type `kind`."""
    if kind.kind is Kind.INTERVAL:
        return from_intervals(values)
    if kind.kind is Kind.LIST:
        return _from_lists(values, kind)
    if kind.kind is Kind.STRUCT:
        return _from_structs(values, kind)
    if kind.kind is Kind.MAP:
        return _from_maps(values, kind)
    return pa.array(values, to_arrow(kind))


def _from_lists(values: list[Any], kind: DataType) -> pa.Array:
    together = from_values([each for value in values if value is not None for each in value], kind.children[0].type)
    lengths = [0 if value is None else len(value) for value in values]
    offsets = pa.array(list(accumulate(lengths, initial=0)), pa.int32())
    missing = pa.array([value is None for value in values], pa.bool_()) if None in values else None
    return pa.ListArray.from_arrays(offsets, together, type=to_arrow(kind), mask=missing)


def _from_structs(values: list[Any], kind: DataType) -> pa.Array:
    values = [dict(value) if isinstance(value, tuple) else value for value in values]
    fields = [
        from_values([None if value is None else value[child.name] for value in values], child.type)
        for child in kind.children
    ]
    missing = pa.array([value is None for value in values], pa.bool_()) if None in values else None
    return pa.StructArray.from_arrays(fields, fields=list(to_arrow(kind)), mask=missing)


def _from_maps(values: list[Any], kind: DataType) -> pa.Array:
    entries = [entry for value in values if value is not None for entry in value]
    key, item = kind.children
    ends = accumulate([0 if value is None else len(value) for value in values], initial=0)
    # A map begins where the one before it ends; one that is NULL has no beginning.
    starts = [None if value is None else end for value, end in zip(values, ends, strict=False)]
    offsets = pa.array([*starts, len(entries)], pa.int32())
    keys, items = from_values([k for k, _ in entries], key.type), from_values([v for _, v in entries], item.type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=to_arrow(kind))


def repeated(value: Any, kind: DataType, rows: int) -> pa.Array:
    """A column of one value."""
    if value is None:
        return pa.nulls(rows, to_arrow(kind))
    if kind.kind is Kind.LIST:
        return _repeated_list(from_values([value], kind), rows)
    # Arrow takes many times as long to repeat a scalar of these.
    if kind.kind is Kind.INTERVAL or kind.is_nested:
        return from_values([value], kind).take(arrays.from_numpy(np.zeros(rows, np.int64)))
    if kind.is_float:
        return from_floats(np.full(rows, value, np.float64), np.zeros(rows, np.bool_), kind)
    if kind.is_integer and value < INT64_BOUND:
        return from_integers(np.full(rows, value, np.int64), np.zeros(rows, np.bool_), kind, str)
    one = text_array(value) if kind is STRING else from_values([value], kind)
    return pa.repeat(one[0], rows)


def _repeated_list(one: pa.Array, rows: int) -> pa.Array:
    """A column of the only list of another, whose elements are taken in one go."""
    size = len(one.values)
    check_elements(rows * size)
    ask(_BYTES_AN_ELEMENT * rows * size, "copies of a list")
    elements = one.values.take(arrays.from_numpy(np.tile(np.arange(size), rows)))
    offsets = np.arange(rows + 1, dtype=np.int64) * size
    return pa.ListArray.from_arrays(arrays.from_numpy(offsets.astype(np.int32)), elements, type=one.type)


def text_array(value: str) -> pa.Array:
    """A column of one text, without what pyarrow loads to make one of Python values (`data.arrays`)."""
    content = value.encode()
    ends = pa.py_buffer(np.array([0, len(content)], np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)])


def by_row(compute: Callable[..., Any], *, strict: bool = True) -> Evaluator:
    """A function of single values; where `strict`, NULL where an argument is."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        columns = [to_values(array, arg.type) for array, arg in zip(args, call.args, strict=True)]
        rows = zip(*columns, strict=True)
        values = [None if strict and None in row else compute(*row) for row in rows]
        return from_values(values, call.type)

    return evaluate
