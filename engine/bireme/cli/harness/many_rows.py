"""Compares answers of millions of rows as multisets.

Rows are brought into one order by hashes of their exact columns, then by their floats; the values at equal positions
decide. A sort of the values themselves takes minutes where they are strings. Two unequal rows whose hashes collide can
make equal answers look unequal (at 10 million rows with a chance of about 1 in 300,000), never unequal ones equal.

Answers of more than 16 million rows are compared in parts, each of the rows whose exact values fall into it, so that
answers that lie in files need not be whole in memory.
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
_PART_ROWS_MAX: Final = 1 << 24
# The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def difference_of_many(ours: pa.Table, theirs: pa.Table, ordered_by: Sequence[int]) -> str | None:
    """What differs between two answers with the same numbers of rows and columns; None where they are equal."""
    kinds = [_common_type(*pair) for pair in zip(ours.schema.types, theirs.schema.types, strict=True)]
    for index in ordered_by:
        one, other = ours.column(index).cast(kinds[index]), theirs.column(index).cast(kinds[index])
        if (position := _first_unequal(one, other)) is not None:
            return f"row {position + 1} has {one[position]} instead of {other[position]}"
    count = -(-ours.num_rows // _PART_ROWS_MAX)
    for part in range(count):
        mine, expected = (_part_of(table, kinds, part, count) for table in (ours, theirs))
        differs = _difference_of_part(mine, expected)
        if differs is not None:
            return differs
    return None


def _part_of(table: pa.Table, kinds: Sequence[pa.DataType], part: int, count: int) -> pa.Table:
    """The rows that belong to one of `count` parts, with columns of the given types."""
    schema = pa.schema([pa.field(f"c{index}", kind) for index, kind in enumerate(kinds)])
    batches = []
    for batch in table.to_batches():
        columns = [column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True)]
        cast = pa.RecordBatch.from_arrays(columns, schema=schema)
        batches.append(cast if count == 1 else cast.filter(pa.array(_parts(columns, batch.num_rows, count) == part)))
    return pa.Table.from_batches(batches, schema)


def _parts(columns: Sequence[pa.Array], rows: int, count: int) -> npt.NDArray[np.uint64]:
    """The part of each row, the same for equal rows: by the values of integers and dates, and the lengths of texts."""
    mixed = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        if _is_text(column.type):
            numbers = pc.binary_length(column).cast(pa.int64())
        elif pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
            numbers = column.view(f"int{column.type.bit_width}").cast(pa.int64())
        elif pa.types.is_decimal(column.type):
            numbers = column.cast(pa.float64()).view(pa.int64())
        else:
            continue
        filled = np.asarray(pc.fill_null(numbers, 0)).astype(np.uint64)
        mixed = _mixed(mixed * _MIX[0] + filled)
    return mixed % np.uint64(count)


def _difference_of_part(ours: pa.Table, theirs: pa.Table) -> str | None:
    pairs = list(zip(ours.columns, theirs.columns, strict=True))
    exact = [pair for pair in pairs if not pa.types.is_floating(pair[0].type)]
    floats = [pair for pair in pairs if pa.types.is_floating(pair[0].type)]
    hashes = _row_hashes(exact, ours.num_rows, theirs.num_rows)
    orders = [_order(hashes[side], [pair[side] for pair in floats]) for side in (0, 1)]
    shared = min(ours.num_rows, theirs.num_rows)
    unequal = np.flatnonzero(hashes[0][orders[0][:shared]] != hashes[1][orders[1][:shared]])
    if len(unequal) or ours.num_rows != theirs.num_rows:
        return _stray(ours, theirs, hashes, orders, int(unequal[0]) if len(unequal) else shared)
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
    heads = [hashes[side][orders[side][position]] if position < len(orders[side]) else None for side in (0, 1)]
    if heads[1] is None or (heads[0] is not None and heads[0] < heads[1]):
        return f"the row {_row(ours, orders[0][position])} was not expected, or not so often"
    return f"the row {_row(theirs, orders[1][position])} is missing, or not there as often as expected"


def _row(table: pa.Table, position: np.int64) -> tuple[object, ...]:
    # Names may occur twice, so not by a dictionary.
    return tuple(column[int(position)].as_py() for column in table.columns)


def _order(hashes: Hashes, floats: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """Positions of the rows by hash, then by floats; nulls as if they were NaN."""
    order = np.argsort(hashes)
    if not floats or np.all(np.diff(hashes[order])):
        return order
    return np.lexsort([*[column.to_numpy(zero_copy_only=False) for column in reversed(floats)], hashes])


def _row_hashes(pairs: Sequence[Pair], rows: int, other_rows: int) -> tuple[Hashes, Hashes]:
    """A hash for each row of either side over all columns of the pairs."""
    hashes = np.zeros(rows + other_rows, dtype=np.uint64)
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


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds what either holds: doubles where one is a float, strings without views and codes."""
    kinds = one, other
    if any(pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    if one.equals(other) and not pa.types.is_dictionary(one):
        return one
    if any(pa.types.is_decimal(kind) for kind in kinds):
        return _decimal_of(*map(_digits, kinds))
    if _is_text(one):
        return pa.large_string()
    if all(map(pa.types.is_integer, kinds)):
        return _decimal_of(*map(_digits, kinds)) if pa.uint64() in kinds else pa.int64()
    return other if pa.types.is_null(one) else one


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Digits before and behind the point that values of a type have at the most."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return (20, 0) if pa.types.is_integer(kind) else (0, 0)


def _decimal_of(one: tuple[int, int], other: tuple[int, int]) -> pa.DataType:
    # Those of 256 bits take many times as long to cast and to compare.
    digits, scale = max(one[0], other[0]), max(one[1], other[1])
    return pa.decimal128(38, scale) if digits + scale <= 38 else pa.decimal256(76, scale)


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
