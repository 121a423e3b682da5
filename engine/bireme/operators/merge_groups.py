"""Merging the groups of a partition: all of it at once, or, where it is larger than memory, after a cut or bit by bit.

A cut spreads a partition's batches over finer ranges of the same hash. What no cut makes smaller has few keys, so that
the table of its groups is small however many batches there are: those are merged one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from bireme.backends.base import GroupTable, Kernels
from bireme.data.hash_range import HashRange
from bireme.data.record import record_batch, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.operators.parts import gathered
from bireme.operators.ranked_groups import RankedGroups
from bireme.operators.states import QueryStates
from bireme.plan.physical import MergeGroupsStep
from bireme.plan.states import is_holistic, is_input
from bireme.storage.base import BATCH_ROWS_MAX


class MergeGroups:
    """A `MergeGroupsStep` at work."""

    def __init__(self, step: MergeGroupsStep, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._step = step
        self._kernels = kernels
        self._states = states
        self._unended: dict[int, GroupTable] = {}
        # What takes groups with quantiles that are too large to be held.
        self.ranked = None if step.sample is None else RankedGroups(step, schema, kernels, states)

    @property
    def can_cut(self) -> bool:
        return bool(self._step.spec.key_types)

    @property
    def can_take_bits(self) -> bool:
        """Whether the table of few keys stays small, however many batches it was given."""
        return not is_holistic(self._step.spec)

    @property
    def nbytes(self) -> int:
        """Bytes of partitions that are not taken whole, as of their last batch."""
        ranked = 0 if self.ranked is None else self.ranked.nbytes
        return ranked + sum([table.nbytes for table in self._unended.values()])

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The groups of a whole partition."""
        states: list[pa.RecordBatch] = []
        rows: list[pa.RecordBatch] = []
        for batch in batches:
            (rows if _is_rows(batch) else states).append(batch)
        for groups in self._kernels.merge_groups(self._step.spec, states, rows):
            self._states.check()
            yield from self.named(groups)

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a partition, each with the part of its range that it belongs to."""
        for (_, part), rows in gathered(self._pieces(batches, within, into), self._kernels):
            yield part, rows

    def _pieces(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[tuple[bool, int], pa.RecordBatch]]:
        """By whether they are rows as they came, and their part."""
        keys = range(len(self._step.spec.key_types))
        for batch in map(with_own_dictionaries, batches):
            self._states.check()
            for part, piece in enumerate(self._kernels.partition(batch, keys, into, within)):
                yield (_is_rows(batch), part), piece

    def add(self, batches: Iterable[pa.RecordBatch], sequence: int) -> None:
        """Takes some batches of partition `sequence`, after those that it has had."""
        table = self._unended.get(sequence)
        if table is None:
            table = self._unended[sequence] = self._kernels.group_table(self._step.spec)
        for batch in batches:
            self._states.check()
            if _is_rows(batch):
                table.update(batch, 0)
            else:
                table.merge(batch)

    def end(self, sequence: int) -> Iterator[pa.RecordBatch]:
        """The groups of partition `sequence`, all of whose batches were added."""
        return self.named(self._unended.pop(sequence).finish())

    def named(self, groups: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Keys and results, as the step gives them."""
        return slices(record_batch(groups.columns, self._step.names, groups.num_rows), BATCH_ROWS_MAX)


def _is_rows(batch: pa.RecordBatch) -> bool:
    """Whether these are rows as they came, of which a partial grouping had nothing to gain."""
    return bool(batch.num_columns) and is_input(batch.schema.names)
