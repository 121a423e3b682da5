"""Reading Thrift's compact protocol, in which Parquet footers are written.

Rule: nothing is assumed about the bytes; what is not a value of the protocol is a ValueError. A struct is a run of
fields, each with an id (as the difference to the last one) and a type, without any length; what fields mean is in
`parquet_footer`.
"""

from __future__ import annotations

from typing import Any, Final

STOP: Final = 0
TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
INTEGERS: Final = (4, 5, 6)
DOUBLE: Final = 7
BINARY: Final = 8
LISTS: Final = (9, 10)
MAP: Final = 11
STRUCT: Final = 12

_DEPTH_MAX: Final = 32
_VARINT_BITS_MAX: Final = 70

Struct = dict[int, Any]


def read_struct(data: bytes, position: int, depth: int = 0) -> tuple[Struct, int]:
    """The struct at `position` as its fields by id, and where it ends. ValueError where there is none."""
    if depth > _DEPTH_MAX:
        raise ValueError("structs are nested too deeply")
    found: Struct = {}
    number = 0
    while (header := byte_at(data, position)) != STOP:
        number, kind, position = field_at(data, position, header, number)
        found[number], position = read_value(data, position, kind, depth)
    return found, position + 1


def field_at(data: bytes, position: int, header: int, last: int) -> tuple[int, int, int]:
    """Id and type of the field whose header is at `position`, and where its value starts."""
    if header >> 4:
        return last + (header >> 4), header & 0x0F, position + 1
    number, position = read_varint(data, position + 1)
    return unzigzag(number), header & 0x0F, position


def read_value(data: bytes, position: int, kind: int, depth: int = 0) -> tuple[Any, int]:
    """The value of a type at `position`, and where it ends."""
    if kind in INTEGERS:
        number, position = read_varint(data, position)
        return unzigzag(number), position
    if kind == BINARY:
        length, position = read_varint(data, position)
        if position + length > len(data):
            raise ValueError("a text is longer than what is left")
        return data[position : position + length], position + length
    if kind == STRUCT:
        return read_struct(data, position, depth + 1)
    if kind in (TRUE, FALSE):
        return kind == TRUE, position
    if kind in LISTS:
        return _read_list(data, position, depth)
    if kind == BYTE:
        return byte_at(data, position), position + 1
    if kind == DOUBLE and position + 8 <= len(data):
        return data[position : position + 8], position + 8
    if kind == MAP:
        return _read_map(data, position, depth)
    raise ValueError(f"{kind} is no type")


def list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """The length of a list, the type of its elements, and where they start."""
    header = byte_at(data, position)
    count, position = header >> 4, position + 1
    if count == 15:
        count, position = read_varint(data, position)
    if count > len(data) - position:
        raise ValueError("a list is longer than what is left")
    return count, header & 0x0F, position


def _read_list(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    count, kind, position = list_header(data, position)
    found = []
    for _ in range(count):
        value, position = _read_element(data, position, kind, depth)
        found.append(value)
    return found, position


def _read_map(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    count, position = read_varint(data, position)
    if count > len(data) - position:
        raise ValueError("a map is longer than what is left")
    found = []
    if count:
        kinds, position = byte_at(data, position), position + 1
        for _ in range(count):
            key, position = _read_element(data, position, kinds >> 4, depth)
            value, position = _read_element(data, position, kinds & 0x0F, depth)
            found.append((key, value))
    return found, position


def _read_element(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    # Inside a list a boolean takes a byte, as a field it is in the header.
    if kind in (TRUE, FALSE):
        return byte_at(data, position) == TRUE, position + 1
    return read_value(data, position, kind, depth)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned integer at `position`, and where it ends."""
    value = shift = 0
    while True:
        byte = byte_at(data, position)
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > _VARINT_BITS_MAX:
            raise ValueError("an integer is too long")


def unzigzag(number: int) -> int:
    """Signed integers are stored with their sign in the lowest bit."""
    return (number >> 1) ^ -(number & 1)


def byte_at(data: bytes, position: int) -> int:
    if position >= len(data):
        raise ValueError("the bytes end too early")
    return data[position]
