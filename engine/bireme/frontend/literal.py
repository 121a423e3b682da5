"""Python values as typed literals, and what people write for a type."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bireme.data import types
from bireme.data.exact_decimal import EXACT
from bireme.data.types import BINARY, BOOL, DATE, FLOAT64, INT32, INT64, INTERVAL, NULL, STRING, DataType
from bireme.errors import ArgumentFault
from bireme.plan.expr import Interval, Literal
from bireme.plan.functions import parse_type

_PYTHON_TYPES: Final[dict[type, DataType]] = {
    bool: BOOL,
    int: INT64,
    float: FLOAT64,
    str: STRING,
    bytes: BINARY,
    datetime.date: DATE,
    datetime.datetime: types.TIMESTAMP,
    datetime.time: types.TIME,
    datetime.timedelta: INTERVAL,
}


def literal(value: Any) -> Literal:
    """The literal of a Python value. Raises ArgumentFault for values that are no column value."""
    make = _MAKERS.get(type(value))
    if make is None:
        make = next((maker for kind, maker in _MAKERS.items() if isinstance(value, kind)), None)
    if make is None:
        scalar = getattr(value, "item", None)  # numpy and pyarrow scalars
        if callable(scalar):
            return literal(scalar())
        if isinstance(value, pa.Scalar):
            return literal(value.as_py())
        raise ArgumentFault(
            f"a {type(value).__name__} cannot be a constant in an expression; use lit() with a plain value"
        )
    return make(value)


def _integer(value: int) -> Literal:
    if -(1 << 31) <= value < 1 << 31:
        return Literal(value, INT32)
    if -(1 << 63) <= value < 1 << 63:
        return Literal(value, INT64)
    if abs(value) < 10**types.DECIMAL128_DIGITS:
        return Literal(Decimal(value), types.HUGEINT)
    raise ArgumentFault(f"{value} has more than 38 digits; use a float or a text")


def _decimal(value: Decimal) -> Literal:
    if not value.is_finite():
        raise ArgumentFault(f"{value} is no decimal value; use a float for NaN and infinity")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > types.DECIMAL128_DIGITS:
        raise ArgumentFault(f"{value} has more than 38 digits; use a float")
    return Literal(value.quantize(Decimal((0, (1,), -scale)), context=EXACT), types.decimal(precision, scale))


def _datetime(value: datetime.datetime) -> Literal:
    if value.tzinfo is None:
        return Literal(value, types.TIMESTAMP)
    return Literal(value.astimezone(datetime.UTC), types.timestamp("us", "UTC"))


def _timedelta(value: datetime.timedelta) -> Literal:
    return Literal(Interval(0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000), INTERVAL)


_MAKERS: Final[dict[type, Callable[[Any], Literal]]] = {
    type(None): lambda value: Literal(None, NULL),
    bool: lambda value: Literal(value, BOOL),
    int: _integer,
    float: lambda value: Literal(value, FLOAT64),
    str: lambda value: Literal(value, STRING),
    bytes: lambda value: Literal(value, BINARY),
    Decimal: _decimal,
    # datetime is a date, so it comes first.
    datetime.datetime: _datetime,
    datetime.date: lambda value: Literal(value, DATE),
    datetime.time: lambda value: Literal(value, types.TIME),
    datetime.timedelta: _timedelta,
    Interval: lambda value: Literal(value, INTERVAL),
}


def data_type(written: Any) -> DataType:
    """The type meant by a `DataType`, a SQL name such as `decimal(15,2)`, a Python type or an Arrow type."""
    if isinstance(written, DataType):
        return written
    if isinstance(written, str):
        return parse_type(written)
    if isinstance(written, type) and written in _PYTHON_TYPES:
        return _PYTHON_TYPES[written]
    if isinstance(written, pa.DataType):
        return types.from_arrow(written)
    raise ArgumentFault(f"{written!r} is no type; write for example 'bigint', 'decimal(15,2)', int or pa.int64()")
