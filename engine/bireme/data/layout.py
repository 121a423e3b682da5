"""Arrow data that comes in, turned into the one layout per type that kernels take.

The layouts are `types.to_arrow`; this only converts between layouts of the same type, it casts nothing between types.
Conversions read no value in Python.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.data.arrays import Flags, is_valid
from bireme.data.types import STRING, DataType, Kind, to_arrow
from bireme.errors import ConversionFault, Unsupported

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def to_engine(array: pa.Array, kind: DataType) -> pa.Array:
    """`array` in the engine's layout of its type `kind`; the same object where it already has it.

    Strings keep a dictionary, with int32 codes. Raises ConversionFault where a value does not fit the type that the
    array claims, Unsupported for a layout that cannot be converted.
    """
    target = to_arrow(kind)
    have = array.type
    if have == target or (kind is STRING and have == _DICTIONARY and array.dictionary.null_count == 0):
        return array
    if isinstance(array, pa.ExtensionArray):
        return to_engine(array.storage, kind)
    if pa.types.is_dictionary(have):
        return _dictionary(array, kind)
    if kind.kind is Kind.DECIMAL and pa.types.is_decimal128(have) and pa.types.is_decimal64(target):
        return narrow_decimal(array, target)
    try:
        return array.cast(target)
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"Arrow data of type {have} cannot be read as {kind}: {error}") from error
    except pa.ArrowInvalid as error:
        raise ConversionFault(f"Arrow data of type {have} holds a value that is not a {kind}: {error}") from error


def _dictionary(array: pa.DictionaryArray, kind: DataType) -> pa.Array:
    if kind is not STRING or array.dictionary.null_count:
        return to_engine(array.dictionary_decode(), kind)
    codes = array.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(codes, to_engine(array.dictionary, STRING), safe=True)


def check_codes(array: pa.DictionaryArray) -> None:
    """Raises ConversionFault where a code stands for no word of the dictionary: kernels look words up unchecked."""
    import pyarrow.compute as pc  # on its first use: loading it takes longer than a small query

    found = pc.min_max(array.indices)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < 0 or high >= len(array.dictionary)):
        code = low if low < 0 else high
        raise ConversionFault(f"the code {code} stands for none of a dictionary's {len(array.dictionary)} words")


def narrow_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A decimal128 array as decimal64: the low words, after a check that the high ones only carry the sign."""
    rows, start = len(array), array.offset
    validity, data = array.buffers()
    words = np.frombuffer(data, dtype=np.int64, count=2 * rows, offset=16 * start).reshape(rows, 2)
    low = words[:, 0].copy()
    wrong = words[:, 1] != low >> 63
    if wrong.any():
        _check_only_nulls(array, wrong)
    if array.null_count == 0:
        validity = None
    elif start:
        validity = pa.py_buffer(np.packbits(is_valid(array), bitorder="little"))
    return pa.Array.from_buffers(target, rows, [validity, pa.py_buffer(low)], array.null_count)


def _check_only_nulls(array: pa.Array, wrong: Flags) -> None:
    """The bytes under a NULL are nobody's value, whatever they are."""
    if (wrong & is_valid(array)).any():
        raise ConversionFault(f"a column of type {array.type} holds a value with more digits than its type says")
