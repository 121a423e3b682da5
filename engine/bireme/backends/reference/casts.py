"""Casts of columns: whole numbers and dates by their counts, lists and structs by their parts, everything else value by
value as constants are cast.

What a cast does to a value is in `plan.functions.conversion`; the short ways here are equal to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.nested_texts import is_written_here, written
from bireme.backends.reference.structs import field_at
from bireme.backends.reference.values import from_values, to_values
from bireme.backends.reference.vectors import (
    Bools,
    Numbers,
    floats,
    floored,
    from_floats,
    from_integers,
    integers,
    nulls_of,
    range_of,
    rounded_quotient,
    scaled,
)
from bireme.data.record import plain
from bireme.data.types import BOOL, DATE, STRING, DataType, Kind, list_of, to_arrow
from bireme.errors import ConversionFault
from bireme.plan.functions.conversion import convert, field_places

# A column, its type, the type that it is cast to, and whether what does not convert is NULL.
CastColumn = Callable[[pa.Array, DataType, DataType, bool], pa.Array]

# What a text is first read as that is to be a list.
_TEXTS = list_of(STRING)
_TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def cast_array(
    array: pa.Array, source: DataType, target: DataType, safe: bool, cast: CastColumn | None = None
) -> pa.Array:
    """A column as one of type `target`; ConversionFault, or NULL where `safe`, for what does not convert. The parts of
    nested values are cast by `cast`, which does the same.
    """
    cast = cast or cast_array
    array = plain(array)
    if source is target:
        return array
    if source.kind is Kind.NULL:
        return pa.nulls(len(array), to_arrow(target))
    if source.kind is Kind.STRUCT and target.kind is Kind.STRUCT:
        return _fields(array, source, target, safe, cast)
    if source.kind is Kind.LIST and target.kind is Kind.LIST:
        elements = cast(array.flatten(), source.children[0].type, target.children[0].type, safe)
        return list_array(to_arrow(target), elements, lengths_of(array), nulls_of(array))
    if source is STRING and target.kind is Kind.LIST and target is not _TEXTS:
        return cast(_by_value(array, source, _TEXTS, safe), _TEXTS, target, safe)
    if target is STRING and is_written_here(source):
        return written(array, source, lambda part, kind: cast(part, kind, STRING, safe))
    if target is STRING and source.is_integer:
        return array.cast(pa.string())
    counted = _counts(array, source, target)
    if counted is not None:
        return _checked(counted, array, source, target, safe)
    if target.is_float and (_is_exact(source) or source.is_float):
        return _to_float(array, source, target, safe)
    return _by_value(array, source, target, safe)


def _fields(array: pa.Array, source: DataType, target: DataType, safe: bool, cast: CastColumn) -> pa.Array:
    """A struct field by field; one that the source has not is NULL."""
    arrays = []
    for place, child in zip(field_places(source, target), target.children, strict=True):
        if place is None:
            arrays.append(pa.nulls(len(array), to_arrow(child.type)))
        else:
            arrays.append(cast(field_at(array, place), source.children[place].type, child.type, safe))
    mask = pa.array(nulls_of(array)) if array.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=list(to_arrow(target)), mask=mask)


def _is_exact(kind: DataType) -> bool:
    return kind.is_integer or kind.kind is Kind.DECIMAL or kind is BOOL


def _counts(array: pa.Array, source: DataType, target: DataType) -> Numbers | None:
    """The whole numbers of the result, not yet checked for its range; None for casts that are not of whole numbers."""
    if _is_exact(source) and _is_exact(target):
        if target is BOOL:
            return np.where(integers(array) != 0, 1, 0)
        if target.scale >= source.scale:
            return scaled(integers(array), 10 ** (target.scale - source.scale))
        return rounded_quotient(integers(array), 10 ** (source.scale - target.scale))
    if source is DATE and target.kind is Kind.TIMESTAMP:
        return scaled(integers(array), _TICKS_A_DAY[target.unit])
    if source.kind is Kind.TIMESTAMP and target is DATE:
        return floored(integers(array), _TICKS_A_DAY[source.unit])
    if source.kind is Kind.TIMESTAMP and target.kind is Kind.TIMESTAMP:
        finer, coarser = _TICKS_A_DAY[target.unit], _TICKS_A_DAY[source.unit]
        if finer >= coarser:
            return scaled(integers(array), finer // coarser)
        return rounded_quotient(integers(array), coarser // finer)
    if source.kind is Kind.TIME and target.kind is Kind.TIME:
        finer, coarser = _TICKS_A_DAY[target.unit], _TICKS_A_DAY[source.unit]
        return (
            scaled(integers(array), finer // coarser)
            if finer >= coarser
            else floored(integers(array), coarser // finer)
        )
    return None


def _checked(counts: Numbers, array: pa.Array, source: DataType, target: DataType, safe: bool) -> pa.Array:
    missing = nulls_of(array)
    low, high = (0, 1) if target is BOOL else range_of(target)
    outside = np.asarray((counts < low) | (counts > high), np.bool_) & ~missing
    if outside.any() and not safe:
        _fail(array, outside, source, target)
    return from_integers(counts, missing | outside, target, lambda _: "a cast")


def _fail(array: pa.Array, outside: Bools, source: DataType, target: DataType) -> None:
    """Raises the error that casting the first value outside raises."""
    row = int(np.flatnonzero(outside)[0])
    value = to_values(array.slice(row, 1), source)[0]
    convert(value, source, target)
    raise ConversionFault(f"cannot convert {value} from {source} to {target}")


def _to_float(array: pa.Array, source: DataType, target: DataType, safe: bool) -> pa.Array:
    missing = nulls_of(array)
    values = floats(array) if source.is_float else _as_doubles(integers(array), source.scale)
    if target.kind is Kind.FLOAT32:
        with np.errstate(over="ignore"):
            outside = np.isfinite(values) & ~np.isfinite(values.astype(np.float32)) & ~missing
        if outside.any() and not safe:
            _fail(array, outside, source, target)
        missing = missing | outside
    return from_floats(values, missing, target)


def _as_doubles(counts: Numbers, scale: int) -> npt.NDArray[np.float64]:
    """The doubles nearest to decimals, given by their unscaled counts."""
    power = 10**scale
    if scale == 0:
        return counts.astype(np.float64)
    # Python rounds the quotient of two whole numbers once, however many digits they have.
    return np.array([int(count) / power for count in counts.tolist()], np.float64)


def _by_value(array: pa.Array, source: DataType, target: DataType, safe: bool) -> pa.Array:
    """Each different value converted once."""
    known: dict[Any, Any] = {}
    converted = []
    for value in to_values(array, source):
        # Both zeros are equal, and have different texts; lists have no hash.
        key = repr(value) if source.is_float or source.is_nested else value
        if key not in known:
            try:
                known[key] = convert(value, source, target)
            except ConversionFault:
                if not safe:
                    raise
                known[key] = None
        converted.append(known[key])
    return from_values(converted, target)
