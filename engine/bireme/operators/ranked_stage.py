"""A `RankedStage`: the calls over partitions whose quantiles are looked for in the order of the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from bireme.data.hash_range import HashRange
from bireme.operators.base import Output
from bireme.operators.merge_groups import MergeGroups
from bireme.operators.ranked_groups import RankedGroups

# Gives batches to parts of the edge that they come from.
Back = Callable[[Iterable[tuple[int, pa.RecordBatch]]], Output]
# Takes groups on from the step after their merge: batches, their sequence, and the slot.
GoOn = Callable[[Iterable[pa.RecordBatch], int, int], Output]


class RankedCalls:
    """Of the stage whose merge has `ranked` groups."""

    def __init__(self, merge: MergeGroups, ranked: RankedGroups, back: Back, go_on: GoOn) -> None:
        self._merge = merge
        self._ranked = ranked
        self._back = back
        self._go_on = go_on
        self.groups_expected = ranked.groups_expected
        self.parts = ranked.parts
        self.wants = ranked.wants

    def cut_first(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, number: int, slot: int
    ) -> Output:
        return self._back(self._ranked.cut_first(batches, within, into, number))

    def cut(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        return self._back(self._ranked.cut(batches, within, into))

    def rank(self, batches: Sequence[pa.RecordBatch], slot: int) -> Output:
        self._ranked.rank()
        return self._back(())

    def pick(self, batches: Sequence[pa.RecordBatch], first: int, rows: int, are_alike: bool, slot: int) -> Output:
        self._ranked.pick(batches, first, rows, are_alike=are_alike)
        return self._back(())

    def end(self, batches: Sequence[pa.RecordBatch], sequence: int, slot: int) -> Output:
        output = self._go_on(self._merge.named(self._ranked.groups()), sequence, slot)
        self._ranked.clear()
        return output


def ranked_calls(merge: MergeGroups, back: Back, go_on: GoOn) -> RankedCalls | None:
    """None where the merge has no quantiles."""
    return None if merge.ranked is None else RankedCalls(merge, merge.ranked, back, go_on)
