"""Values between batches and literals, one at a time; never for the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bireme.data.record import plain, record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType, Kind, to_arrow
from bireme.errors import ConversionFault
from bireme.plan.expr import Interval, Literal


def literal_of(array: pa.Array, row: int, kind: DataType) -> Literal:
    """The value at `row` as a literal of type `kind`. Raises ConversionFault for what python cannot express."""
    try:
        return Literal(_value_of(plain(array)[row], kind), kind)
    except (ValueError, OverflowError) as error:
        raise ConversionFault(f"a value of type {kind} cannot become a constant: {error}") from None


def _value_of(scalar: pa.Scalar, kind: DataType) -> Any:
    """What is in a `Literal`, which has to be hashable: nested values as tuples, structs and maps as pairs of them."""
    if not scalar.is_valid:
        return None
    match kind.kind:
        case Kind.LIST:
            return tuple([_value_of(each, kind.children[0].type) for each in scalar.values])
        case Kind.STRUCT:
            if len({child.name for child in kind.children}) < len(kind.children):
                raise ValueError("two of its fields have one name")
            return tuple([(child.name, _value_of(scalar[at], child.type)) for at, child in enumerate(kind.children)])
        case Kind.MAP:
            key, item = kind.children
            return tuple([(_value_of(each[0], key.type), _value_of(each[1], item.type)) for each in scalar.values])
        case Kind.INTERVAL:
            return Interval(*scalar.as_py())
        case Kind.DURATION:
            return scalar.value
        case Kind.TIMESTAMP | Kind.TIME if kind.unit == "ns":
            return scalar.value
    return scalar.as_py()


def literal_batch(rows: Sequence[Sequence[Literal]], schema: Schema) -> pa.RecordBatch:
    """Literal rows as a batch."""
    arrays = []
    for index, field in enumerate(schema):
        values = [row[index].value for row in rows]
        arrays.append(_literal_column(values, field.type))
    return record_batch(arrays, schema.names, len(rows))


def _literal_column(values: Sequence[object], kind: DataType) -> pa.Array:
    arrow = to_arrow(kind)
    if kind.kind is Kind.DECIMAL:
        return pa.array(values, pa.decimal128(kind.precision, kind.scale)).cast(arrow)
    if kind.kind in (Kind.TIMESTAMP, Kind.TIME, Kind.DURATION) and any(isinstance(value, int) for value in values):
        width = pa.int32() if kind.kind is Kind.TIME and kind.unit in ("s", "ms") else pa.int64()
        return pa.array(values, width).cast(arrow)
    return pa.array([_opened(value, kind) for value in values] if kind.is_nested else values, arrow)


def _opened(value: Any, kind: DataType) -> Any:
    """A constant list, struct or map as Python writes it."""
    if value is None or not kind.is_nested:
        return value
    if kind.kind is Kind.STRUCT:
        fields = dict(value)
        return {child.name: _opened(fields[child.name], child.type) for child in kind.children}
    if kind.kind is Kind.MAP:
        key, item = kind.children
        return [(_opened(each, key.type), _opened(of, item.type)) for each, of in value]
    return [_opened(each, kind.children[0].type) for each in value]
