"""THE hash of the engine: what it is, for every backend, and its plain numpy form.

Partitions, join tables and group states of different backends meet on it, so every backend computes exactly this. Which
partition a hash belongs to is `data.hash_range.partition_of`. All arithmetic is on unsigned 64-bit words and wraps.

    mix(x)      x ^= x >> 33; x *= 0xff51afd7ed558ccd; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53; x ^= x >> 33
                (the finalizer of MurmurHash3)
    word(x)     mix(x ^ 0x9e3779b97f4a7c15)

The hash of one value, by the kind of its column:

    NULL of any type                 0x6a09e667f3bcc908
    boolean                          word(0 or 1)
    integers, date, time, timestamp, duration, decimals of up to 18 digits
                                     word(the value, sign-extended to 64 bits; zero-extended if unsigned)
    wider decimals                   as above where the 128-bit value is that of its lower 64 bits sign-extended;
                                     else mix(word(lower 64 bits) ^ upper 64 bits)
    interval                         as a wide decimal: the 128-bit count of nanoseconds, a month being 30 days
                                     and a day 24 hours
    float, double                    word(the bits of the double), -0.0 taken as 0.0, any NaN as 0x7ff8000000000000
    varchar, blob                    XXH64 of the bytes with seed 0; a dictionary-encoded value as what it stands for

So a number hashes alike at every width of its family, and equal keys (also NaN with NaN, and both zeros) hash alike.
The hash of a row is that of its first column, or 0 without columns; each further column's hash v is added in order by

    h = (rotate_left(h, 23) + v) * 0x9e3779b97f4a7c15

Nested types have no hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.errors import Unsupported

Words = npt.NDArray[np.uint64]

NULL_HASH: Final = np.uint64(0x6A09E667F3BCC908)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_NAN_BITS: Final = np.uint64(0x7FF8000000000000)
_SHIFT_33: Final = np.uint64(33)

_XXH_1: Final = np.uint64(0x9E3779B185EBCA87)
_XXH_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_XXH_3: Final = np.uint64(0x165667B19E3779F9)
_XXH_4: Final = np.uint64(0x85EBCA77C2B2AE63)
_XXH_5: Final = np.uint64(0x27D4EB2F165667C5)
_STRIPE_BYTES: Final = 32
# Strings of one length are hashed together, as a matrix of at most about this many bytes.
_MATRIX_BYTES_MAX: Final = 1 << 21

_NANOSECONDS_A_DAY: Final = 86_400_000_000_000
_DAYS_A_MONTH: Final = 30


def hash_rows(columns: Sequence[pa.Array], rows: int) -> Words:
    """The hash of each of `rows` rows over `columns`, in order. Raises Unsupported for nested columns."""
    if not columns:
        return np.zeros(rows, np.uint64)
    combined = hash_array(columns[0])
    for column in columns[1:]:
        combined = (_rotate(combined, 23) + hash_array(column)) * GOLDEN
    return combined


def hash_array(array: pa.Array) -> Words:
    """The hash of each value of one column."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), NULL_HASH)
    if pa.types.is_dictionary(kind):
        return _hash_dictionary(array)
    hashes = _hash_values(array)
    if array.null_count:
        hashes[np.asarray(array.is_null())] = NULL_HASH
    return hashes


def _hash_dictionary(array: pa.Array) -> Words:
    values = np.append(hash_array(array.dictionary), NULL_HASH)
    indices: npt.NDArray[np.int64] = np.asarray(array.indices.cast(pa.int64()).fill_null(len(array.dictionary)))
    return values[indices]


def _hash_values(array: pa.Array) -> Words:
    """Hashes of the values, arbitrary where the value is NULL."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return _word(np.asarray(array.fill_null(False)).astype(np.uint64))
    if pa.types.is_floating(kind):
        return _word(_float_bits(array))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_strings(array)
    if pa.types.is_decimal128(kind):
        halves = _fixed(array, np.dtype("<u8"), 2)
        return _hash_wide(halves[0::2].copy(), halves[1::2].copy())
    if kind == pa.month_day_nano_interval():
        return _hash_intervals(array)
    if pa.types.is_nested(kind):
        raise Unsupported(f"{kind} cannot be a key of a join, a group or a partition; use one of its elements")
    sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
    return _word(_fixed(array, np.dtype(f"<{sign}{kind.bit_width // 8}")).astype(np.int64).view(np.uint64))


def _fixed(array: pa.Array, dtype: np.dtype[Any], per_value: int = 1) -> npt.NDArray[Any]:
    """The values of a fixed-width array as they lie in its buffer, `per_value` elements each."""
    if len(array) == 0:
        return np.empty(0, dtype)
    everything: npt.NDArray[Any] = np.frombuffer(array.buffers()[1], dtype)
    return everything[array.offset * per_value : (array.offset + len(array)) * per_value]


def _float_bits(array: pa.Array) -> Words:
    values = _fixed(array, np.dtype(f"<f{array.type.bit_width // 8}")).astype(np.float64)
    values[values == 0.0] = 0.0
    bits = values.view(np.uint64)
    bits[np.isnan(values)] = _NAN_BITS
    return bits


def _mix(words: Words) -> Words:
    words = words ^ (words >> _SHIFT_33)
    words *= _MIX_1
    words ^= words >> _SHIFT_33
    words *= _MIX_2
    words ^= words >> _SHIFT_33
    return words


def _word(words: Words) -> Words:
    return _mix(words ^ GOLDEN)


def _hash_wide(lower: Words, upper: Words) -> Words:
    narrow = (lower.view(np.int64) >> 63).view(np.uint64) == upper
    hashes = _word(lower)
    return np.where(narrow, hashes, _mix(hashes ^ upper))


def _hash_intervals(array: pa.Array) -> Words:
    """Counts nanoseconds as python integers, which are exact at any size."""
    layout = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    spans = _fixed(array, layout)
    days = spans["months"].astype(object) * _DAYS_A_MONTH + spans["days"].astype(object)
    total = days * _NANOSECONDS_A_DAY + spans["nanoseconds"].astype(object)
    mask = (1 << 64) - 1
    lower = np.array([count & mask for count in total], np.uint64)
    upper = np.array([(count >> 64) & mask for count in total], np.uint64)
    return _hash_wide(lower, upper)


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


# ------------------------------------------------------------------------------------------------ XXH64


def _hash_strings(array: pa.Array) -> Words:
    """XXH64 of each value, all values of one length at once."""
    hashes = np.empty(len(array), np.uint64)
    if len(array) == 0:
        return hashes
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, "<i4")[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        length = int(lengths[group[0]])
        step = max(1, _MATRIX_BYTES_MAX // max(1, length))
        for first in range(0, len(group), step):
            rows = group[first : first + step]
            matrix = data[offsets[rows][:, None] + np.arange(length)]
            hashes[rows] = xxh64(matrix)
    return hashes


def xxh64(matrix: npt.NDArray[np.uint8]) -> Words:
    """XXH64 with seed 0 of each row of a matrix of bytes."""
    count, length = matrix.shape
    aligned = length // 8 * 8
    words = np.ascontiguousarray(matrix[:, :aligned]).view("<u8").reshape(count, aligned // 8)
    stripes = length // _STRIPE_BYTES
    hashes = _xxh_stripes(words, stripes) if stripes else np.full(count, _XXH_5)
    hashes = hashes + np.uint64(length)
    for column in range(stripes * 4, aligned // 8):
        hashes ^= _xxh_round(np.zeros(count, np.uint64), words[:, column])
        hashes = _rotate(hashes, 27) * _XXH_1 + _XXH_4
    if length - aligned >= 4:
        quad = np.ascontiguousarray(matrix[:, aligned : aligned + 4]).view("<u4").reshape(count).astype(np.uint64)
        hashes ^= quad * _XXH_1
        hashes = _rotate(hashes, 23) * _XXH_2 + _XXH_3
        aligned += 4
    for column in range(aligned, length):
        hashes ^= matrix[:, column].astype(np.uint64) * _XXH_5
        hashes = _rotate(hashes, 11) * _XXH_1
    return _xxh_avalanche(hashes)


def _xxh_stripes(words: Words, stripes: int) -> Words:
    count = len(words)
    zero = np.zeros(count, np.uint64)
    lanes = [zero + _XXH_1 + _XXH_2, zero + _XXH_2, zero.copy(), zero - _XXH_1]
    for stripe in range(stripes):
        lanes = [_xxh_round(lane, words[:, stripe * 4 + index]) for index, lane in enumerate(lanes)]
    hashes = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ _xxh_round(zero, lane)) * _XXH_1 + _XXH_4
    return hashes


def _xxh_round(lane: Words, word: Words) -> Words:
    return _rotate(lane + word * _XXH_2, 31) * _XXH_1


def _xxh_avalanche(hashes: Words) -> Words:
    hashes = (hashes ^ (hashes >> _SHIFT_33)) * _XXH_2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _XXH_3
    return hashes ^ (hashes >> np.uint64(32))
