"""Compares answers of millions of rows as multisets.

Rows are brought into one order by hashes of their exact columns, then by their floats; the values at equal positions
decide. A sort of the values themselves takes minutes where they are strings. Two unequal rows whose hashes collide can
make equal answers look unequal (at 10 million rows with a chance of about 1 in 300,000), never unequal ones equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes: TypeAlias = npt.NDArray[np.uint64]
Pair: TypeAlias = tuple[pa.ChunkedArray, pa.ChunkedArray]

FLOAT_TOLERANCE: Final = 1e-6
# The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def difference_of_many(ours: pa.Table, theirs: pa.Table, ordered_by: Sequence[int]) -> str | None:
    """What differs between two answers with the same numbers of rows and columns; None where they are equal."""
    pairs = [_comparable(*pair) for pair in zip(ours.columns, theirs.columns, strict=True)]
    for index in ordered_by:
        if (position := _first_unequal(*pairs[index])) is not None:
            return f"row {position + 1} has {pairs[index][0][position]} instead of {pairs[index][1][position]}"
    exact = [pair for pair in pairs if not pa.types.is_floating(pair[0].type)]
    floats = [pair for pair in pairs if pa.types.is_floating(pair[0].type)]
    hashes = _row_hashes(exact, ours.num_rows)
    orders = [_order(hashes[side], [pair[side] for pair in floats]) for side in (0, 1)]
    unequal = np.flatnonzero(hashes[0][orders[0]] != hashes[1][orders[1]])
    if len(unequal):
        return _stray(ours, theirs, hashes, orders, int(unequal[0]))
    for one, other in [*exact, *floats]:
        position = _first_unequal(one.take(pa.array(orders[0])), other.take(pa.array(orders[1])))
        if position is not None:
            row, expected = _row(ours, orders[0][position]), _row(theirs, orders[1][position])
            return f"the row {row} stands where {expected} was expected"
    return None


def _stray(
    ours: pa.Table, theirs: pa.Table, hashes: tuple[Hashes, Hashes], orders: list[npt.NDArray[np.int64]], position: int
) -> str:
    """Names a row that one answer has more often than the other: of two heads of sorted runs the smaller one."""
    row, expected = orders[0][position], orders[1][position]
    if hashes[0][row] < hashes[1][expected]:
        return f"the row {_row(ours, row)} was not expected, or not so often"
    return f"the row {_row(theirs, expected)} is missing, or not there as often as expected"


def _row(table: pa.Table, position: np.int64) -> tuple[object, ...]:
    # Names may occur twice, so not by a dictionary.
    return tuple(column[int(position)].as_py() for column in table.columns)


def _order(hashes: Hashes, floats: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """Positions of the rows by hash, then by floats; nulls as if they were NaN."""
    order = np.argsort(hashes)
    if not floats or np.all(np.diff(hashes[order])):
        return order
    return np.lexsort([*[column.to_numpy(zero_copy_only=False) for column in reversed(floats)], hashes])


def _row_hashes(pairs: Sequence[Pair], rows: int) -> tuple[Hashes, Hashes]:
    """A hash for each row of either side over all columns of the pairs."""
    hashes = np.zeros(2 * rows, dtype=np.uint64)
    for one, other in pairs:
        hashes = _mixed(hashes * _MIX[0] + _codes(pa.chunked_array([*one.chunks, *other.chunks], one.type)))
    return hashes[:rows], hashes[rows:]


def _codes(column: pa.ChunkedArray) -> Hashes:
    """A number for each value, equal for equal values and for no others; nulls have one too."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.large_string())])
    if not (pa.types.is_integer(column.type) or pa.types.is_dictionary(column.type)):
        column = column.dictionary_encode(null_encoding="encode")
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.indices for chunk in column.chunks], column.type.index_type)
    filled = pc.fill_null(column, 0).to_numpy().astype(np.uint64)
    return np.where(pc.is_null(column).to_numpy(), _GAMMA, filled) if column.null_count else filled


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64."""
    values = (values + _GAMMA).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))


def _comparable(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Pair:
    """Two columns in one type: doubles where either is a float, strings without views and codes."""
    kinds = one.type, other.type
    if any(pa.types.is_floating(kind) for kind in kinds):
        return one.cast(pa.float64()), other.cast(pa.float64())
    if any(pa.types.is_decimal(kind) for kind in kinds):
        scale = max(kind.scale if pa.types.is_decimal(kind) else 0 for kind in kinds)
        return one.cast(pa.decimal256(60, scale)), other.cast(pa.decimal256(60, scale))
    if pa.types.is_dictionary(one.type) or not one.type.equals(other.type):
        target = pa.large_string() if _is_text(one.type) else _common_type(*kinds)
        return one.cast(target), other.cast(target)
    return one, other


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds what either holds."""
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return pa.decimal256(40, 0)
    return other if pa.types.is_null(one) else one


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def _first_unequal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int | None:
    """The first position at which two columns of one type differ."""
    nulls, other_nulls = pc.is_null(one), pc.is_null(other)
    if pa.types.is_floating(one.type):
        left, right = (column.to_numpy(zero_copy_only=False) for column in (one, other))
        same = pa.chunked_array([np.isclose(left, right, rtol=FLOAT_TOLERANCE, atol=1e-9, equal_nan=True)])
    elif pa.types.is_nested(one.type):
        same = pa.chunked_array(
            [[value == expected for value, expected in zip(one.to_pylist(), other.to_pylist(), strict=True)]]
        )
    else:
        same = pc.fill_null(pc.equal(one, other), True)
    wrong = pc.index(pc.and_(same, pc.equal(nulls, other_nulls)), False).as_py()
    return None if wrong < 0 else wrong
