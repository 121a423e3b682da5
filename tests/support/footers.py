"""Parquet footers changed field by field, as other writers would have written them.

A struct is {field id: [type, value]}, in the order of the file; a list is [type, [values]]. Types are those of Thrift's
compact protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Fields = dict[int, list[Any]]

# Fields of FileMetaData, SchemaElement, RowGroup, ColumnChunk and ColumnMetaData.
VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY = 1, 2, 3, 4, 5, 6
CONVERTED_TYPE, LOGICAL_TYPE = 6, 10
COLUMNS = 1
META_DATA, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH = 3, 4, 5, 6, 7
NUM_VALUES, COMPRESSED_SIZE, DATA_OFFSET, DICTIONARY_OFFSET, STATISTICS = 5, 7, 9, 11, 12


def edited(content: bytes, edit: Callable[[Fields], None], *, before_footer: bytes = b"") -> bytes:
    """A file with another footer, and with `before_footer` between its pages and that."""
    (length,) = struct.unpack("<I", content[-8:-4])
    fields, _ = parsed(content[-8 - length : -8])
    edit(fields)
    footer = encoded(fields)
    return content[: -8 - length] + before_footer + footer + struct.pack("<I", len(footer)) + b"PAR1"


def footer_offset(content: bytes) -> int:
    return len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]


def chunks(footer: Fields) -> list[Fields]:
    """All column chunks, row group by row group."""
    return [chunk for group in footer[ROW_GROUPS][1][1] for chunk in group[COLUMNS][1][1]]


def parsed(data: bytes, position: int = 0) -> tuple[Fields, int]:
    """The struct at a position, and where it ends."""
    fields: Fields = {}
    number = 0
    while (header := data[position]) != 0:
        position += 1
        kind = header & 15
        if header >> 4:
            number += header >> 4
        else:
            raw, position = _varint(data, position)
            number = raw >> 1 ^ -(raw & 1)
        if kind in (TRUE, FALSE):
            fields[number] = [kind, None]
        else:
            value, position = _value(data, position, kind)
            fields[number] = [kind, value]
    return fields, position + 1


def encoded(fields: Fields) -> bytes:
    out = bytearray()
    last = 0
    for number, (kind, value) in sorted(fields.items()):
        assert 1 <= number - last <= 15
        out.append((number - last) << 4 | kind)
        last = number
        if kind not in (TRUE, FALSE):
            out += _encoded_value(kind, value)
    return bytes(out) + b"\0"


def _value(data: bytes, position: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return parsed(data, position)
    if kind in (I16, I32, I64):
        raw, position = _varint(data, position)
        return raw >> 1 ^ -(raw & 1), position
    if kind == BINARY:
        length, position = _varint(data, position)
        return data[position : position + length], position + length
    if kind == LIST:
        return _list(data, position)
    width = 8 if kind == DOUBLE else 1
    return data[position : position + width], position + width


def _list(data: bytes, position: int) -> tuple[Any, int]:
    header = data[position]
    count, position = header >> 4, position + 1
    if count == 15:
        count, position = _varint(data, position)
    values = []
    for _ in range(count):
        value, position = _value(data, position, header & 15)
        values.append(value)
    return [header & 15, values], position


def _encoded_value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return encoded(value)
    if kind in (I16, I32, I64):
        return _encoded_varint((value << 1) ^ (value >> 63))
    if kind == BINARY:
        return _encoded_varint(len(value)) + value
    if kind == LIST:
        element, values = value
        head = bytes([len(values) << 4 | element]) if len(values) < 15 else bytes([0xF0 | element])
        size = b"" if len(values) < 15 else _encoded_varint(len(values))
        return head + size + b"".join(_encoded_value(element, each) for each in values)
    return bytes(value)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _encoded_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
