"""How types and constants are told to native programs: Arrow's format strings, and values as the bytes of a vector."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any, Final

from bireme.data.types import DECIMAL64_DIGITS, DataType, Kind

# Arrow's format strings; units and digits are put in by `format_of`.
_FORMATS: Final = {
    Kind.NULL: "n", Kind.BOOL: "b", Kind.INT8: "c", Kind.INT16: "s", Kind.INT32: "i", Kind.INT64: "l", Kind.UINT8: "C",
    Kind.UINT16: "S", Kind.UINT32: "I", Kind.UINT64: "L", Kind.FLOAT32: "f", Kind.FLOAT64: "g", Kind.DATE: "tdD",
    Kind.STRING: "u", Kind.BINARY: "z",
}  # fmt: skip
_UNIT_LETTERS: Final = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
_TICKS_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_EPOCH_MOMENT: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def format_of(kind: DataType) -> str | None:
    """The Arrow format of a type that programs compute with; None for others."""
    simple = _FORMATS.get(kind.kind)
    if simple is not None:
        return simple
    match kind.kind:
        case Kind.DECIMAL:
            return f"d:{kind.precision},{kind.scale}{',64' if kind.precision <= DECIMAL64_DIGITS else ''}"
        case Kind.TIMESTAMP:
            return f"ts{_UNIT_LETTERS[kind.unit]}:{kind.zone}"
        case Kind.TIME:
            return f"tt{_UNIT_LETTERS[kind.unit]}"
        case Kind.DURATION:
            return f"tD{_UNIT_LETTERS[kind.unit]}"
        case _:
            return None


def payload_of(value: Any, kind: DataType) -> bytes:
    """A literal's value as the bytes of one value in a vector."""
    match kind.kind:
        case Kind.BOOL:
            return b"\1" if value else b"\0"
        case Kind.FLOAT32:
            return struct.pack("<f", value)
        case Kind.FLOAT64:
            return struct.pack("<d", value)
        case Kind.STRING:
            return str(value).encode()
        case Kind.BINARY:
            return bytes(value)
        case Kind.DECIMAL:
            width = 8 if kind.precision <= DECIMAL64_DIGITS else 16
            return _unscaled(value, kind.scale).to_bytes(width, "little", signed=True)
        case Kind.DATE:
            days: int = value.toordinal() - _EPOCH
            return days.to_bytes(4, "little", signed=True)
        case Kind.TIME | Kind.TIMESTAMP | Kind.DURATION:
            width = 4 if kind.kind is Kind.TIME and kind.unit in ("s", "ms") else 8
            return _ticks(value, kind).to_bytes(width, "little", signed=True)
        case _:
            return int(value).to_bytes(kind.bits // 8, "little", signed=kind.is_signed)


def _unscaled(value: Decimal | int, scale: int) -> int:
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    shift = exponent + scale
    power: int = 10 ** abs(shift)
    unscaled = unscaled * power if shift >= 0 else unscaled // power
    return -unscaled if sign else unscaled


def _ticks(value: Any, kind: DataType) -> int:
    """A time, timestamp or duration as a count of its unit."""
    if isinstance(value, int):
        return value
    if isinstance(value, datetime.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        microseconds: int = seconds * 1_000_000 + value.microsecond
    else:
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        microseconds = int((naive - _EPOCH_MOMENT) // _MICROSECOND)
    return microseconds * _TICKS_A_SECOND[kind.unit] // 1_000_000
