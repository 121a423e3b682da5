"""Leaving out rows that cannot be among the first of their key, slot by slot, on the way to the window that ranks them.

A slot remembers the first values of each key that it has met. It costs a look-up a row, and pays where keys have many
more rows than are wanted: a slot foretells that from the keys among its rows, as a grouping does, and looks at what it
drops. Where it gains too little, or the values take too much memory, all further rows go on.
"""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa

from bireme.backends.base import FirstValues, Kernels
from bireme.data.schema import Schema
from bireme.operators.filter_project import KeyColumns
from bireme.operators.group import share_of_groups
from bireme.operators.states import QueryStates
from bireme.plan.top_per_key import TopPerKey

_ROWS_LOOK_MIN: Final = 32_768
# What goes on is sorted, which costs several times as much as the look-up.
_SHARE_KEPT_MAX: Final = 0.75
# With so many rows for each one that is wanted, what is kept of new ones is as it will be: equal values, mostly.
_SURE_ROWS_PER_KEY: Final = 16
# All slots together may take such a part of the memory.
_PART_OF_MEMORY: Final = 16


class DropBeyondTop:
    """A `TopPerKey` at work. A batch of a slot comes after the last one has returned."""

    def __init__(
        self, top: TopPerKey, schema: Schema, kernels: Kernels, states: QueryStates, slots: int, rows_expected: int
    ) -> None:
        self._top = top
        self._kernels = kernels
        self._exprs = (*top.keys, top.order.expr)
        self._keys = KeyColumns(self._exprs, schema, kernels, states)
        self._bytes_max = states.memory_bytes // (_PART_OF_MEMORY * slots)
        self._rows_expected = rows_expected // slots
        self._slots: list[_Slot | None] = [None] * (slots + 1)
        self.notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum([slot.nbytes for slot in self._slots if slot is not None])

    def run(self, batch: pa.RecordBatch, slot: int) -> pa.RecordBatch:
        """The rows of a batch that may be wanted, in their order."""
        at_work = self._slots[slot]
        if at_work is None:
            at_work = self._slots[slot] = _Slot(self._kernels.top_per_key(self._top), self._rows_expected)
        if at_work.values is None:
            return batch
        kept = at_work.values.keep(self._keys.run(batch))
        if at_work.is_lost(batch.num_rows, len(kept), self._top.limit) or at_work.nbytes > self._bytes_max:
            at_work.give_up()
            self.notes = ("most rows may be among the first of their key: they were left to the window",)
        return batch if len(kept) == batch.num_rows else self._kernels.take(batch, kept)

    def forget(self, slot: int) -> None:
        """Begins anew: rows that a slot has met have not all gone on."""
        self._slots[slot] = None


class _Slot:
    """What a slot remembers, and how much that has brought."""

    def __init__(self, values: FirstValues | None, rows_expected: int) -> None:
        self.values = values
        self.nbytes = 0
        self._rows_expected = rows_expected
        self._rows = 0
        self._next_look = _ROWS_LOOK_MIN
        self._rows_since = 0
        self._kept_since = 0

    def is_lost(self, rows: int, kept: int, limit: int) -> bool:
        """Takes account of a batch; says whether to remember further values brings too little."""
        assert self.values is not None
        self.nbytes = self.values.nbytes
        self._rows += rows
        self._rows_since += rows
        self._kept_since += kept
        if self._rows < self._next_look:
            return False
        keys, share_kept = self.values.keys, self._kept_since / self._rows_since
        self._next_look, self._rows_since, self._kept_since = 2 * self._rows, 0, 0
        if share_kept <= _SHARE_KEPT_MAX:
            return False
        # Keys that are new are what the first rows of a slot are, however few there are in all.
        rows_per_key = 1 / share_of_groups(keys, self._rows, max(self._rows_expected, self._rows))
        is_foretold = share_that_stays(limit, rows_per_key) > _SHARE_KEPT_MAX
        return is_foretold or self._rows > _SURE_ROWS_PER_KEY * limit * keys

    def give_up(self) -> None:
        self.values, self.nbytes = None, 0


def share_that_stays(limit: int, rows_per_key: float) -> float:
    """Of rows in random order, those that are among the first `limit` of their key when they come: the m-th of them is
    with a chance of limit / m.
    """
    if rows_per_key <= limit:
        return 1.0
    return limit * (1 + math.log(rows_per_key / limit)) / rows_per_key
