"""Merging the groups of a partition: all of it at once, or, where it is larger than memory, after a cut or bit by bit.

A cut spreads a partition's batches over finer ranges of the same hash. What no cut makes smaller has few keys, so that
the table of its groups is small however many batches there are: those are merged one after the other. Where values are
collected it is as large as the values, which the query wants in one piece: they must fit, and are refused before they
take more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.base import GroupTable, Kernels
from bireme.data.batch import measure
from bireme.data.hash_range import HashRange
from bireme.data.record import record_batch, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.errors import ValueTooLarge
from bireme.operators.parts import gathered
from bireme.operators.ranked_groups import RankedGroups
from bireme.operators.states import QueryStates
from bireme.plan.physical import AggregateStep, MergeGroupsStep
from bireme.plan.states import COLLECTING, is_holistic, is_input
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.units import format_bytes

# Values are collected from their parts into one piece, and what becomes of that is a copy as well.
_COPIES_AT_ONCE: Final = 2


class MergeGroups:
    """A `MergeGroupsStep` at work."""

    def __init__(self, step: MergeGroupsStep, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._step = step
        self._kernels = kernels
        self._states = states
        self._unended: dict[int, GroupTable] = {}
        self._collecting = next((told(each) for each in step.spec.aggregates if each.function in COLLECTING), "")
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
        self._check_room(sum(map(measure, states)))
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

    def add(self, batches: Sequence[pa.RecordBatch], sequence: int) -> None:
        """Takes some batches of partition `sequence`, after those that it has had."""
        table = self._unended.get(sequence)
        if table is None:
            table = self._unended[sequence] = self._kernels.group_table(self._step.spec, is_lean=True)
        self._check_room(table.nbytes + sum(map(measure, batches)))
        for batch in batches:
            self._states.check()
            if _is_rows(batch):
                table.update(batch, 0)
            else:
                table.merge(batch)

    def _check_room(self, nbytes: int) -> None:
        """Raises ValueTooLarge where collected values of so many bytes cannot be put together."""
        room = self._states.memory_bytes // _COPIES_AT_ONCE
        if self._collecting and nbytes > room:
            raise ValueTooLarge(
                f"{self._collecting} has become {format_bytes(nbytes)} large or larger, in one group or few; a value "
                f"is put together in memory, where the limit of {format_bytes(self._states.memory_bytes)} has room for "
                f"{format_bytes(room)}; raise the memory limit, or aggregate less: filter rows, or group by more keys"
            )

    def end(self, sequence: int) -> Iterator[pa.RecordBatch]:
        """The groups of partition `sequence`, all of whose batches were added."""
        return self.named(self._unended.pop(sequence).finish())

    def named(self, groups: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Keys and results, as the step gives them."""
        return slices(record_batch(groups.columns, self._step.names, groups.num_rows), BATCH_ROWS_MAX)


def told(step: AggregateStep) -> str:
    """A collecting aggregate as a query has it: what is collected for which one says `plan.rules.spell_ordered`."""
    if step.function == "array_agg":
        return "a list of list() or array_agg()"
    is_text = not step.type.children[0].type.children
    return "a text of string_agg()" if is_text else "a list of list() or array_agg() with FILTER"


def _is_rows(batch: pa.RecordBatch) -> bool:
    """Whether these are rows as they came, of which a partial grouping had nothing to gain."""
    return bool(batch.num_columns) and is_input(batch.schema.names)
