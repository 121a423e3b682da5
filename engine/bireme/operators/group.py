"""Grouping: one table per compute slot, and where splits are clustered by a key, whole groups straight on.

What is handed over at the end are states, which `MergeGroupsStep` merges. A clustered task has a table of its own:
groups that no other split can hold leave it with their results, the rest joins the slot's table. Where hardly any two
rows share a group, a slot gives its states up early and hands the other rows over as they come (`Gain`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from bireme.backends.base import GroupTable, Kernels
from bireme.data.record import record_batch, slices
from bireme.errors import SourceMisstated
from bireme.operators.base import Emission, Relievable
from bireme.operators.filter_project import FilterProject
from bireme.operators.states import QueryStates
from bireme.plan.physical import Finals, GroupSink
from bireme.plan.states import sees_order
from bireme.storage.base import BATCH_ROWS_MAX

# A task's rows are numbered within its sequence; a task never has as many as this.
SEQUENCE_SHIFT = 40
# Smaller tables stay in the second-level cache, so that grouping early costs little.
_GROUPS_LOOK_MIN: Final = 16_384
# With fewer groups only what is beyond doubt counts: that they would be too many if so many times the rows came. What
# is expected of rows is often too little, and a slot does not take back that it has given up.
_GROUPS_SURE_MIN: Final = 65_536
_ROWS_DOUBTED: Final = 16
_GROUPS_SHARE_MAX: Final = 0.5


class Group:
    """Groups rows, one table per slot."""

    def __init__(
        self, sink: GroupSink, partitions: int, kernels: Kernels, states: QueryStates, slots: int, rows_expected: int
    ) -> None:
        self._sink = sink
        self._partitions = partitions
        self._kernels = kernels
        self._tables: list[GroupTable | None] = [None] * (slots + 1)
        self._whole = None if sink.finals is None else WholeGroups(sink.finals, kernels, states)
        self._passing: list[GroupTable | None] = [None] * (slots + 1)
        # By slot: a table can be asked for its size only by the thread that fills it.
        self._held_bytes = [0] * (slots + 1)
        self._given_bytes = [0] * (slots + 1)
        self._gains = [Gain(rows_expected // slots) for _ in range(slots + 1)]
        # What has no order among rows can do without it when they are merged.
        self._may_pass = not any(sees_order(step.function) for step in sink.spec.aggregates)
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
        return sum(self._held_bytes)

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        whole = self._whole if self._whole is not None and self._whole.can_be_told else None
        table = self._table(self._tables if whole is None else self._passing, slot)
        position = sequence << SEQUENCE_SHIFT
        emissions: list[Emission] = []
        for batch in batches:
            if whole is None and self._gains[slot].is_lost:
                emissions += self._passed(batch)
                continue
            table.update(batch, position)
            position += batch.num_rows
            if whole is None and self._may_pass and self._gains[slot].lose(table.groups, batch.num_rows):
                emissions += self._handed_over(table)
                self._notes = (*table.fallbacks, "most rows have a key of their own: they were left to the merge")
        if whole is not None:
            emissions, rest = whole.take(table, sequence)
            if rest.num_rows:
                self._table(self._tables, slot).merge(rest)
        self._measure(slot)
        return emissions

    def _measure(self, slot: int) -> None:
        table, passing = self._tables[slot], self._passing[slot]
        kept = 0 if table is None else table.nbytes
        self._held_bytes[slot] = kept + (0 if passing is None else passing.nbytes)
        # A table without groups may have room for some, which it would only ask for again.
        self._given_bytes[slot] = kept if table is not None and table.groups else 0

    def _table(self, tables: list[GroupTable | None], slot: int) -> GroupTable:
        table = tables[slot]
        if table is None:
            table = tables[slot] = self._kernels.group_table(self._sink.spec)
            self._notes = table.fallbacks
        return table

    def _passed(self, batch: pa.RecordBatch) -> list[Emission]:
        parts = self._kernels.partition(batch, range(len(self._sink.spec.key_types)), self._partitions)
        return [Emission(self._sink.edge, index, part) for index, part in enumerate(parts) if part.num_rows]

    def _handed_over(self, table: GroupTable) -> list[Emission]:
        states = table.states(self._partitions)
        return [Emission(self._sink.edge, index, state) for index, state in enumerate(states) if state.num_rows]

    def relievable(self) -> Relievable:
        return Relievable(sum(self._given_bytes), max(self._given_bytes, default=0))

    def relief_parts(self) -> int:
        return len(self._tables)

    def relieve(self, part: int) -> list[Emission]:
        table = self._tables[part]
        if table is None or not table.groups:
            return []
        emissions = self._handed_over(table)
        self._gains[part].begin_anew()
        self._measure(part)
        return emissions

    def finish_parts(self) -> int:
        self._passing.clear()
        tables = [table for table in self._tables if table is not None]
        self._held_bytes = [table.nbytes for table in tables]
        self._tables = [*tables]
        return len(tables)

    def finish(self, part: int) -> list[Emission]:
        table, self._tables[part] = self._tables[part], None
        assert table is not None
        emissions = self._handed_over(table)
        self._held_bytes[part] = table.nbytes
        return emissions


class Gain:
    """What one slot gains by grouping early: whether rows become fewer by enough to pay for looking each up twice.

    From the groups among the rows so far follows how many keys there are, if rows draw them evenly, and from that how
    many groups there will be among all rows that are expected.
    """

    def __init__(self, rows_expected: int) -> None:
        self.is_lost = False
        self._rows_expected = rows_expected
        self._rows = 0
        self._next_look = 0

    def begin_anew(self) -> None:
        """The groups so far were handed over; what counts from here on are rows and groups from here on."""
        self._rows_expected -= self._rows
        self._rows = self._next_look = 0

    def lose(self, groups: int, rows: int) -> bool:
        """Takes account of `rows` more rows, with `groups` groups in all; says whether grouping should end."""
        self._rows += rows
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
