"""What the statistics of a row group prove about a column: bounds, and how many values are NULL.

Rule: a bound is given only where the Parquet format and the known faults of its writers leave no doubt; None means "not
known". Bounds are in the form of `plan.expr.Literal.value`. What follows from bounds is in `prune`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple

from bireme.data.key_range import EMPTY, INT64_MAX, INT64_MIN, KeyRange
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Value
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.physical_value import NANOSECONDS, Decoder, count_decoder, unscaled_decimal
from bireme.storage.prune import Bounds

_UNIT_NAMES: Final = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

_NUMBER_FORMATS: Final = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_OLD_ARROW: Final = re.compile(r"parquet-cpp-arrow version [0-3]\.")
# Its bounds of moments are moved by the time zone of whoever wrote the file.
_MOVED_MOMENTS: Final = re.compile(r"Parquet\.Net version [0-4]\.")

Raw = int | float | bytes | bool


class RawBounds(NamedTuple):
    """Statistics as they are stored, for one row group; comparable within one file and column, None where unusable."""

    low: Raw | None
    high: Raw | None
    nulls: int | None


def raw_bounds(file: ParquetFile, column: int) -> list[RawBounds]:
    """The stored statistics of a column that has one leaf, by row group."""
    (leaf,) = file.leaves[column]
    layout = _layout(file, column)
    order = _known_order(file, column, layout)
    found = []
    for group, rows in enumerate(file.row_group_rows):
        chunk = file.chunk(group, leaf)
        nulls = chunk.nulls if chunk.nulls is not None and 0 <= chunk.nulls <= rows else None
        low, high = None, None
        if order is _Order.OF_TYPE:
            low, high = chunk.low, chunk.high
        elif order is _Order.OLD:
            low, high = chunk.low_old, chunk.high_old
        found.append(RawBounds(*_stored_bounds(low, high, layout, file.schema[column].type), nulls))
    return found


class _Order(Enum):
    """Which of the stored bounds of a leaf are in the order of its type."""

    OF_TYPE = 0
    OLD = 1
    NONE = 2


def _known_order(file: ParquetFile, column: int, layout: str | None) -> _Order:
    """Old bounds were compared as signed numbers or bytes, whatever the type; they are good for signed numbers only.

    Arrow's C++ writer before 4.0.0 compared decimals of fixed length in a wrong way.
    """
    if layout is None and _OLD_ARROW.match(file.chunks.created_by):
        return _Order.NONE
    if file.schema[column].type.kind is Kind.TIMESTAMP and _MOVED_MOMENTS.match(file.chunks.created_by):
        return _Order.NONE
    (leaf,) = file.leaves[column]
    if leaf < len(file.chunks.has_order) and file.chunks.has_order[leaf]:
        return _Order.OF_TYPE
    return _Order.OLD if layout is not None and layout.islower() else _Order.NONE


def _stored_bounds(
    low: bytes | None, high: bytes | None, layout: str | None, kind: DataType
) -> tuple[Raw | None, Raw | None]:
    """Bounds in PLAIN encoding. Those outside of a narrow integer type are of values that readers cut down to it, and
    prove nothing of what is read.
    """
    bounds = _stored(low, layout), _stored(high, layout)
    if kind.is_integer and kind.bits < 32:
        least = -(1 << kind.bits - 1) if kind.is_signed else 0
        if any(isinstance(bound, int) and not least <= bound < least + (1 << kind.bits) for bound in bounds):
            return None, None
    return bounds


def _stored(raw: bytes | None, layout: str | None) -> Raw | None:
    """A bound in PLAIN encoding, without a length; None for one that is not of its type."""
    if raw is None or layout is None:
        return raw
    if len(raw) != struct.calcsize(layout):
        return None
    value: Raw = struct.unpack(layout, raw)[0]
    return value


def column_bounds(file: ParquetFile, column: int) -> list[Bounds]:
    """What is proved about a column in each row group."""
    decode_low, decode_high = low_decoder(file, column), high_decoder(file, column)
    if decode_low is None:
        return [Bounds(rows) for rows in file.row_group_rows]
    found = []
    for rows, raw in zip(file.row_group_rows, raw_bounds(file, column), strict=True):
        low = None if raw.low is None else decode_low(raw.low)
        high = None if raw.high is None or decode_high is None else decode_high(raw.high)
        found.append(Bounds(rows, low, high, raw.nulls))
    return found


def key_ranges(file: ParquetFile, column: int) -> list[KeyRange | None]:
    """The ranges of an integer, date or short decimal column by row group, as the integers it stores."""
    if len(file.leaves[column]) != 1 or not _is_key(file, column):
        return [None] * len(file.row_group_rows)
    return [_key_range(rows, raw) for rows, raw in zip(file.row_group_rows, raw_bounds(file, column), strict=True)]


def _is_key(file: ParquetFile, column: int) -> bool:
    kind, leaf = file.schema[column].type, file.metadata.schema.column(file.leaves[column][0])
    if kind.kind is Kind.TIMESTAMP and stored_unit(leaf) != kind.unit:
        return False
    if kind.kind is Kind.DECIMAL and kind.precision > 18:
        return False
    stored = leaf.physical_type in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
    return stored and (kind.is_integer or kind.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL))


def _key_range(rows: int, raw: RawBounds) -> KeyRange | None:
    if raw.nulls == rows:
        return EMPTY
    if raw.low is None or raw.high is None:
        return None
    low, high = _key(raw.low), _key(raw.high)
    return KeyRange(low, high) if low >= INT64_MIN and high <= INT64_MAX else None


def _key(raw: Raw) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


BoundsDecoder = Callable[[bytes | None, bytes | None, int | None, int], Bounds]


def bounds_decoder(file: ParquetFile, column: int) -> BoundsDecoder | None:
    """Turns stored bounds (minimum, maximum, NULLs, rows) in the order of a column's type into what they prove; None
    where nothing is known of that order.
    """
    decode_low, decode_high = low_decoder(file, column), high_decoder(file, column)
    if decode_low is None:
        return None
    layout = _layout(file, column)
    if _known_order(file, column, layout) is not _Order.OF_TYPE:
        return None

    def decode(low: bytes | None, high: bytes | None, nulls: int | None, rows: int) -> Bounds:
        stored_low, stored_high = _stored_bounds(low, high, layout, file.schema[column].type)
        return Bounds(
            rows,
            None if stored_low is None else decode_low(stored_low),
            None if stored_high is None or decode_high is None else decode_high(stored_high),
            nulls if nulls is not None and 0 <= nulls <= rows else None,
        )

    return decode


def _layout(file: ParquetFile, column: int) -> str | None:
    """The format of stored numbers of a column, for `struct`; None for what is stored as bytes."""
    kind = file.schema[column].type
    layout = _NUMBER_FORMATS.get(file.metadata.schema.column(file.leaves[column][0]).physical_type)
    return layout.upper() if layout is not None and kind.is_integer and not kind.is_signed else layout


def low_decoder(file: ParquetFile, column: int) -> Decoder | None:
    """Turns a stored minimum into a value; None for columns whose stored order is not ours."""
    if len(file.leaves[column]) != 1 or file.schema[column].type.is_nested:
        return None
    leaf = file.metadata.schema.column(file.leaves[column][0])
    return _decoder(file.schema[column].type, leaf, _string_low)


def high_decoder(file: ParquetFile, column: int) -> Decoder | None:
    """Turns a stored maximum into a value; None too for floats, where a NaN may lie above it."""
    if len(file.leaves[column]) != 1 or file.schema[column].type.is_nested or file.schema[column].type.is_float:
        return None
    leaf = file.metadata.schema.column(file.leaves[column][0])
    return _decoder(file.schema[column].type, leaf, _string_high)


def order_key(file: ParquetFile, column: int) -> tuple[str, Callable[[Any], Any]] | None:
    """How stored values compare: by the keys that a function gives, and with those of files that give the same name."""
    if low_decoder(file, column) is None:
        return None
    leaf = file.metadata.schema.column(file.leaves[column][0])
    physical = leaf.physical_type
    name = f"{physical} {stored_unit(leaf)}"
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return name, lambda raw: int.from_bytes(raw, "big", signed=True)
    return name, lambda raw: raw


def _decoder(kind: DataType, leaf: Any, string: Decoder) -> Decoder | None:
    physical = leaf.physical_type
    match kind.kind:
        case Kind.BOOL if physical == "BOOLEAN":
            return bool
        case _ if kind.is_integer and physical in ("INT32", "INT64"):
            return int
        case Kind.FLOAT32 | Kind.FLOAT64 if physical in ("FLOAT", "DOUBLE"):
            return _float
        case Kind.STRING if physical == "BYTE_ARRAY":
            return string
        case Kind.DECIMAL:
            return _decimal_decoder(kind.scale, physical)
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.DURATION if physical in ("INT32", "INT64"):
            return _time_decoder(kind, leaf)
        case _:
            return None


def _float(raw: float) -> Value:
    return None if raw != raw else float(raw)


def _string_low(raw: bytes) -> Value:
    """A minimum cut off in the middle of a character is still below every value without its last bytes."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return raw[: error.start].decode()


def _string_high(raw: bytes) -> Value:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _decimal_decoder(scale: int, physical: str) -> Decoder | None:
    if physical in ("INT32", "INT64"):
        return lambda raw: unscaled_decimal(int(raw), scale)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return lambda raw: unscaled_decimal(int.from_bytes(raw, "big", signed=True), scale)
    return None


def _time_decoder(kind: DataType, leaf: Any) -> Decoder | None:
    """Stored counts have the file's unit, which may be finer than that of the Arrow type (seconds)."""
    stored = stored_unit(leaf) or kind.unit
    decode = count_decoder(kind)
    if decode is None or stored == kind.unit:
        return decode
    numerator, denominator = NANOSECONDS[stored], NANOSECONDS[kind.unit]
    return lambda raw: decode(raw * numerator // denominator)


def stored_unit(leaf: Any) -> str | None:
    import json

    try:
        described = json.loads(leaf.logical_type.to_json())
    except (ValueError, AttributeError):
        return None
    return _UNIT_NAMES.get(described.get("timeUnit", ""))
