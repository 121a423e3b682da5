"""Lists and structs as blobs that are ordered byte by byte as the values are, and back.

A part begins with a byte that says whether a value follows (1) or it is NULL (2, behind all values). Whole numbers,
decimals, points in time and doubles follow with the greatest byte first and their sign turned, so that they are
ordered without it; texts and blobs with every zero byte as 0 255, ended by 0 0; a list with its parts, ended by 0; a
struct with its fields. The first byte of a whole blob is 1: NULL stays NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.keys import float_codes
from bireme.backends.reference.structs import field_at
from bireme.backends.reference.vectors import fixed, from_floats, from_integers, integers, nulls_of
from bireme.data.record import plain
from bireme.data.types import DECIMAL64_DIGITS, DataType, Kind, to_arrow
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_VALUE: Final = b"\x01"
_NULL: Final = b"\x02"
_END: Final = b"\x00"
_END_OF_TEXT: Final = b"\x00\x00"
_WIDE_BYTES: Final = 16
_BYTES: Final = 8
_SIGN: Final = np.uint64(1 << 63)


def _order_key(call: Call, args: list[pa.Array]) -> pa.Array:
    return order_key(args[0], call.args[0].type)


def order_key(array: pa.Array, kind: DataType) -> pa.Array:
    """The blob of each value of a type; NULL for NULL."""
    array = plain(array)
    blobs = _encoded(array, kind)
    return pc.if_else(pa.array(nulls_of(array)), pa.scalar(None, pa.binary()), blobs)


def _encoded(array: pa.Array, kind: DataType) -> pa.Array:
    """The part of each value; none is NULL."""
    array = plain(array)
    if pa.types.is_null(array.type):
        return pa.array([_NULL] * len(array), pa.binary())
    return pc.if_else(pa.array(nulls_of(array)), pa.scalar(_NULL, pa.binary()), _value(array, kind))


def _value(array: pa.Array, kind: DataType) -> pa.Array:
    """The part of each value that is not NULL; anything for NULL."""
    match kind.kind:
        case Kind.LIST:
            lengths = lengths_of(array)
            parts = _encoded(array.flatten(), kind.children[0].type)
            lists = list_array(pa.list_(pa.binary()), parts, lengths, np.zeros(len(array), np.bool_))
            return _joined(_VALUE, pc.binary_join(lists, b""), _END)
        case Kind.STRUCT:
            fields = [_encoded(field_at(array, place), child.type) for place, child in enumerate(kind.children)]
            return _joined(_VALUE, *fields)
        case Kind.STRING | Kind.BINARY:
            texts = array.cast(pa.binary()).fill_null(b"")
            return _joined(_VALUE, pc.replace_substring(texts, b"\x00", b"\x00\xff"), _END_OF_TEXT)
        case _:
            return _joined(_VALUE, _fixed(array, kind))


def _joined(*parts: pa.Array | bytes) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _fixed(array: pa.Array, kind: DataType) -> pa.Array:
    """Numbers as bytes of one width."""
    if _is_wide(kind):
        lower, upper = fixed(array, "<u8", 2).reshape(-1, 2).T
        words = np.stack([upper ^ _SIGN, lower], axis=1)
    elif kind.kind is Kind.UINT64:
        words = integers(array).astype(np.uint64)
    else:
        counts = float_codes(array) if kind.is_float else integers(array)
        words = counts.astype(np.int64).view(np.uint64) ^ _SIGN
    data = pa.py_buffer(words.astype(">u8").tobytes())
    width = pa.binary(_WIDE_BYTES if _is_wide(kind) else _BYTES)
    return pa.FixedSizeBinaryArray.from_buffers(width, len(array), [None, data]).cast(pa.binary())


def _is_wide(kind: DataType) -> bool:
    return kind.kind is Kind.DECIMAL and kind.precision > DECIMAL64_DIGITS


# ------------------------------------------------------------------------------------------------- back


def _of_order_key(call: Call, args: list[pa.Array]) -> pa.Array:
    """Each different blob is read once, a value at a time."""
    known: dict[bytes, Any] = {}
    values = []
    for blob in plain(args[0]).to_pylist():
        if blob is not None and blob not in known:
            known[blob] = _read(blob, 0, call.type)[0]
        values.append(None if blob is None else known[blob])
    return _built(values, call.type)


def _read(blob: bytes, at: int, kind: DataType) -> tuple[Any, int]:
    """What the part that begins at a place holds, numbers as their counts or codes, and where it ends."""
    if blob[at : at + 1] == _NULL:
        return None, at + 1
    at += 1
    match kind.kind:
        case Kind.LIST:
            items = []
            while blob[at : at + 1] != _END:
                item, at = _read(blob, at, kind.children[0].type)
                items.append(item)
            return items, at + 1
        case Kind.STRUCT:
            fields = []
            for child in kind.children:
                field, at = _read(blob, at, child.type)
                fields.append(field)
            return fields, at
        case Kind.STRING | Kind.BINARY:
            return _read_text(blob, at)
        case _:
            width = _WIDE_BYTES if _is_wide(kind) else _BYTES
            number = int.from_bytes(blob[at : at + width], "big")
            return number if kind.kind is Kind.UINT64 else number - (1 << (width * 8 - 1)), at + width


def _read_text(blob: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while blob[(end := blob.index(_END, end)) + 1] != 0:
        end += 2
    return blob[at:end].replace(b"\x00\xff", b"\x00"), end + 2


def _built(values: list[Any], kind: DataType) -> pa.Array:
    """A column of what was read."""
    missing = np.array([value is None for value in values], np.bool_)
    match kind.kind:
        case Kind.LIST:
            items = _built([item for value in values if value is not None for item in value], kind.children[0].type)
            lengths = np.array([0 if value is None else len(value) for value in values], np.int64)
            return list_array(to_arrow(kind), items, lengths, missing)
        case Kind.STRUCT:
            columns = [
                _built([None if value is None else value[place] for value in values], child.type)
                for place, child in enumerate(kind.children)
            ]
            return pa.StructArray.from_arrays(columns, fields=list(to_arrow(kind)), mask=pa.array(missing))
        case Kind.STRING | Kind.BINARY:
            return pa.array(values, pa.binary()).cast(to_arrow(kind))
        case Kind.NULL:
            return pa.nulls(len(values))
    counts = [0 if value is None else value for value in values]
    if kind.is_float:
        codes = np.array(counts, np.int64)
        return from_floats(np.where(codes < 0, -1.0, 1.0) * np.abs(codes).view(np.float64), missing, kind)
    wide = _is_wide(kind) or kind.kind is Kind.UINT64
    return from_integers(np.array(counts, object if wide else np.int64), missing, kind, lambda _: "a key")


FUNCTIONS: Final[dict[str, Evaluator]] = {"order_key": _order_key, "of_order_key": _of_order_key}
