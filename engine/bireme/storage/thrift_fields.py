"""Structs of Thrift's compact protocol as raw fields, to change a few and write the others as they were.

Rule: what is not changed is the same, byte for byte. Ids of fields ascend by at most 15, as all writers of Parquet have
them; anything else is a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bireme.storage.thrift_compact import (
    BINARY,
    LISTS,
    STOP,
    STRUCT,
    field_at,
    list_header,
    read_value,
    read_varint,
    unzigzag,
)

# Id, type and content.
Field = tuple[int, int, bytes]
Change = Callable[[bytes], bytes]


def fields_of(data: bytes, position: int = 0) -> tuple[list[Field], int]:
    """The fields of the struct at `position`, and where it ends."""
    found: list[Field] = []
    number = 0
    while (header := data[position]) != STOP:
        number, kind, start = field_at(data, position, header, number)
        _, position = read_value(data, start, kind)
        found.append((number, kind, data[start:position]))
    return found, position + 1


def encoded(fields: Sequence[Field]) -> bytes:
    """The struct that has these fields, in the order of their ids."""
    parts = bytearray()
    last = 0
    for number, kind, content in fields:
        if not 1 <= number - last <= 15:
            raise ValueError("the ids of fields are not as usual")
        parts.append((number - last) << 4 | kind)
        parts += content
        last = number
    parts.append(STOP)
    return bytes(parts)


def changed(data: bytes, changes: Mapping[int, Change]) -> bytes:
    """The struct in `data` with the content of some fields, where it has them, as `changes` make it."""
    fields, _ = fields_of(data)
    return encoded(
        [(number, kind, changes[number](content) if number in changes else content) for number, kind, content in fields]
    )


def content_of(data: bytes, wanted: int) -> bytes:
    """The content of one field of the struct in `data`; ValueError where it has none of that id."""
    for number, _, content in fields_of(data)[0]:
        if number == wanted:
            return content
    raise ValueError(f"there is no field {wanted}")


def structs_of(content: bytes) -> list[bytes]:
    """The elements of a list of structs."""
    count, kind, position = list_header(content, 0)
    if count and kind != STRUCT:
        raise ValueError("the elements of a list are no structs")
    found = []
    for _ in range(count):
        _, end = fields_of(content, position)
        found.append(content[position:end])
        position = end
    return found


def list_of(structs: Sequence[bytes]) -> bytes:
    """The content of a field that is a list of structs."""
    return struct_list_header(len(structs)) + b"".join(structs)


def struct_list_header(count: int) -> bytes:
    """What comes before the elements of a list of so many structs."""
    return _header(count, STRUCT)


def texts_of(content: bytes) -> list[bytes]:
    """The elements of a list of texts."""
    return list(read_value(content, 0, LISTS[0])[0])


def list_of_texts(texts: Sequence[bytes]) -> bytes:
    """The content of a field that is a list of texts."""
    return _header(len(texts), BINARY) + b"".join([varint(len(text)) + text for text in texts])


def integer_of(content: bytes) -> int:
    """The value of a field that is an integer."""
    return unzigzag(read_varint(content, 0)[0])


def integer(value: int) -> bytes:
    """The content of a field that is an integer of up to 64 bits."""
    return varint((value << 1) ^ (value >> 63))


def varint(value: int) -> bytes:
    """An unsigned integer, seven bits a byte."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _header(count: int, kind: int) -> bytes:
    return bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
