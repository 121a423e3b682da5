"""Which columns of a Parquet file a native kernel can be told to read, and what it must be told of their chunks.

Rule: a column is described only where its stored values are those of its type in the engine, in the same unit;
everything else (nested columns, old moments, other units, half floats) is left to pyarrow, and it is said why.
Encodings are the kernel's business: it refuses those it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bireme.data.types import DECIMAL64_DIGITS, DataType, Kind
from bireme.storage.parquet_bounds import stored_unit
from bireme.storage.parquet_file import ParquetFile

_PHYSICAL: Final = {
    "BOOLEAN": 0, "INT32": 1, "INT64": 2, "INT96": 3, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6,
    "FIXED_LEN_BYTE_ARRAY": 7,
}  # fmt: skip
_TEMPORAL: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.DURATION)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a column is stored in all of a file's row groups; `reason`, if not empty, why only pyarrow reads it."""

    physical: int
    type_length: int
    is_optional: bool
    reason: str = ""


def encoding_of(file: ParquetFile, column: int) -> Encoding:
    """How a column of a file is stored."""
    leaves = file.leaves[column]
    kind = file.schema[column].type
    if len(leaves) != 1 or kind.is_nested:
        return Encoding(0, 0, False, "nested columns are decoded by pyarrow")
    leaf = file.metadata.schema.column(leaves[0])
    physical = leaf.physical_type
    if leaf.max_repetition_level or leaf.max_definition_level > 1:
        return Encoding(0, 0, False, "nested columns are decoded by pyarrow")
    stored_as_is = physical in _stored_as(kind) and (kind.kind not in _TEMPORAL or _unit(leaf, kind) == kind.unit)
    reason = "" if stored_as_is else f"{kind} stored as {physical} is decoded by pyarrow"
    length = leaf.length if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    if length > 16 and kind.kind is Kind.DECIMAL:
        reason = "decimals stored in more than 16 bytes are decoded by pyarrow"
    return Encoding(_PHYSICAL[physical], length, leaf.max_definition_level == 1, reason)


def _stored_as(kind: DataType) -> tuple[str, ...]:
    """The physical types whose values are those of a type."""
    if kind.is_integer:
        return ("INT64",) if kind.bits == 64 else ("INT32",)
    match kind.kind:
        case Kind.BOOL:
            return ("BOOLEAN",)
        case Kind.FLOAT32:
            return ("FLOAT",)
        case Kind.FLOAT64:
            return ("DOUBLE",)
        case Kind.DATE:
            return ("INT32",)
        case Kind.TIME:
            return ("INT32",) if kind.unit in ("s", "ms") else ("INT64",)
        case Kind.TIMESTAMP | Kind.DURATION:
            return ("INT64",)
        case Kind.STRING:
            return ("BYTE_ARRAY",)
        case Kind.BINARY:
            return ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
        case Kind.DECIMAL if kind.precision <= DECIMAL64_DIGITS:
            return ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
        case Kind.DECIMAL:
            return ("FIXED_LEN_BYTE_ARRAY",)
        case _:
            return ()


def _unit(leaf: object, kind: DataType) -> str:
    """The unit that values are stored in; a duration is a plain integer, in the unit of its type."""
    return stored_unit(leaf) or (kind.unit if kind.kind is Kind.DURATION else "")
