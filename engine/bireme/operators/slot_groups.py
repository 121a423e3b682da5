"""The groups of one compute slot: in one table, or once that is large, in one for each of some ranges of the hash.

Ranges bound what happens at once when memory is short: a table that grows makes the look-up of its range anew, and a
range's groups are handed over without the others. Where a table may take little in all, and where each sees only some
of the keys, tables are lean: the fast ways to look keys up take room for keys that do not come.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from bireme.backends.base import GroupTable, Kernels
from bireme.plan.physical import GroupSpec
from bireme.units import MIB

_RANGES: Final = 16
# The look-up of a table that is not lean takes up to a quarter of this before it has many keys.
_LEAN_BYTES: Final = MIB


class SlotGroups:
    """Calls come from one thread at a time, except that ranges may be handed over at once; sizes are as of the last
    call and may be asked for by any thread. A table of more than `table_bytes_max` is divided.
    """

    def __init__(self, spec: GroupSpec, kernels: Kernels, table_bytes_max: int) -> None:
        self._spec = spec
        self._kernels = kernels
        self._table_bytes_max = table_bytes_max
        self._keys = range(len(spec.key_types))
        self._tables: list[GroupTable] = [kernels.group_table(spec, is_lean=table_bytes_max < _LEAN_BYTES)]
        # What each table holds, and what its next growth takes; and what handing it over would give back.
        self._held = [0]
        self._given = [0]
        self.fallbacks = self._tables[0].fallbacks

    @property
    def groups(self) -> int:
        return sum([table.groups for table in self._tables])

    @property
    def ranges(self) -> int:
        return len(self._tables)

    @property
    def nbytes(self) -> int:
        return sum(self._held)

    @property
    def given_bytes(self) -> list[int]:
        """By range, what handing it over would give back."""
        return self._given

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        """Takes rows: keys, then arguments."""
        if len(self._tables) == 1:
            self._tables[0].update(batch, position)
            return
        for table, part in zip(self._tables, self._parted(batch), strict=True):
            if part.num_rows:
                table.update(part, position)

    def merge(self, states: pa.RecordBatch) -> None:
        """Takes states of groups."""
        if len(self._tables) == 1:
            self._tables[0].merge(states)
            return
        for table, part in zip(self._tables, self._parted(states), strict=True):
            if part.num_rows:
                table.merge(part)

    def _parted(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        return self._kernels.partition(batch, self._keys, len(self._tables))

    def settle_down(self, rows: int) -> None:
        """After a task with so many rows: divides what has become large, and looks how large everything is."""
        if len(self._tables) == 1 and self._keys and self._tables[0].nbytes > self._table_bytes_max:
            self._divide()
        for place in range(len(self._tables)):
            self._measure(place, rows // len(self._tables))

    def _divide(self) -> None:
        parts = self._tables.pop().states(_RANGES)
        parts.reverse()
        while parts:
            table = self._kernels.group_table(self._spec, is_lean=True)
            table.merge(parts.pop())
            self._tables.append(table)
        self._held, self._given = [0] * _RANGES, [0] * _RANGES

    def _measure(self, place: int, rows: int) -> None:
        table = self._tables[place]
        nbytes, groups = table.nbytes, table.groups
        self._held[place] = nbytes + (table.bytes_to_add(rows) if groups else 0)
        # A table without groups may have room for some, which it would only ask for again.
        self._given[place] = nbytes if groups else 0

    def hand_over(self, place: int, partitions: int) -> list[pa.RecordBatch]:
        """The states of a range's groups by partition; it has none afterwards. A call that runs out of memory has lost
        nothing.
        """
        table = self._tables[place]
        states = table.states(partitions) if table.groups else []
        # Its groups are not counted: that may take memory.
        self._held[place], self._given[place] = table.nbytes, 0
        return states
