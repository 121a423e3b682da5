"""Ordering rows: all of a partition at once, or only the first few as they come.

The comparison itself is the kernels'. Sorting is stable: rows with equal keys keep the order in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data.record import concat
from bireme.data.schema import Schema
from bireme.operators.filter_project import KeyColumns
from bireme.operators.states import QueryStates
from bireme.plan.expr import SortKey

# A top-n reduces what it holds when it has this many rows more than it needs.
_SLACK_ROWS: Final = 65_536


class Order:
    """An order of rows, by key expressions."""

    def __init__(self, keys: Sequence[SortKey], schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._schema = schema
        self._kernels = kernels
        self._keys = KeyColumns([key.expr for key in keys], schema, kernels, states)
        self._descending = [key.descending for key in keys]
        self._nulls_first = [key.nulls_first for key in keys]

    def first(self, batches: Sequence[pa.RecordBatch], limit: int | None, offset: int = 0) -> pa.RecordBatch:
        """The rows of all batches in order; with `limit` only that many after the first `offset`."""
        batch = concat(batches, self._schema)
        wanted = None if limit is None else limit + offset
        rows = self._kernels.sort_rows(
            self._keys.run(batch), descending=self._descending, nulls_first=self._nulls_first, limit=wanted
        )
        return self._kernels.take(batch, rows[offset:])


class TopRows:
    """The first `limit` rows of a stream, kept by one compute slot.

    The order must end in a key that no two rows share (their position), so that reducing early loses nothing.
    """

    def __init__(self, order: Order, limit: int) -> None:
        self._order = order
        self._limit = limit
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    @property
    def nbytes(self) -> int:
        return sum(int(batch.nbytes) for batch in self._held)

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows > self._limit:
            batch = self._order.first([batch], self._limit)
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows > 2 * self._limit + _SLACK_ROWS:
            self._reduce()

    def _reduce(self) -> None:
        self._held = [self._order.first(self._held, self._limit)]
        self._rows = self._held[0].num_rows

    def rows(self) -> pa.RecordBatch | None:
        """The first rows in order, or None where nothing came."""
        if not self._held:
            return None
        self._reduce()
        return self._held[0]
