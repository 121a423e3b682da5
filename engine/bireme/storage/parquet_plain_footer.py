"""A footer rewritten so that pyarrow decodes columns as they are stored.

pyarrow widens decimals that are stored as integers to 128 bits, and follows the Arrow schema that a writer left in the
footer (string views, dictionaries, other units); bringing that into the engine's layout costs more than decoding. So
a copy of the footer is made in which such decimals are plain integers and the Arrow schema has another name; everything
else is the same, byte for byte.

Rule: the copy is for decoding only. Types and statistics come from the real footer. Where anything about a footer is
unusual there is no copy, and the real one is used.

A footer is a struct in Thrift's compact protocol: fields with an id as the difference to the last one and a type; no
lengths of structs, so that fields can be left out without touching what is around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_STOP: Final = 0
_BOOLEANS: Final = (1, 2)
_BYTE: Final = 3
_INTEGERS: Final = (4, 5, 6)
_DOUBLE: Final = 7
_BINARY: Final = 8
_LISTS: Final = (9, 10)
_MAP: Final = 11
_STRUCT: Final = 12

# Fields of SchemaElement, and the values of its enums that matter here.
_TYPE, _CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE = 1, 6, 7, 8, 10
_INT32: Final = 1
_INT64: Final = 2
_DECIMAL: Final = 5
_ARROW_SCHEMA: Final = b"ARROW:schema"
_ARROW_SCHEMA_RENAMED: Final = b"arrow_schema"

Field = tuple[int, int, bytes]


def plain_footer(footer: bytes) -> bytes | None:
    """The rewritten copy; None where the footer is not laid out as usual."""
    try:
        return _rewritten(footer)
    except (IndexError, ValueError):
        return None


def _rewritten(footer: bytes) -> bytes:
    # A FileMetaData starts with field 1, the version, and field 2, the list of schema elements.
    if footer[0] != 1 << 4 | 5:
        raise ValueError("the version does not come first")
    _, position = _varint(footer, 1)
    if footer[position] != 1 << 4 | 9:
        raise ValueError("the schema does not come second")
    position += 1
    count, kind, first = _list_header(footer, position)
    if kind != _STRUCT:
        raise ValueError("the schema is not a list of structs")
    parts = [footer[:first]]
    position = first
    for _ in range(count):
        fields, end = _fields(footer, position)
        parts.append(_encoded(_without_decimal(fields)) if _is_integer_decimal(fields) else footer[position:end])
        position = end
    parts.append(footer[position:].replace(_ARROW_SCHEMA, _ARROW_SCHEMA_RENAMED))
    return b"".join(parts)


def _is_integer_decimal(fields: list[Field]) -> bool:
    values = {number: content for number, _, content in fields}
    if _TYPE not in values or (_CONVERTED_TYPE not in values and _LOGICAL_TYPE not in values):
        return False
    if _zigzag(values[_TYPE]) not in (_INT32, _INT64):
        return False
    if _CONVERTED_TYPE in values and _zigzag(values[_CONVERTED_TYPE]) == _DECIMAL:
        return True
    # The union LogicalType: its field 5 is DECIMAL, as a struct.
    return values.get(_LOGICAL_TYPE, b"")[:1] == bytes([5 << 4 | _STRUCT])


def _without_decimal(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field[0] not in (_CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE)]


def _fields(data: bytes, position: int) -> tuple[list[Field], int]:
    """The fields of the struct at `position` as (id, type, content), and where it ends."""
    found: list[Field] = []
    for number, kind, start, end in _walk(data, position):
        found.append((number, kind, data[start:end]))
        position = end
    return found, position + 1


def _walk(data: bytes, position: int) -> Iterator[tuple[int, int, int, int]]:
    number = 0
    while (header := data[position]) != _STOP:
        delta, kind = header >> 4, header & 0x0F
        position += 1
        if delta:
            number += delta
        else:
            raw, position = _varint(data, position)
            number = (raw >> 1) ^ -(raw & 1)
        end = _skip(data, position, kind)
        yield number, kind, position, end
        position = end


def _encoded(fields: list[Field]) -> bytes:
    parts = bytearray()
    last = 0
    for number, kind, content in fields:
        if not 1 <= number - last <= 15:
            raise ValueError("the ids of fields are not as usual")
        parts.append((number - last) << 4 | kind)
        parts += content
        last = number
    parts.append(_STOP)
    return bytes(parts)


def _skip(data: bytes, position: int, kind: int) -> int:
    """Where the value of type `kind` at `position` ends."""
    if kind in _BOOLEANS:
        return position
    if kind == _BYTE:
        return position + 1
    if kind in _INTEGERS:
        return _varint(data, position)[1]
    if kind == _DOUBLE:
        return position + 8
    if kind == _BINARY:
        length, position = _varint(data, position)
        return position + length
    if kind in _LISTS:
        count, inner, position = _list_header(data, position)
        for _ in range(count):
            # Inside a list a boolean takes a byte.
            position = position + 1 if inner in _BOOLEANS else _skip(data, position, inner)
        return position
    if kind == _STRUCT:
        return _fields(data, position)[1]
    raise ValueError(f"type {kind} does not occur in schemas")


def _list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """The length of a list, the type of its elements, and where they start."""
    header = data[position]
    count, position = header >> 4, position + 1
    if count == 15:
        count, position = _varint(data, position)
    return count, header & 0x0F, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _zigzag(content: bytes) -> int:
    raw, _ = _varint(content, 0)
    return (raw >> 1) ^ -(raw & 1)
