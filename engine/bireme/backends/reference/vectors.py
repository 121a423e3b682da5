"""Arrow columns as numpy arrays and back, without loss.

Integers, decimals (their unscaled count), dates, times and timestamps are all whole numbers here: an int64 array where
every value fits, else an object array of python integers. Slots of NULLs hold zero. `from_integers` is where a value
that leaves its type becomes an Overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.data import arrays
from bireme.data.record import plain
from bireme.data.types import BOOL, DataType, Kind, to_arrow
from bireme.errors import Overflow, TooMuchAtOnce
from bireme.plan.expr import Interval
from bireme.plan.functions.conversion import integer_range

Numbers = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

INT64_BOUND: Final = 1 << 63
# The counts beside it are infinities in DuckDB's layout of dates.
_DATE_BOUND: Final = (1 << 31) - 2
_MONTH_DAY_NANO: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_MASK_64: Final = (1 << 64) - 1
# Of all lists of a column together.
_ELEMENTS_MAX: Final = (1 << 31) - 1


def nulls_of(array: pa.Array) -> Bools:
    """Where the column is NULL."""
    if pa.types.is_null(array.type):
        return np.ones(len(array), np.bool_)
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    return ~arrays.is_valid(array)


def any_null(arrays: list[pa.Array]) -> Bools:
    """Where one of the columns is NULL."""
    found = nulls_of(arrays[0])
    for array in arrays[1:]:
        found = found | nulls_of(array)
    return found


def fixed(array: pa.Array, dtype: Any, per_value: int = 1) -> Numbers:
    """The values as they lie in the buffer of a fixed-width column; slots of NULLs hold anything."""
    if len(array) == 0:
        return np.empty(0, dtype)
    everything: Numbers = np.frombuffer(array.buffers()[1], dtype)
    return everything[array.offset * per_value : (array.offset + len(array)) * per_value]


def integers(array: pa.Array) -> Numbers:
    """The whole numbers of a column of integers, decimals, dates, times, timestamps or truths; where they lie as these
    do, they are those of the column, and cannot be changed."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64)
    if pa.types.is_boolean(kind):
        return arrays.is_true(array).astype(np.int64)
    if pa.types.is_decimal128(kind):
        values = _wide_integers(array)
    elif pa.types.is_unsigned_integer(kind):
        unsigned = fixed(array, f"<u{kind.bit_width // 8}")
        large = kind.bit_width == 64 and bool((unsigned >> np.uint64(63)).any())
        values = unsigned.astype(object if large else np.int64)
    else:
        values = fixed(array, f"<i{kind.bit_width // 8}").astype(np.int64, copy=array.null_count > 0)
    if array.null_count:
        values[nulls_of(array)] = 0
    return values


def _wide_integers(array: pa.Array) -> Numbers:
    halves = fixed(array, "<u8", 2)
    lower, upper = halves[0::2].copy(), halves[1::2].view(np.int64).copy()
    if array.null_count:
        missing = nulls_of(array)
        lower[missing], upper[missing] = 0, 0
    low = lower.view(np.int64)
    if np.array_equal(low >> 63, upper):
        return low
    wide: Numbers = upper.astype(object) * (1 << 64) + lower.astype(object)
    return wide


def floats(array: pa.Array) -> npt.NDArray[np.float64]:
    """The doubles of a column of floats; slots of NULLs hold zero."""
    values = fixed(array, f"<f{array.type.bit_width // 8}").astype(np.float64)
    if array.null_count:
        values[nulls_of(array)] = 0.0
    return values


def bools(array: pa.Array) -> Bools:
    """The truths of a column; FALSE where NULL."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return arrays.is_true(array)


def texts(array: pa.Array) -> list[str | None]:
    """The texts of a column as python strings."""
    values: list[str | None] = plain(array).to_pylist()
    return values


def intervals(array: pa.Array) -> list[Interval | None]:
    """The intervals of a column."""
    spans = fixed(array, _MONTH_DAY_NANO)
    missing = nulls_of(array)
    rows = zip(spans["months"].tolist(), spans["days"].tolist(), spans["nanoseconds"].tolist(), strict=True)
    return [None if gone else Interval(*row) for gone, row in zip(missing, rows, strict=True)]


def span_parts(array: pa.Array) -> tuple[Numbers, Numbers, Numbers]:
    """Months, days and nanoseconds of a column of intervals; slots of NULLs hold zero."""
    missing = nulls_of(array)
    if pa.types.is_null(array.type):
        months = days = nanoseconds = np.zeros(len(array), np.int64)
    else:
        spans = fixed(array, _MONTH_DAY_NANO)
        months, days, nanoseconds = [spans[part].astype(np.int64) for part in _MONTH_DAY_NANO.names or ()]
    for part in (months, days, nanoseconds) if missing.any() else ():
        part[missing] = 0
    return months, days, nanoseconds


def check_elements(count: int) -> None:
    """Raises TooMuchAtOnce where the lists of a column would have so many elements that Arrow has no room for them."""
    if count > _ELEMENTS_MAX:
        raise TooMuchAtOnce(f"the lists of some rows have {count} elements, and Arrow has room for {_ELEMENTS_MAX}")


# ------------------------------------------------------------------------------------------ back to Arrow


def from_bools(values: Bools, missing: Bools | None = None) -> pa.Array:
    """A BOOL column."""
    return arrays.from_numpy(np.asarray(values, np.bool_), missing=missing)


def from_floats(values: Numbers, missing: Bools, kind: DataType) -> pa.Array:
    """A column of floats; infinite where a float is too narrow for the double."""
    with np.errstate(over="ignore"):
        narrowed = np.asarray(values, np.float64).astype(np.float32 if kind.kind is Kind.FLOAT32 else np.float64)
    return arrays.from_numpy(narrowed, missing=missing)


def range_of(kind: DataType) -> tuple[int, int]:
    """The smallest and largest whole number of a type."""
    if kind.is_integer:
        return integer_range(kind)
    if kind.kind is Kind.DECIMAL:
        limit = 10**kind.precision - 1
        return -limit, limit
    if kind.kind is Kind.DATE:
        return -_DATE_BOUND, _DATE_BOUND
    bits = 32 if kind.kind is Kind.TIME and kind.unit in ("s", "ms") else 64
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def from_integers(values: Numbers, missing: Bools, kind: DataType, describe: Callable[[int], str]) -> pa.Array:
    """A column of integers, decimals, dates, times or timestamps from whole numbers.

    Raises Overflow for a number that is not NULL and not in the range of the type; `describe` tells by row what it was.
    """
    if kind is BOOL:
        return from_bools(values != 0, missing)
    low, high = range_of(kind)
    outside = np.asarray((values < low) | (values > high), np.bool_) & ~missing
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise Overflow(f"{describe(row)} leaves the range of {kind}; cast to a wider type first")
    if missing.any():
        values = np.where(missing, 0, values)
    return _pack(values, missing, kind)


def _pack(values: Numbers, missing: Bools, kind: DataType) -> pa.Array:
    arrow = to_arrow(kind)
    if pa.types.is_decimal128(arrow):
        words = _halves(values)
    else:
        sign = "u" if pa.types.is_unsigned_integer(arrow) else "i"
        words = np.ascontiguousarray(values.astype(np.dtype(f"<{sign}{arrow.bit_width // 8}")))
    validity = None
    if missing.any():
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return pa.Array.from_buffers(arrow, len(values), [validity, pa.py_buffer(words.tobytes())])


def _halves(values: Numbers) -> Numbers:
    halves = np.empty(len(values) * 2, np.uint64)
    if values.dtype == object:
        halves[0::2] = np.array([int(value) & _MASK_64 for value in values], np.uint64)
        halves[1::2] = np.array([(int(value) >> 64) & _MASK_64 for value in values], np.uint64)
    else:
        narrow = values.astype(np.int64)
        halves[0::2] = narrow.view(np.uint64)
        halves[1::2] = (narrow >> 63).view(np.uint64)
    return halves


def from_intervals(values: list[Interval | None]) -> pa.Array:
    """An INTERVAL column; Overflow for parts that do not fit it."""
    try:
        return pa.array(values, pa.month_day_nano_interval())
    except (OverflowError, pa.ArrowInvalid):
        raise Overflow("an interval leaves the range of its months, days or nanoseconds") from None


def from_span_parts(parts: Iterable[Numbers], missing: Bools) -> pa.Array:
    """An INTERVAL column of months, days and nanoseconds; Overflow for parts, outside of NULLs, that do not fit it."""
    spans = np.zeros(len(missing), _MONTH_DAY_NANO)
    for name, values, bits in zip(_MONTH_DAY_NANO.names or (), parts, (32, 32, 64), strict=True):
        if not _fits(values, bits):
            values = np.where(missing, 0, values)
            if not _fits(values, bits):
                raise Overflow("an interval leaves the range of its months, days or nanoseconds")
        spans[name] = values
    validity = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes()) if missing.any() else None
    buffers = [validity, pa.py_buffer(spans.view(np.uint8))]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), len(missing), buffers)


def _fits(values: Numbers, bits: int) -> bool:
    bound = 1 << (bits - 1)
    return len(values) == 0 or bool(-bound <= values.min() and values.max() < bound)


def from_texts(values: list[str | None]) -> pa.Array:
    """A STRING column."""
    return pa.array(values, pa.string())


# ------------------------------------------------------------------------------- exact whole-number arithmetic


def magnitude(values: Numbers) -> int:
    """The largest absolute value, as a python integer."""
    if len(values) == 0:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def widened(values: Numbers, bound: int) -> Numbers:
    """The values as python integers where results up to `bound` would not fit 64 bits."""
    return values.astype(object) if bound >= INT64_BOUND and values.dtype != object else values


def exact_sum(left: Numbers, right: Numbers) -> Numbers:
    bound = magnitude(left) + magnitude(right)
    total: Numbers = widened(left, bound) + widened(right, bound)
    return total


def exact_difference(left: Numbers, right: Numbers) -> Numbers:
    bound = magnitude(left) + magnitude(right)
    difference: Numbers = widened(left, bound) - widened(right, bound)
    return difference


def exact_product(left: Numbers, right: Numbers) -> Numbers:
    bound = magnitude(left) * magnitude(right)
    product: Numbers = widened(left, bound) * widened(right, bound)
    return product


def scaled(values: Numbers, factor: int) -> Numbers:
    """values * factor."""
    product: Numbers = widened(values, magnitude(values) * abs(factor)) * factor
    return product


def floored(values: Numbers, divisor: int) -> Numbers:
    """values / divisor (positive) rounded down."""
    quotient: Numbers = values // divisor
    return quotient


def truncated_quotient(left: Numbers, right: Numbers) -> Numbers:
    """left / right rounded toward zero; `right` holds no zero."""
    bound = max(magnitude(left), magnitude(right))
    left, right = widened(left, bound), widened(right, bound)
    quotient: Numbers = np.abs(left) // np.abs(right)
    return np.where((left < 0) != (right < 0), -quotient, quotient)


def rounded_quotient(values: Numbers, divisor: int) -> Numbers:
    """values / divisor (positive) rounded half away from zero."""
    if divisor == 1:
        return values
    half = divisor // 2
    bound = magnitude(values) + half
    wide = values.astype(object) if max(bound, divisor) >= INT64_BOUND else values
    quotient: Numbers = (np.abs(wide) + half) // divisor
    return np.where(wide < 0, -quotient, quotient)
