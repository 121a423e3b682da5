"""The types of columns: one system for SQL, DataFrame and kernels, and its Arrow equivalents.

What types functions accept and give is in `plan.functions`; what a cast does to values, in the backends.

In a batch every type has exactly one Arrow layout, given by `to_arrow`, with one freedom: a STRING column may also come
dictionary-encoded (`dictionary<int32, string>`). Decimals of up to 18 digits are `decimal64`, wider ones
`decimal128`; results that leave the engine show `decimal128` (`to_result_arrow`), the layout other tools read.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from bireme.data.choice import Choice
from bireme.data.node import Node, Role, node
from bireme.errors import Unsupported

DECIMAL64_DIGITS: Final = 18
DECIMAL128_DIGITS: Final = 38


class Kind(Choice):
    """The families of types. The values are their names in SQL messages and in saved plans."""

    NULL = "null"
    BOOL = "boolean"
    INT8 = "tinyint"
    INT16 = "smallint"
    INT32 = "integer"
    INT64 = "bigint"
    UINT8 = "utinyint"
    UINT16 = "usmallint"
    UINT32 = "uinteger"
    UINT64 = "ubigint"
    FLOAT32 = "float"
    FLOAT64 = "double"
    DECIMAL = "decimal"
    STRING = "varchar"
    BINARY = "blob"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    INTERVAL = "interval"
    LIST = "list"
    STRUCT = "struct"
    MAP = "map"


@node(role=Role.TYPE)
class DataType(Node):
    """A column type; equal types are the same object.

    `precision` and `scale` are those of DECIMAL. `unit` ("s", "ms", "us", "ns") is that of TIME, TIMESTAMP and
    DURATION, `zone` the time zone of TIMESTAMP ("" for none). `children` are the fields of a STRUCT, the one
    element of a LIST, or key and value of a MAP.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    unit: str = ""
    zone: str = ""
    children: tuple[Field, ...] = ()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        match self.kind:
            case Kind.DECIMAL:
                return f"decimal({self.precision},{self.scale})"
            case Kind.TIMESTAMP:
                zone = f" {self.zone}" if self.zone else ""
                return f"timestamp{'' if self.unit == 'us' else '_' + self.unit}{zone}"
            case Kind.TIME:
                return "time_ns" if self.unit == "ns" else "time"
            case Kind.LIST:
                return f"{self.children[0].type}[]"
            case Kind.STRUCT | Kind.MAP:
                return f"{self.kind.value}({', '.join(f'{child.name} {child.type}' for child in self.children)})"
            case _:
                return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in _INTEGER_BITS

    @property
    def is_signed(self) -> bool:
        return self.kind in (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)

    @property
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT32, Kind.FLOAT64)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.DECIMAL

    @property
    def is_temporal(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP)

    @property
    def is_nested(self) -> bool:
        return self.kind in (Kind.LIST, Kind.STRUCT, Kind.MAP)

    @property
    def bits(self) -> int:
        """The width of an integer or float type in bits."""
        return _INTEGER_BITS.get(self.kind) or (32 if self.kind is Kind.FLOAT32 else 64)

    @property
    def width_bytes(self) -> int:
        """Bytes of one value in a batch; for types of varying width a usual figure, for estimates."""
        return _WIDTHS.get(self.kind, 8 if self.precision <= DECIMAL64_DIGITS else 16)


@node
class Field(Node):
    """A named column of a schema, or a child of a nested type."""

    name: str
    type: DataType
    nullable: bool = True

    def __repr__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' not null'}"


_INTEGER_BITS: Final = {
    Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64,
    Kind.UINT8: 8, Kind.UINT16: 16, Kind.UINT32: 32, Kind.UINT64: 64,
}  # fmt: skip
# Strings: 16 bytes is the mean over TPC-H's columns without the comments; nested: a guess, used for hints only.
_WIDTHS: Final = {
    Kind.NULL: 1, Kind.BOOL: 1, Kind.INT8: 1, Kind.UINT8: 1, Kind.INT16: 2, Kind.UINT16: 2, Kind.INT32: 4,
    Kind.UINT32: 4, Kind.FLOAT32: 4, Kind.DATE: 4, Kind.STRING: 16, Kind.BINARY: 32, Kind.INTERVAL: 16,
    Kind.LIST: 64, Kind.STRUCT: 64, Kind.MAP: 64, Kind.INT64: 8, Kind.UINT64: 8, Kind.FLOAT64: 8, Kind.TIME: 8,
    Kind.TIMESTAMP: 8, Kind.DURATION: 8,
}  # fmt: skip

NULL: Final = DataType(Kind.NULL)
BOOL: Final = DataType(Kind.BOOL)
INT8: Final = DataType(Kind.INT8)
INT16: Final = DataType(Kind.INT16)
INT32: Final = DataType(Kind.INT32)
INT64: Final = DataType(Kind.INT64)
UINT8: Final = DataType(Kind.UINT8)
UINT16: Final = DataType(Kind.UINT16)
UINT32: Final = DataType(Kind.UINT32)
UINT64: Final = DataType(Kind.UINT64)
FLOAT32: Final = DataType(Kind.FLOAT32)
FLOAT64: Final = DataType(Kind.FLOAT64)
STRING: Final = DataType(Kind.STRING)
BINARY: Final = DataType(Kind.BINARY)
DATE: Final = DataType(Kind.DATE)
TIME: Final = DataType(Kind.TIME, unit="us")
TIMESTAMP: Final = DataType(Kind.TIMESTAMP, unit="us")
INTERVAL: Final = DataType(Kind.INTERVAL)
HUGEINT: Final = DataType(Kind.DECIMAL, precision=DECIMAL128_DIGITS, scale=0)


def decimal(precision: int, scale: int) -> DataType:
    """A decimal of `precision` digits in all (1 to 38), `scale` of them behind the point."""
    if not (1 <= precision <= DECIMAL128_DIGITS and 0 <= scale <= precision):
        raise Unsupported(
            f"decimal({precision},{scale}): a decimal has 1 to 38 digits, 0 to that many behind the point"
        )
    return DataType(Kind.DECIMAL, precision, scale)


def list_of(element: DataType) -> DataType:
    """A list of any number of elements."""
    return DataType(Kind.LIST, children=(Field("item", element),))


def timestamp(unit: str = "us", zone: str = "") -> DataType:
    """A timestamp that counts `unit` since 1970; with a `zone` it is an instant, without one a wall-clock time."""
    return DataType(Kind.TIMESTAMP, unit=unit, zone=zone)


_ARROW_SIMPLE: Final = {
    Kind.NULL: pa.null(), Kind.BOOL: pa.bool_(), Kind.INT8: pa.int8(), Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(), Kind.INT64: pa.int64(), Kind.UINT8: pa.uint8(), Kind.UINT16: pa.uint16(),
    Kind.UINT32: pa.uint32(), Kind.UINT64: pa.uint64(), Kind.FLOAT32: pa.float32(), Kind.FLOAT64: pa.float64(),
    Kind.STRING: pa.string(), Kind.BINARY: pa.binary(), Kind.DATE: pa.date32(),
    Kind.INTERVAL: pa.month_day_nano_interval(),
}  # fmt: skip
_FROM_ARROW_SIMPLE: Final = {arrow: DataType(kind) for kind, arrow in _ARROW_SIMPLE.items()} | {
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.float16(): FLOAT32,
    pa.date64(): DATE,
}


def to_arrow(kind: DataType) -> pa.DataType:
    """The Arrow layout of a type inside the engine."""
    match kind.kind:
        case Kind.DECIMAL if kind.precision <= DECIMAL64_DIGITS:
            return pa.decimal64(kind.precision, kind.scale)
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.TIME:
            return pa.time32(kind.unit) if kind.unit in ("s", "ms") else pa.time64(kind.unit)
        case Kind.TIMESTAMP:
            return pa.timestamp(kind.unit, tz=kind.zone or None)
        case Kind.DURATION:
            return pa.duration(kind.unit)
        case Kind.LIST:
            return pa.list_(field_to_arrow(kind.children[0]))
        case Kind.STRUCT:
            return pa.struct([field_to_arrow(child) for child in kind.children])
        case Kind.MAP:
            return pa.map_(to_arrow(kind.children[0].type), to_arrow(kind.children[1].type))
        case _:
            return _ARROW_SIMPLE[kind.kind]


def to_result_arrow(kind: DataType) -> pa.DataType:
    """The Arrow type of a column in results that leave the engine."""
    match kind.kind:
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.LIST:
            return pa.list_(_result_field(kind.children[0]))
        case Kind.STRUCT:
            return pa.struct([_result_field(child) for child in kind.children])
        case Kind.MAP:
            return pa.map_(to_result_arrow(kind.children[0].type), to_result_arrow(kind.children[1].type))
        case _:
            return to_arrow(kind)


def _result_field(field: Field) -> pa.Field:
    return pa.field(field.name, to_result_arrow(field.type))


def field_to_arrow(field: Field) -> pa.Field:
    """The Arrow field of a column inside the engine."""
    return pa.field(field.name, to_arrow(field.type))


def from_arrow(arrow: pa.DataType) -> DataType:
    """The type of Arrow data that comes in, whatever its layout (views, large offsets, dictionaries).

    Raises Unsupported, naming the Arrow type, for types the engine does not carry.
    """
    simple = _FROM_ARROW_SIMPLE.get(arrow)
    if simple is not None:
        return simple
    if pa.types.is_decimal(arrow):
        if arrow.precision > DECIMAL128_DIGITS or not 0 <= arrow.scale <= arrow.precision:
            raise Unsupported(f"{arrow} is not supported: decimals have at most 38 digits and a scale within them")
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return timestamp(arrow.unit, arrow.tz or "")
    if pa.types.is_time(arrow):
        return DataType(Kind.TIME, unit=arrow.unit)
    if pa.types.is_duration(arrow):
        return DataType(Kind.DURATION, unit=arrow.unit)
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    return _nested_from_arrow(arrow)


def _nested_from_arrow(arrow: pa.DataType) -> DataType:
    if pa.types.is_map(arrow):
        key, value = from_arrow(arrow.key_type), from_arrow(arrow.item_type)
        return DataType(Kind.MAP, children=(Field("key", key, False), Field("value", value)))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return DataType(Kind.LIST, children=(Field("item", from_arrow(arrow.value_type)),))
    if pa.types.is_struct(arrow):
        children = tuple(Field(child.name, from_arrow(child.type), child.nullable) for child in arrow)
        return DataType(Kind.STRUCT, children=children)
    raise Unsupported(f"columns of Arrow type {arrow} are not supported; cast the column before it is registered")
