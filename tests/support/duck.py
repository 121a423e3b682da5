"""DuckDB as the oracle of kernels: SQL over the columns of one batch, and values compared as the engine means them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from bireme.data.record import to_result
from bireme.data.schema import Schema

RELATIVE_ERROR_MAX = 1e-12


class Duck:
    """A connection that is asked about batches; a batch is the table t there."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("set timezone = 'UTC'")
        self._tried: dict[tuple[tuple[str, ...], str], dict[str, list[Any]]] = {}

    def query(self, sql: str, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """The rows of a query; raises duckdb.Error."""
        plain = to_result(batch, Schema.from_arrow(batch.schema))
        self._connection.register("t", pa.Table.from_batches([plain]))
        try:
            answer = self._connection.sql(sql).to_arrow_table()
        finally:
            self._connection.unregister("t")
        return rows_of(answer.columns)

    def column(self, expression: str, batch: pa.RecordBatch) -> list[Any]:
        """The values of an expression, one a row."""
        return [row[0] for row in self.query(f"select {expression} from t", batch)]

    def tried(self, expressions: Sequence[str], batch: pa.RecordBatch) -> dict[str, list[Any]]:
        """The values of several expressions, with NULL where one fails. Asked once for equal arguments, because every
        backend is compared with the same answer.
        """
        key = (tuple(expressions), repr(batch.to_pylist()))
        if key not in self._tried:
            listed = ", ".join(f"try({expression}) as x{index}" for index, expression in enumerate(expressions))
            rows = self.query(f"select {listed} from t", batch)
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(expressions)
            self._tried[key] = {sql: list(column) for sql, column in zip(expressions, columns, strict=True)}
        return self._tried[key]

    def close(self) -> None:
        self._connection.close()


def rows_of(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[tuple[Any, ...]]:
    """Rows as tuples of comparable python values."""
    return list(zip(*(values_of(column) for column in columns), strict=True))


def values_of(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column; nanosecond timestamps as counts."""
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return array.to_pylist()


def same(left: Any, right: Any, error_max: float = RELATIVE_ERROR_MAX) -> bool:
    """Equality of values: NaN equals NaN, both zeros are equal, doubles within an error, decimals by value."""
    if left is None or right is None:
        return left is right
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=error_max, abs_tol=1e-300)
    if isinstance(left, dict) and isinstance(right, dict):
        left, right = [list(value.items()) for value in (left, right)]
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return len(left) == len(right) and all(same(a, b, error_max) for a, b in zip(left, right, strict=True))
    if isinstance(left, pa.MonthDayNano) and isinstance(right, pa.MonthDayNano):
        return tuple(left) == tuple(right)
    return bool(left == right)


def difference(got: Sequence[Any], wanted: Sequence[Any], error_max: float = RELATIVE_ERROR_MAX) -> str:
    """The first place where two lists of values differ, or ""."""
    if len(got) != len(wanted):
        return f"{len(got)} values, not {len(wanted)}"
    for row, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if not same(one, other, error_max):
            return f"row {row}: {one!r}, not {other!r}"
    return ""
