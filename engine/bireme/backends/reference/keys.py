"""Order and equality of values as numbers: what sorting, grouping, joining and comparing share.

`order_codes` gives whole numbers that are ordered and equal exactly as the values are: NaN equal to itself and the
greatest, both zeros equal, texts by their bytes, intervals with months of 30 days. NULLs have code 0 and are told apart
by `vectors.nulls_of`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.vectors import Numbers, floats, integers, intervals, nulls_of
from bireme.data.record import plain
from bireme.errors import Unsupported
from bireme.plan.functions.texts import DAYS_A_MONTH, NANOSECONDS_A_DAY

Rows = npt.NDArray[np.int64]


def order_codes(arrays: Sequence[pa.Array]) -> list[Numbers]:
    """Codes of several columns of one type, comparable among all of them."""
    arrays = [plain(array) for array in arrays]
    kind = next((array.type for array in arrays if not pa.types.is_null(array.type)), pa.null())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text_codes(arrays)
    if pa.types.is_floating(kind):
        return [float_codes(array) if not pa.types.is_null(array.type) else integers(array) for array in arrays]
    if kind == pa.month_day_nano_interval():
        return [_interval_codes(array) for array in arrays]
    if pa.types.is_nested(kind):
        raise Unsupported(f"values of {kind} cannot be compared, sorted or grouped; use one of their elements")
    return [integers(array) for array in arrays]


def order_code(array: pa.Array) -> Numbers:
    """Codes of one column."""
    return order_codes([array])[0]


def float_codes(array: pa.Array) -> Numbers:
    """The bits of doubles, negative ones turned, which are ordered as the doubles are."""
    values = floats(array)
    values[values == 0.0] = 0.0
    values[np.isnan(values)] = np.nan
    bits = np.abs(values).view(np.int64)
    return np.where(values < 0, -bits, bits)


def _interval_codes(array: pa.Array) -> Numbers:
    if pa.types.is_null(array.type):
        return integers(array)
    spans = intervals(array)
    return np.array([0 if span is None else interval_nanoseconds(*span) for span in spans], object)


def interval_nanoseconds(months: int, days: int, nanoseconds: int) -> int:
    """How long an interval is, a month being 30 days and a day 24 hours."""
    return (months * DAYS_A_MONTH + days) * NANOSECONDS_A_DAY + nanoseconds


def _text_codes(arrays: Sequence[pa.Array]) -> list[Numbers]:
    """The rank of each text among all different texts."""
    together = pa.concat_arrays([array.cast(pa.binary()) for array in arrays])
    encoded = together.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary) + 1, np.int64)
    ranks[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    ranks[-1] = 0
    codes: Rows = np.asarray(encoded.indices.cast(pa.int64()).fill_null(len(encoded.dictionary)))
    bounds = np.cumsum([len(array) for array in arrays])[:-1]
    return list(np.split(ranks[codes], bounds))


def group_rows(columns: Sequence[pa.Array], rows: int) -> tuple[Rows, Rows]:
    """The group of each row, numbered by first appearance, and the first row of each group. NULLs are equal."""
    groups = np.zeros(rows, np.int64)
    for column in columns:
        codes, missing = order_code(column), nulls_of(plain(column))
        _, dense = np.unique(codes, return_inverse=True)
        dense = np.where(missing, 0, dense.reshape(-1) + 1)
        _, groups = np.unique(groups * (int(dense.max(initial=0)) + 1) + dense, return_inverse=True)
        groups = groups.reshape(-1)
    if rows == 0:
        return groups, np.empty(0, np.int64)
    _, first = np.unique(groups, return_index=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[groups], first[order]


def sort_rows(columns: Sequence[pa.Array], descending: Sequence[bool], nulls_first: Sequence[bool], rows: int) -> Rows:
    """The positions of rows in order; rows that are equal in all columns keep their order."""
    keys: list[npt.NDArray[np.int64]] = []
    for column, down, first in zip(columns, descending, nulls_first, strict=True):
        _, dense = np.unique(order_code(column), return_inverse=True)
        dense = dense.reshape(-1).astype(np.int64)
        missing = nulls_of(plain(column))
        keys.append(missing.astype(np.int64) * (-1 if first else 1))
        keys.append(np.where(missing, 0, -dense if down else dense))
    if not keys:
        return np.arange(rows)
    return np.lexsort(keys[::-1])
