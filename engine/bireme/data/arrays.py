"""Arrow arrays over numpy values, and numpy values of Arrow arrays, by their buffers.

pyarrow's own converters do the same, but the first call of any of them imports pandas where that is installed, which
takes longer than a small query with all of its process. Values are shared where their layout allows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

Values = np.ndarray[Any, np.dtype[Any]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_BOOL: Final = pa.bool_()


def from_numpy(values: Values, *, missing: Flags | None = None) -> pa.Array:
    """The values (booleans or numbers) as an array of the type that numpy has for them; NULL where `missing`."""
    rows = len(values)
    validity = None if missing is None or not missing.any() else _bits(~missing)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(_BOOL, rows, [validity, _bits(values)])
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(np.ascontiguousarray(values))])


def to_numpy(array: pa.Array) -> Values:
    """The values of an array of numbers; where it has NULLs, anything stands there."""
    data = array.buffers()[1]
    dtype = np.dtype(array.type.to_pandas_dtype())
    if data is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def reinterpreted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same bytes as values of another type of the same width."""
    return pa.Array.from_buffers(kind, len(array), array.buffers(), offset=array.offset)


def is_true(array: pa.BooleanArray) -> Flags:
    """Where an array of booleans is TRUE: neither FALSE nor NULL."""
    data = array.buffers()[1]
    flags = _flags(data, array.offset, len(array))
    return flags if array.null_count == 0 else flags & is_valid(array)


def is_false(array: pa.BooleanArray) -> Flags:
    """Where an array of booleans is FALSE: neither TRUE nor NULL."""
    flags = ~_flags(array.buffers()[1], array.offset, len(array))
    return flags if array.null_count == 0 else flags & is_valid(array)


def is_valid(array: pa.Array) -> Flags:
    """Where an array, of any type but a union or runs, is not NULL."""
    if array.null_count == len(array):
        return np.zeros(len(array), np.bool_)
    return _flags(array.buffers()[0], array.offset, len(array))


def _flags(bits: pa.Buffer | None, start: int, rows: int) -> Flags:
    if bits is None:
        return np.ones(rows, np.bool_)
    first = start // 8
    packed = np.frombuffer(bits, np.uint8)[first : (start + rows + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[start - 8 * first :][:rows].view(np.bool_)


def _bits(flags: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
