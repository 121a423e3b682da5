"""A footer rewritten so that pyarrow decodes columns as they are stored.

pyarrow widens decimals that are stored as integers to 128 bits, and follows the Arrow schema that a writer left in the
footer (string views, dictionaries, other units); bringing that into the engine's layout costs more than decoding. So
a copy of the footer is made in which such decimals are plain integers and the Arrow schema has another name; everything
else is the same, byte for byte.

Rule: the copy is for decoding only. Types and statistics come from the real footer. Where anything about a footer is
unusual there is no copy, and the real one is used.
"""

from __future__ import annotations

from typing import Final

from bireme.storage.thrift_compact import STRUCT, list_header, read_varint
from bireme.storage.thrift_fields import Field, encoded, fields_of, integer_of

# Fields of SchemaElement, and the values of its enums that matter here.
_TYPE, _CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE = 1, 6, 7, 8, 10
_INT32: Final = 1
_INT64: Final = 2
_DECIMAL: Final = 5
_ARROW_SCHEMA: Final = b"ARROW:schema"
_ARROW_SCHEMA_RENAMED: Final = b"arrow_schema"


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
    _, position = read_varint(footer, 1)
    if footer[position] != 1 << 4 | 9:
        raise ValueError("the schema does not come second")
    position += 1
    count, kind, first = list_header(footer, position)
    if kind != STRUCT:
        raise ValueError("the schema is not a list of structs")
    parts = [footer[:first]]
    position = first
    for _ in range(count):
        fields, end = fields_of(footer, position)
        parts.append(encoded(_without_decimal(fields)) if _is_integer_decimal(fields) else footer[position:end])
        position = end
    parts.append(footer[position:].replace(_ARROW_SCHEMA, _ARROW_SCHEMA_RENAMED))
    return b"".join(parts)


def _is_integer_decimal(fields: list[Field]) -> bool:
    values = {number: content for number, _, content in fields}
    if _TYPE not in values or (_CONVERTED_TYPE not in values and _LOGICAL_TYPE not in values):
        return False
    if integer_of(values[_TYPE]) not in (_INT32, _INT64):
        return False
    if _CONVERTED_TYPE in values and integer_of(values[_CONVERTED_TYPE]) == _DECIMAL:
        return True
    # The union LogicalType: its field 5 is DECIMAL, as a struct.
    return values.get(_LOGICAL_TYPE, b"")[:1] == bytes([5 << 4 | STRUCT])


def _without_decimal(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field[0] not in (_CONVERTED_TYPE, _SCALE, _PRECISION, _LOGICAL_TYPE)]
