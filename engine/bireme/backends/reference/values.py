"""Columns as lists of python values in the form of `expr.Literal`, and back: for what has no better way.

NULL is None.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bireme.backends.reference.vectors import from_intervals, integers, intervals, nulls_of
from bireme.data.record import plain
from bireme.data.types import DataType, Kind, to_arrow
from bireme.errors import ConversionFault


def to_values(array: pa.Array, kind: DataType) -> list[Any]:
    """The values of a column of type `kind`. Raises ConversionFault for dates that python cannot express."""
    if kind.kind is Kind.INTERVAL and not pa.types.is_null(array.type):
        return list(intervals(array))
    if kind.unit == "ns" and not pa.types.is_null(array.type):
        counts = integers(array).tolist()
        return [None if gone else count for gone, count in zip(nulls_of(array), counts, strict=True)]
    try:
        values: list[Any] = plain(array).to_pylist()
    except (ValueError, OverflowError):
        raise ConversionFault(f"a {kind} outside the years 1 to 9999 cannot be converted") from None
    return values


def from_values(values: list[Any], kind: DataType) -> pa.Array:
    """A column of type `kind`."""
    if kind.kind is Kind.INTERVAL:
        return from_intervals(values)
    return pa.array(values, to_arrow(kind))


def repeated(value: Any, kind: DataType, rows: int) -> pa.Array:
    """A column of one value."""
    if value is None:
        return pa.nulls(rows, to_arrow(kind))
    one = from_values([value], kind)
    return one.take(pa.array([0] * rows, pa.int64())) if kind.kind is Kind.INTERVAL else pa.repeat(one[0], rows)
