"""Grouping: each compute slot on its own, and where splits are clustered by a key, whole groups straight on.

What is handed over at the end are states, which `MergeGroupsStep` merges. A clustered task has a table of its own:
groups that no other split can hold leave it with their results, the rest joins the slot's table. Where hardly any two
rows share a group, a slot gives its states up early and hands the other rows over as they come (`Gain`). All rows
are handed over so where an aggregate needs the values of a group at once; and where values are collected, the states of
each task, which lists of all tasks would only repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import GroupTable, Kernels
from bireme.data import arrays
from bireme.data.record import compact, record_batch, slices, with_own_dictionaries
from bireme.errors import SourceMisstated
from bireme.operators.base import Emission, Relievable
from bireme.operators.filter_project import FilterProject
from bireme.operators.slot_groups import SlotGroups
from bireme.operators.states import QueryStates
from bireme.plan.physical import Finals, GroupSink
from bireme.plan.states import is_collecting, is_holistic, sees_order
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.units import KIB

if TYPE_CHECKING:
    from bireme.operators.ranges import NotedRows

# A task's rows are numbered within its sequence; a task never has as many as this.
SEQUENCE_SHIFT = 40
# Smaller tables stay in the second-level cache, so that grouping early costs little.
_GROUPS_LOOK_MIN: Final = 16_384
# With fewer groups only what is beyond doubt counts: that they would be too many if so many times the rows came. What
# is expected of rows is often too little, and a slot does not take back that it has given up.
_GROUPS_SURE_MIN: Final = 65_536
_ROWS_DOUBTED: Final = 16
_GROUPS_SHARE_MAX: Final = 0.5
# A table that takes more than such a part of the memory, by all slots, is divided into ranges.
_TABLES_IN_MEMORY: Final = 32
_TABLE_BYTES_MIN: Final = 256 * KIB


class Group:
    """Groups rows, slot by slot."""

    def __init__(
        self,
        sink: GroupSink,
        partitions: int,
        kernels: Kernels,
        states: QueryStates,
        slots: int,
        rows_expected: int,
        noted: NotedRows | None = None,
    ) -> None:
        self._sink = sink
        self._noted = noted
        self._partitions = partitions
        self._kernels = kernels
        self._table_bytes_max = max(_TABLE_BYTES_MIN, states.memory_bytes // (_TABLES_IN_MEMORY * slots))
        self._slots: list[SlotGroups | None] = [None] * (slots + 1)
        self._whole = None if sink.finals is None else WholeGroups(sink.finals, kernels, states)
        self._passing: list[GroupTable | None] = [None] * (slots + 1)
        # By slot: a table can be asked for its size only by the thread that fills it.
        self._passing_bytes = [0] * (slots + 1)
        is_lost = is_holistic(sink.spec)
        self._gains = [Gain(rows_expected // slots, is_lost) for _ in range(slots + 1)]
        self._is_collecting = is_collecting(sink.spec)
        # What has no order among rows can do without it when they are merged.
        self._may_pass = not any(sees_order(step.function) for step in sink.spec.aggregates)
        # What calls for the parts of a relief, or of the end, are about: a slot and a range of its hashes.
        self._leaving: list[tuple[int, int]] = []
        self._notes: tuple[str, ...] = ()

    @property
    def fallbacks(self) -> tuple[str, ...]:
        if self._whole is None or self._whole.can_be_told:
            return self._notes
        return (
            *self._notes,
            "clustering was dropped: the ranges of the key in splits overlap, or are not stated",
        )

    @property
    def nbytes(self) -> int:
        return sum([groups.nbytes for groups in self._slots if groups is not None], sum(self._passing_bytes))

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        if self._whole is not None and self._whole.can_be_told:
            return self._absorb_whole(self._whole, batches, sequence, slot)
        if self._noted is not None:
            batches = self._noted.passing(batches, slot)
        if self._is_collecting:
            return self._states_of(batches, sequence)
        groups, gain = self._groups(slot), self._gains[slot]
        position = sequence << SEQUENCE_SHIFT
        rows = 0
        emissions: list[Emission] = []
        for batch in batches:
            if gain.is_lost:
                emissions += self._passed(batch)
                continue
            groups.update(batch, position)
            position += batch.num_rows
            rows += batch.num_rows
            if self._may_pass and gain.lose(groups.groups, batch.num_rows):
                for place in range(groups.ranges):
                    emissions += self._handed_over(groups, place)
                self._notes = (*groups.fallbacks, "most rows have a key of their own: they were left to the merge")
        groups.settle_down(rows)
        return emissions

    def _absorb_whole(
        self, whole: WholeGroups, batches: Iterable[pa.RecordBatch], sequence: int, slot: int
    ) -> list[Emission]:
        table = self._passing[slot]
        if table is None:
            table = self._passing[slot] = self._kernels.group_table(self._sink.spec)
            self._notes = table.fallbacks
        position = sequence << SEQUENCE_SHIFT
        for batch in batches:
            table.update(batch, position)
            position += batch.num_rows
        emissions, rest = whole.take(table, sequence)
        if rest.num_rows and self._is_collecting:
            parts = self._kernels.partition(rest, range(len(self._sink.spec.key_types)), self._partitions)
            emissions += self._parted(parts)
        elif rest.num_rows:
            groups = self._groups(slot)
            groups.merge(rest)
            groups.settle_down(rest.num_rows)
        self._passing_bytes[slot] = table.nbytes
        return emissions

    def _states_of(self, batches: Iterable[pa.RecordBatch], sequence: int) -> list[Emission]:
        table = self._kernels.group_table(self._sink.spec)
        self._notes = table.fallbacks
        position = sequence << SEQUENCE_SHIFT
        for batch in batches:
            table.update(batch, position)
            position += batch.num_rows
        return self._parted([_moved(states, self._kernels) for states in table.states(self._partitions)])

    def _groups(self, slot: int) -> SlotGroups:
        groups = self._slots[slot]
        if groups is None:
            groups = self._slots[slot] = SlotGroups(self._sink.spec, self._kernels, self._table_bytes_max)
            self._notes = groups.fallbacks
        return groups

    def _passed(self, batch: pa.RecordBatch) -> list[Emission]:
        own = with_own_dictionaries(batch)
        parts = self._kernels.partition(own, range(len(self._sink.spec.key_types)), self._partitions)
        return [Emission(self._sink.edge, index, compact(part)) for index, part in enumerate(parts) if part.num_rows]

    def _handed_over(self, groups: SlotGroups, place: int) -> list[Emission]:
        return self._parted(groups.hand_over(place, self._partitions))

    def _parted(self, states: list[pa.RecordBatch]) -> list[Emission]:
        """States by partition, on their way to the merge."""
        return [Emission(self._sink.edge, index, state) for index, state in enumerate(states) if state.num_rows]

    def _given(self) -> Iterator[tuple[int, int, int]]:
        """Slot, range and bytes of all that could be given up."""
        for slot, groups in enumerate(self._slots):
            if groups is not None:
                yield from ((slot, place, nbytes) for place, nbytes in enumerate(groups.given_bytes) if nbytes)

    def relievable(self) -> Relievable:
        sizes = [nbytes for _, _, nbytes in self._given()]
        return Relievable(sum(sizes), max(sizes, default=0))

    def relief_parts(self) -> int:
        """At least half of what is there goes: the same ranges in all slots, the last ones first each time, so that
        the groups of the others stay.
        """
        found = sorted(self._given(), key=lambda part: (-part[1], part[0]))
        wanted, self._leaving = (sum([nbytes for _, _, nbytes in found]) + 1) // 2, []
        for slot, place, nbytes in found:
            if wanted <= 0 and place != self._leaving[-1][1]:
                break
            self._leaving.append((slot, place))
            wanted -= nbytes
        for slot in {slot for slot, _ in self._leaving}:
            self._gains[slot].begin_anew()
        return len(self._leaving)

    def relieve(self, part: int) -> list[Emission]:
        slot, place = self._leaving[part]
        groups = self._slots[slot]
        assert groups is not None
        return self._handed_over(groups, place)

    def finish_parts(self) -> int:
        self._passing.clear()
        self._passing_bytes.clear()
        found = [(slot, groups) for slot, groups in enumerate(self._slots) if groups is not None]
        self._leaving = [(slot, place) for slot, groups in found for place in range(groups.ranges)]
        return len(self._leaving)

    def finish(self, part: int) -> list[Emission]:
        slot, place = self._leaving[part]
        groups = self._slots[slot]
        assert groups is not None
        return self._handed_over(groups, place)


def _moved(states: pa.RecordBatch, kernels: Kernels) -> pa.RecordBatch:
    """The states with the values of their lists in memory of the kernels: they stay long, and what libraries keep of
    such memory after its end is more than is left beside a long list.
    """
    columns = [_moved_lists(each, kernels) if pa.types.is_list(each.type) else each for each in states.columns]
    return record_batch(columns, states.schema.names, states.num_rows)


def _moved_lists(lists: pa.Array, kernels: Kernels) -> pa.Array:
    first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    values = record_batch([lists.values], ("values",), len(lists.values))
    moved = kernels.take(values, arrays.from_numpy(np.arange(first, last)))
    offsets = arrays.from_numpy(arrays.to_numpy(lists.offsets) - first)
    mask = arrays.from_numpy(~arrays.is_valid(lists)) if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, moved.column(0), type=lists.type, mask=mask)


class Gain:
    """What one slot gains by grouping early: whether rows become fewer by enough to pay for looking each up twice.

    From the groups among the rows so far follows how many keys there are, if rows draw them evenly, and from that how
    many groups there will be among all rows that are expected.
    """

    def __init__(self, rows_expected: int, is_lost: bool = False) -> None:
        self.is_lost = is_lost
        self._rows_expected = rows_expected
        self._rows = 0
        self._next_look = 0
        self._begins_anew = False
        self._groups_before = 0

    def begin_anew(self) -> None:
        """Some groups were handed over; what counts from here on are rows and new groups from here on."""
        self._rows_expected -= self._rows
        self._rows = self._next_look = 0
        self._begins_anew = True

    def lose(self, groups: int, rows: int) -> bool:
        """Takes account of `rows` more rows, with `groups` groups in all; says whether grouping should end."""
        if self._begins_anew:
            # The rows of this once may have found groups again that are still there: they count as nothing.
            self._begins_anew, self._groups_before = False, groups
            return False
        self._rows += rows
        groups -= self._groups_before
        if groups < _GROUPS_LOOK_MIN or self._rows < self._next_look:
            return False
        self._next_look = 2 * self._rows
        rows_min = self._rows if groups >= _GROUPS_SURE_MIN else _ROWS_DOUBTED * self._rows
        self.is_lost = share_of_groups(groups, self._rows, max(self._rows_expected, rows_min)) > _GROUPS_SHARE_MAX
        return self.is_lost


def share_of_groups(groups: int, rows: int, rows_in_all: int) -> float:
    """The groups per row among all rows, where some of them had so many: with n rows of d keys, d (1 - exp(-n / d))."""
    low, high = 1e-9, 1e3  # rows per key
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _share(middle) > groups / rows else (low, middle)
    return _share(low * rows_in_all / rows)


def _share(rows_per_key: float) -> float:
    return -math.expm1(-rows_per_key) / rows_per_key


class WholeGroups:
    """Groups that are final when their split has passed, through the steps that follow them."""

    def __init__(self, finals: Finals, kernels: Kernels, states: QueryStates) -> None:
        self._finals = finals
        self._states = states
        pairs = zip(finals.steps, finals.schemas, strict=False)
        self._steps = [FilterProject(step, schema, kernels, states) for step, schema in pairs]

    @property
    def can_be_told(self) -> bool:
        """Whether the splits turned out to have keys of their own. Then every one is checked, also those with none."""
        return bool(self._states.clusters[self._finals.edge])

    def take(self, table: GroupTable, sequence: int) -> tuple[list[Emission], pa.RecordBatch]:
        """Whole groups of a split, on their way, and the states of the rest."""
        stated, final = self._states.clusters[self._finals.edge][sequence]
        settled = table.settle(self._finals.key, stated, final)
        if settled.outside:
            raise SourceMisstated(
                f"{settled.outside} values of column {self._finals.column + 1} in split {sequence} of a scan are not "
                f"between {stated.low} and {stated.high}, as its statistics say; write the file anew"
            )
        batch = record_batch(settled.finals.columns, self._finals.schemas[0].names, settled.finals.num_rows)
        for step in self._steps:
            batch = step.run(batch)
        pieces = slices(batch, BATCH_ROWS_MAX) if batch.num_rows else ()
        return [Emission(self._finals.edge, 0, piece) for piece in pieces], settled.states
