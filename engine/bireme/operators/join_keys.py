"""Keys of both sides of a join, of which none fails where there is no row to compare it with.

A key of a build row is computed before it is known whether anything will be looked up: its fault waits in the table
for the first row that is. A key of a stream row is not computed for a table without rows. Both are NULL instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import to_arrow
from bireme.errors import DataError
from bireme.operators.filter_project import KeyColumns
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Expr
from bireme.plan.raises import may_raise


class BuildKeys:
    """Computes the key columns of build rows; `fault` is that of some of them, if any failed."""

    def __init__(self, keys: Sequence[Expr], schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._exprs = keys
        self._keys = KeyColumns(keys, schema, kernels, states)
        self.fault: DataError | None = None

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return self._keys.run(batch)
        except DataError as fault:
            self.fault = fault
            return _no_keys(self._exprs, batch.num_rows)


class StreamKeys:
    """Computes the key columns of rows that are looked up in a table; raises the fault of its own keys first."""

    def __init__(
        self, keys: Sequence[Expr], schema: Schema, built: BuiltTable, kernels: Kernels, states: QueryStates
    ) -> None:
        self._exprs = keys
        self._keys = KeyColumns(keys, schema, kernels, states)
        self._fault = built.fault
        has_rows = built.batch.num_rows > 0 or built.away is not None
        self._is_asked = has_rows or not any(map(may_raise, keys))

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._fault is not None and batch.num_rows:
            raise self._fault
        return self._keys.run(batch) if self._is_asked else _no_keys(self._exprs, batch.num_rows)


def _no_keys(keys: Sequence[Expr], rows: int) -> pa.RecordBatch:
    names = tuple([f"k{index}" for index in range(len(keys))])
    return record_batch([pa.nulls(rows, to_arrow(key.type)) for key in keys], names, rows)
