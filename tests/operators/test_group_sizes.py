"""Group tables are asked for their size only by the thread that fills them: they are being changed."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa

from bireme.config import Levers
from bireme.data.ids import EdgeId
from bireme.data.types import INT64
from bireme.operators.group import Group
from bireme.operators.states import QueryStates
from bireme.plan.physical import GroupSink, GroupSpec

BATCH = pa.record_batch({"k": pa.array([1, 2, 3], pa.int64())})


class OwnedTable:
    """A group table that belongs to the thread that made it."""

    fallbacks = ()
    groups = 3

    def __init__(self) -> None:
        self._owner = threading.get_ident()
        self._updates = 0

    @property
    def nbytes(self) -> int:
        assert threading.get_ident() == self._owner, "asked by a thread that does not fill it"
        return 100 * self._updates

    def bytes_to_add(self, groups: int) -> int:
        assert threading.get_ident() == self._owner, "asked by a thread that does not fill it"
        return 0

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        self._updates += 1


class Kernels:
    """Makes such tables."""

    def group_table(self, spec: GroupSpec, *, is_lean: bool = False) -> OwnedTable:
        return OwnedTable()


def test_a_table_is_asked_for_its_size_only_by_its_own_thread() -> None:
    sink = GroupSink(EdgeId(1), GroupSpec((INT64,), ()))
    kernels: Any = Kernels()
    group = Group(sink, 1, kernels, QueryStates(Levers()), 2, 1_000_000)
    sizes: list[int] = []

    def fill(slot: int, count: int) -> None:
        group.absorb([BATCH] * count, slot, slot)
        sizes.append(group.nbytes)

    for slot, count in ((0, 1), (1, 2), (0, 3)):
        # One thread a slot, as the runtime has it: slot 0 comes back on the main thread.
        if slot == 1:
            thread = threading.Thread(target=fill, args=(slot, count))
            thread.start()
            thread.join(timeout=10)
        else:
            fill(slot, count)
    assert sizes == [100, 300, 600]
