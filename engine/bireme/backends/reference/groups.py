"""Group tables: they keep the states of the batches they were given, and merge them when they have become many, or,
where values are collected, once all are there.

What the states of each aggregate are and become is in `aggregates`; what columns they have, in `plan.states`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Settled
from bireme.backends.hash import hash_rows
from bireme.backends.reference.aggregates import AGGREGATES, check_supported
from bireme.backends.reference.collected import merged_lists
from bireme.backends.reference.keys import group_rows
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.rows import split, take_rows
from bireme.backends.reference.values import repeated
from bireme.backends.reference.vectors import integers, nulls_of
from bireme.data.key_range import KeyRange
from bireme.data.record import concat, empty, joined_column, plain, record_batch
from bireme.plan.physical import GroupSpec
from bireme.plan.states import COLLECTING, is_collecting, state_schema, state_types

_PENDING_ROWS_MAX: Final = 1 << 16


class ReferenceGroupTable:
    """Groups and their aggregates."""

    fallbacks: tuple[str, ...] = ()

    def __init__(self, spec: GroupSpec) -> None:
        for step in spec.aggregates:
            check_supported(step.function)
        self._spec = spec
        self._schema = state_schema(spec)
        self._width = len(spec.key_types)
        self._is_collecting = is_collecting(spec)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._merged_rows = self._nbytes = 0

    @property
    def groups(self) -> int:
        return self._distinct() if self._is_collecting else int(self._merged().num_rows)

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        """Takes rows: keys first, then arguments."""
        keys = [plain(batch.column(index)) for index in range(self._width)]
        ids, first = group_rows(keys, batch.num_rows)
        groups = Groups(ids, len(first))
        columns = [picked(key, first) for key in keys]
        for step in self._spec.aggregates:
            arg = None if step.arg is None else plain(batch.column(step.arg))
            columns += AGGREGATES[step.function][0](step, arg, groups, position)
        self._add(record_batch(columns, self._schema.names, len(first)))

    def bytes_to_add(self, groups: int) -> int:
        """Nothing: what comes is kept as it is."""
        return 0

    def merge(self, states: pa.RecordBatch) -> None:
        """Takes what `states` of any backend gave."""
        self._add(states)

    def _add(self, states: pa.RecordBatch) -> None:
        self._pending.append(states)
        self._pending_rows += states.num_rows
        self._nbytes += int(states.get_total_buffer_size())
        if self._pending_rows > 2 * self._merged_rows + _PENDING_ROWS_MAX and not self._is_collecting:
            self._merged()

    def _merged(self) -> pa.RecordBatch:
        """The states of all batches, one row a group."""
        if len(self._pending) != 1 or self._pending_rows != self._merged_rows:
            together = self._merge([*self._pending])
            self._keep_only(together)
            self._merged_rows = together.num_rows
        return self._pending[0]

    def _together(self) -> pa.RecordBatch:
        """The states of all batches: one row a group, unless values are collected."""
        if not self._is_collecting:
            return self._merged()
        if len(self._pending) != 1:
            self._keep_only(concat(self._pending, self._schema))
        return self._pending[0]

    def _keep_only(self, states: pa.RecordBatch) -> None:
        self._empty()
        self._pending, self._pending_rows = [states], states.num_rows
        self._nbytes = int(states.get_total_buffer_size())

    def _distinct(self) -> int:
        """How many groups there are among states that are not merged."""
        columns = zip(*[batch.columns[: self._width] for batch in self._pending], strict=True)
        return len(group_rows([plain(joined_column(list(chunks))) for chunks in columns], self._pending_rows)[1])

    def _merge(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        """The states of some batches, one row a group; takes them out of the list, and lists out of memory as it
        goes on.
        """
        if not batches:
            batches.append(empty(self._schema))
        rows = sum([batch.num_rows for batch in batches])
        columns = [[batch.column(index) for batch in batches] for index in range(len(self._schema.fields))]
        batches.clear()
        keys = [plain(joined_column(columns[index])) for index in range(self._width)]
        ids, first = group_rows(keys, rows)
        groups = Groups(ids, len(first))
        merged = [picked(key, first) for key in keys]
        at = self._width
        for step in self._spec.aggregates:
            width = len(state_types(step))
            if step.function in COLLECTING:
                positions = joined_column(columns[at + 1])
                merged += [merged_lists(step, columns[at], positions, groups), picked(positions, first)]
            else:
                parts = [plain(joined_column(columns[index])) for index in range(at, at + width)]
                merged += AGGREGATES[step.function][1](step, parts, groups)
            at += width
        return record_batch(merged, self._schema.names, len(first))

    def _empty(self) -> None:
        self._pending, self._pending_rows, self._merged_rows, self._nbytes = [], 0, 0, 0

    def states(self, partitions: int) -> list[pa.RecordBatch]:
        """Keys and states, split by the partition of the keys' hash."""
        states = self._together()
        keys = [states.column(index) for index in range(self._width)]
        parts = split(states, hash_rows(keys, states.num_rows), partitions)
        self._empty()
        return parts

    def settle(self, key: int, stated: KeyRange, final: KeyRange) -> Settled:
        """Results of the groups whose key lies in `final`, and states of the others."""
        states = self._together()
        self._empty()
        whole, values, known = (
            ReferenceGroupTable(self._spec),
            integers(states.column(key)),
            ~nulls_of(states.column(key)),
        )
        chosen, inside = (known & (values >= low) & (values <= high) for low, high in (final, stated))
        whole.merge(take_rows(states, np.flatnonzero(chosen)))
        return Settled(whole.finish(), take_rows(states, np.flatnonzero(~chosen)), int((known & ~inside).sum()))

    def finish(self) -> pa.RecordBatch:
        """Keys and results; one row without keys even if nothing came."""
        if not self._spec.key_types and not self._pending:
            self._keep_only(self._nothing())
        states = self._last()
        at = self._width
        columns = [states.column(index) for index in range(at)]
        if at == 0 and states.num_rows == 0:
            states = self._nothing()
        for step in self._spec.aggregates:
            width = len(state_types(step))
            parts = [states.column(index) for index in range(at, at + width)]
            columns.append(AGGREGATES[step.function][2](step, parts))
            at += width
        names = [f"c{index}" for index in range(len(columns))]
        return record_batch(columns, names, states.num_rows)

    def _last(self) -> pa.RecordBatch:
        """The states of all batches, one row a group, of which nothing is kept."""
        if not self._is_collecting:
            self._merged()
        batches = self._pending
        self._empty()
        return self._merge(batches) if self._is_collecting else batches[0]

    def _nothing(self) -> pa.RecordBatch:
        """The state of a single group without rows."""
        columns: list[pa.Array] = []
        for step in self._spec.aggregates:
            counted = step.function.startswith(("count", "var", "stddev"))
            for index, kind in enumerate(state_types(step)):
                zero = counted or (step.function == "avg" and index == 1)
                columns.append(repeated(0 if zero else None, kind, 1))
        return record_batch(columns, self._schema.names, 1)
