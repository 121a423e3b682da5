"""Ordering rows: all of a partition at once, or only the first few as they come.

The comparison itself is the kernels'. Sorting is stable: rows with equal keys keep the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data.batch import measure
from bireme.data.record import empty, record_batch, select
from bireme.data.schema import Schema
from bireme.errors import ConversionFault
from bireme.operators.filter_project import FilterProject, KeyColumns
from bireme.operators.scalar_value import literal_of
from bireme.operators.states import QueryStates
from bireme.operators.top_bound import up_to
from bireme.plan.expr import Literal, SortKey
from bireme.plan.physical import ProgramStep
from bireme.plan.top_bound import is_bounding
from bireme.plan.tree import all_columns
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.units import MIB

# Sorted rows leave in batches of at most about so many bytes.
_PIECE_BYTES: Final = 16 * MIB
# A top-n reduces what it holds when it has this many rows more than it needs.
_SLACK_ROWS: Final = 8_192
# So many batches pass without a look at the threshold after one of which it dropped less than half.
_UNASKED_BATCHES: Final = 4


class Order:
    """An order of rows, by key expressions."""

    def __init__(self, keys: Sequence[SortKey], schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._schema = schema
        self._kernels = kernels
        self._states = states
        self._leading = keys[0] if keys else None
        self._keys = KeyColumns([key.expr for key in keys], schema, kernels, states)
        self._descending = [key.descending for key in keys]
        self._nulls_first = [key.nulls_first for key in keys]

    def first(self, batches: Sequence[pa.RecordBatch], limit: int | None, offset: int = 0) -> pa.RecordBatch:
        """The rows of all batches in order; with `limit` only that many after the first `offset`."""
        batch = self._kernels.joined(batches) if batches else empty(self._schema)
        wanted = None if limit is None else limit + offset
        rows = self._kernels.sort_rows(
            self._keys.run(batch), descending=self._descending, nulls_first=self._nulls_first, limit=wanted
        )
        return self._kernels.take(batch, rows[offset:])

    def in_pieces(self, batches: Sequence[pa.RecordBatch], limit: int | None, offset: int) -> Iterator[pa.RecordBatch]:
        """As `first`, in batches of bounded size with memory of their own. Rows are copied column by column, so that
        hardly more is needed than what comes and what goes.
        """
        keys = self._kernels.joined([self._keys.run(batch) for batch in batches]) if batches else None
        if keys is None or not keys.num_rows:
            return
        wanted = None if limit is None else limit + offset
        order = self._kernels.sort_rows(keys, descending=self._descending, nulls_first=self._nulls_first, limit=wanted)[
            offset:
        ]
        nbytes = sum([measure(batch) for batch in batches]) * len(order) // keys.num_rows
        del keys
        count = max(-(-len(order) // BATCH_ROWS_MAX), nbytes // _PIECE_BYTES, 1)
        cuts = [len(order) * part // count for part in range(count + 1)]
        orders = [order[start:end] for start, end in pairwise(cuts) if start < end]
        yield from self._taken(batches, orders)

    def _taken(self, batches: Sequence[pa.RecordBatch], orders: Sequence[pa.Int64Array]) -> Iterator[pa.RecordBatch]:
        columns: list[list[pa.Array]] = [[] for _ in orders]
        for index in range(batches[0].num_columns):
            self._states.check()
            column = self._kernels.joined([select(batch, [index], ("",)) for batch in batches])
            for taken, rows in zip(columns, orders, strict=True):
                taken.append(self._kernels.take(column, rows).column(0))
        for taken, rows in zip(columns, orders, strict=True):
            yield record_batch(taken, batches[0].schema.names, len(rows))

    def last(self, batch: pa.RecordBatch) -> Literal | None:
        """The first key of the last row of `batch`; None where no bound is made of its type, or none can be of it."""
        key = self._leading
        if key is None or not is_bounding(key.expr.type):
            return None
        try:
            return literal_of(self._keys.run(batch.slice(batch.num_rows - 1)).column(0), 0, key.expr.type)
        except ConversionFault:
            return None

    def threshold(self, last: Literal) -> FilterProject | None:
        """Drops rows that come after a row with this first key by that alone; None where that tells nothing."""
        assert self._leading is not None
        predicate = up_to(self._leading, last)
        if predicate is None:
            return None
        step = ProgramStep(predicate, all_columns(self._schema), self._schema.names)
        return FilterProject(step, self._schema, self._kernels, self._states)


class TopRows:
    """The first `limit` rows of a stream, kept by one compute slot.

    The order must end in a key that no two rows share (their position, the last column), so that reducing early loses
    nothing. Once it has `limit` rows, others are kept only if they do not come after the last of those; `learnt`, if
    given, is told of that one's first key and its position.
    """

    def __init__(self, order: Order, limit: int, learnt: Callable[[Literal, int], None] | None) -> None:
        self._order = order
        self._limit = limit
        self._learnt = learnt
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._knows_last = False
        # Of these rows a threshold is to be made when more come.
        self._first: pa.RecordBatch | None = None
        self._threshold: FilterProject | None = None
        self._unasked = 0  # batches to come that the threshold is not asked about, since it dropped little

    @property
    def nbytes(self) -> int:
        return sum(int(batch.nbytes) for batch in self._held)

    def add(self, batch: pa.RecordBatch) -> None:
        batch = self._remaining(batch)
        if not batch.num_rows:
            return
        if batch.num_rows > self._limit:
            batch = self._order.first([batch], self._limit)
            self._learn(batch)
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows > 2 * self._limit + (_SLACK_ROWS if self._knows_last else 0):
            self._reduce()

    def _reduce(self) -> None:
        self._held = [self._order.first(self._held, self._limit)]
        self._rows = self._held[0].num_rows
        self._learn(self._held[0])

    def _learn(self, first: pa.RecordBatch) -> None:
        """`first` are the first rows so far in order; they tell something once they are `limit`."""
        if not 0 < self._limit <= first.num_rows:
            return
        self._knows_last = True
        self._first = first
        if self._learnt is not None:
            self._take_threshold()

    def _take_threshold(self) -> None:
        """Makes the threshold of the last of the first rows."""
        first, self._first = self._first, None
        last = None if first is None else self._order.last(first)
        if first is None or last is None:
            return
        self._threshold = self._order.threshold(last)
        if self._learnt is not None:
            self._learnt(last, first.column(first.num_columns - 1)[first.num_rows - 1].as_py())

    def _remaining(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._take_threshold()
        if self._threshold is None or self._unasked:
            self._unasked = max(0, self._unasked - 1)
            return batch
        kept = self._threshold.run(batch)
        if kept.num_rows > batch.num_rows // 2:
            self._unasked = _UNASKED_BATCHES
        return kept

    def rows(self) -> pa.RecordBatch | None:
        """The first rows in order, or None where nothing came."""
        if not self._held:
            return None
        return self._order.first(self._held, self._limit)
