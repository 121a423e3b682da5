"""Types as people write them in SQL: `decimal(15,2)`, `double precision`, `timestamp with time zone`, `integer[]`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from bireme.data import types as t
from bireme.data.types import DataType, Field, Kind
from bireme.errors import TypeFault
from bireme.plan.functions.naming import suggest

_DECIMAL_DEFAULT: Final = (18, 3)

_NAMES: Final[dict[str, DataType]] = {
    "null": t.NULL,
    "boolean": t.BOOL, "bool": t.BOOL, "logical": t.BOOL,
    "tinyint": t.INT8, "int1": t.INT8, "int8_t": t.INT8,
    "smallint": t.INT16, "int2": t.INT16, "short": t.INT16, "int16": t.INT16,
    "integer": t.INT32, "int": t.INT32, "int4": t.INT32, "signed": t.INT32, "int32": t.INT32,
    "bigint": t.INT64, "int8": t.INT64, "long": t.INT64, "int64": t.INT64,
    "hugeint": t.HUGEINT, "int128": t.HUGEINT,
    "utinyint": t.UINT8, "uint8": t.UINT8,
    "usmallint": t.UINT16, "uint16": t.UINT16,
    "uinteger": t.UINT32, "uint": t.UINT32, "uint32": t.UINT32,
    "ubigint": t.UINT64, "uint64": t.UINT64,
    "float": t.FLOAT32, "real": t.FLOAT32, "float4": t.FLOAT32, "float32": t.FLOAT32,
    "double": t.FLOAT64, "double precision": t.FLOAT64, "float8": t.FLOAT64, "float64": t.FLOAT64,
    "varchar": t.STRING, "string": t.STRING, "text": t.STRING, "char": t.STRING, "bpchar": t.STRING,
    "character": t.STRING, "character varying": t.STRING, "nvarchar": t.STRING,
    "blob": t.BINARY, "bytea": t.BINARY, "binary": t.BINARY, "varbinary": t.BINARY,
    "date": t.DATE,
    "time": t.TIME, "time without time zone": t.TIME, "time_ns": t.DataType(t.Kind.TIME, unit="ns"),
    "timestamp": t.TIMESTAMP, "datetime": t.TIMESTAMP, "timestamp_us": t.TIMESTAMP,
    "timestamp without time zone": t.TIMESTAMP,
    "timestamp_s": t.timestamp("s"), "timestamp_ms": t.timestamp("ms"), "timestamp_ns": t.timestamp("ns"),
    "timestamptz": t.timestamp("us", "UTC"), "timestamp with time zone": t.timestamp("us", "UTC"),
    "interval": t.INTERVAL,
}  # fmt: skip
_DECIMAL_NAMES: Final = frozenset({"decimal", "numeric", "dec"})
# Their length is accepted and means nothing, as in DuckDB.
_SIZED_NAMES: Final = frozenset({"varchar", "char", "bpchar", "character", "character varying", "nvarchar", "string"})

_SHAPE: Final = re.compile(r"\s*([a-z_][a-z_0-9 ]*?)\s*(?:\(([\d\s,]*)\))?\s*((?:\[\s*\]\s*)*)", re.IGNORECASE)


@lru_cache(maxsize=512)
def parse_type(text: str) -> DataType:
    """The type that `text` names; TypeFault, with the nearest name, for anything else."""
    matched = _SHAPE.fullmatch(text)
    if matched is None:
        raise TypeFault(f"cannot read {text!r} as a type; write for example integer, varchar or decimal(15,2)")
    name = " ".join(matched[1].lower().split())
    kind = _scalar_type(name, matched[2], text)
    for _ in range(matched[3].count("[")):
        kind = DataType(Kind.LIST, children=(Field("item", kind),))
    return kind


def _scalar_type(name: str, parameters: str | None, text: str) -> DataType:
    if name in _DECIMAL_NAMES:
        return _decimal_type(parameters, text)
    kind = _NAMES.get(name)
    if kind is None:
        raise TypeFault(f"there is no type {text!r}{suggest(name, [*_NAMES, *_DECIMAL_NAMES])}")
    if parameters is not None and name not in _SIZED_NAMES:
        raise TypeFault(f"the type {name} takes no parameters, so {text!r} cannot be read")
    return kind


def _decimal_type(parameters: str | None, text: str) -> DataType:
    if parameters is None:
        return t.decimal(*_DECIMAL_DEFAULT)
    numbers = [part.strip() for part in parameters.split(",")]
    if len(numbers) > 2 or not all(number.isdecimal() for number in numbers):
        raise TypeFault(f"cannot read {text!r} as a type; write decimal(precision, scale), as in decimal(15,2)")
    precision, scale = int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 0
    if not (1 <= precision <= t.DECIMAL128_DIGITS and scale <= precision):
        raise TypeFault(f"{text!r}: a decimal has 1 to 38 digits, 0 to that many behind the point")
    return t.decimal(precision, scale)
