"""Values between batches and literals, one at a time; never for the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bireme.data.record import plain, record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType, Kind, to_arrow
from bireme.plan.expr import Interval, Literal


def literal_of(array: pa.Array, row: int, kind: DataType) -> Literal:
    """The value at `row` as a literal of type `kind`."""
    scalar = plain(array)[row]
    if not scalar.is_valid:
        return Literal(None, kind)
    if kind.kind is Kind.INTERVAL:
        months, days, nanoseconds = scalar.as_py()
        return Literal(Interval(months, days, nanoseconds), kind)
    if kind.kind is Kind.DURATION or (kind.kind in (Kind.TIMESTAMP, Kind.TIME) and kind.unit == "ns"):
        return Literal(scalar.value, kind)
    return Literal(_hashable(scalar.as_py()) if kind.is_nested else scalar.as_py(), kind)


def _hashable(value: Any) -> Any:
    """Lists as tuples, structs as tuples of names and values: constants are told apart by their hashes."""
    if isinstance(value, dict):
        return tuple([(name, _hashable(each)) for name, each in value.items()])
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


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
    """A constant list or struct as Python writes it."""
    if value is None or not kind.is_nested:
        return value
    if kind.kind is Kind.STRUCT:
        fields = dict(value)
        return {child.name: _opened(fields[child.name], child.type) for child in kind.children}
    return [_opened(each, kind.children[0].type) for each in value] if kind.kind is Kind.LIST else value
