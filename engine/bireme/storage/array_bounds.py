"""Bounds and statistics of columns that are in memory, found by looking at them.

Rule: only where it is cheap: types stored as one integer or float a value, about a nanosecond each, and strings through
their dictionary. Other columns have no bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from bireme.data.key_range import EMPTY, INT64_MAX, KeyRange
from bireme.data.types import BOOL, STRING, DataType, Kind
from bireme.plan.source import ColumnStatistics
from bireme.storage.physical_value import count_decoder
from bireme.storage.prune import Bounds

_STRING_ROWS_MAX: Final = 4096
OVERLAPS_SHARE_MAX: Final = 0.1


def array_bounds(array: pa.Array, kind: DataType) -> Bounds:
    """The bounds of the values of an array in engine layout."""
    rows, nulls = len(array), array.null_count
    if nulls == rows:
        return Bounds(rows, nulls=nulls)
    if kind is STRING:
        values = array.dictionary if pa.types.is_dictionary(array.type) else array
        if len(values) > _STRING_ROWS_MAX:
            return Bounds(rows, nulls=nulls)
        low, high = _least_and_greatest(values)
        return Bounds(rows, low, high, nulls)
    if kind.is_float:
        low, _ = _least_and_greatest(array)
        return Bounds(rows, None if low != low else low, None, nulls)
    if kind is BOOL:
        low, high = _least_and_greatest(array)
        return Bounds(rows, low, high, nulls)
    decode = count_decoder(kind)
    if decode is None or pa.types.is_decimal128(array.type):
        return Bounds(rows, nulls=nulls)
    low, high = _least_and_greatest(_as_counts(array))
    return Bounds(rows, decode(low), decode(high), nulls)


def array_range(array: pa.Array, kind: DataType) -> KeyRange | None:
    """The range of an array of integers, dates or short decimals, as the integers it stores; None for other types."""
    if not (kind.is_integer or kind.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL)):
        return None
    if array.null_count == len(array):
        return EMPTY
    if pa.types.is_decimal128(array.type):
        return None
    low, high = _least_and_greatest(_as_counts(array))
    return KeyRange(low, high) if high <= INT64_MAX else None


def _least_and_greatest(array: pa.Array) -> tuple[Any, Any]:
    import pyarrow.compute as pc  # on its first use: loading it takes longer than a small query

    found = pc.min_max(array)
    return found["min"].as_py(), found["max"].as_py()


def _as_counts(array: pa.Array) -> pa.Array:
    """The integers that an array stores."""
    if pa.types.is_integer(array.type):
        return array
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def column_statistics(found: Sequence[Bounds], arrays: Sequence[pa.Array], kind: DataType) -> ColumnStatistics:
    """The statistics of a column of `arrays` with these bounds."""
    rows = sum(bounds.rows for bounds in found)
    # Batches of NULLs alone have no bounds and need none.
    valued = [bounds for bounds in found if bounds.nulls != bounds.rows]
    lows, highs = [bounds.low for bounds in valued], [bounds.high for bounds in valued]
    return ColumnStatistics(
        minimum=min(lows) if lows and None not in lows else None,  # type: ignore[type-var]
        maximum=max(highs) if highs and None not in highs else None,  # type: ignore[type-var]
        null_count=sum(bounds.nulls or 0 for bounds in found),
        mean_bytes=_mean_bytes(arrays, kind, rows),
        clustered=None not in lows and None not in highs and is_clustered(list(zip(lows, highs, strict=True))),
    )


def _mean_bytes(arrays: Sequence[pa.Array], kind: DataType, rows: int) -> float | None:
    if rows == 0:
        return None
    if kind.kind not in (Kind.STRING, Kind.BINARY) and not kind.is_nested:
        return float(kind.width_bytes)
    return sum(_value_bytes(array) for array in arrays) / rows


def _value_bytes(array: pa.Array) -> float:
    if pa.types.is_dictionary(array.type):
        return float(len(array) * array.dictionary.nbytes / max(1, len(array.dictionary)))
    return float(array.nbytes)


def is_clustered(ranges: list[tuple[Any, Any]]) -> bool:
    """Whether ranges of values hardly overlap. Ranges with the same start overlap; touching at one value is none.

    In a table in random order every pair of neighbouring ranges overlaps; in a sorted one at most a few do.
    """
    if len(ranges) < 2:
        return False
    ordered = sorted(ranges)
    overlaps = sum(high > next_low or low == next_low for (low, high), (next_low, _) in pairwise(ordered))
    return bool(overlaps <= OVERLAPS_SHARE_MAX * (len(ordered) - 1))
