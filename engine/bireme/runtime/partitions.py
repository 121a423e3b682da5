"""The partitions of an edge as one live pipeline takes them: whole, cut before, or bit by bit.

A partition whose task would need more than its share of memory is cut: tasks spread its batches, a few at a time, over
finer ranges of the same hash. What they make lies in the same holder, where it can be demoted, and becomes partitions
that are taken in place of the one. One that no cut makes smaller has few keys, and is taken a few batches at a time,
or, where the order of its rows or values matters, as `partition_in_order` and `partition_by_rank` tell. Which of these
is decided in `compute.policy`; this changes only on the loop.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from bireme.data.hash_range import HASH_PARTS_MAX, HashRange
from bireme.data.tier import Tier
from bireme.observe.event import PartitionInBits
from bireme.plan.physical import SortStep
from bireme.runtime.compute.policy import partition_share, parts_of, range_share
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.runtime.partition_by_rank import PartitionByRank
from bireme.runtime.partition_cut import Cut, Part, put_back, some_of, task_over
from bireme.runtime.partition_in_order import PartitionInOrder

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline


class _Bits:
    """A partition that is taken bit by bit, in order, under one sequence."""

    def __init__(self, part: Part, sequence: int) -> None:
        self.part = part
        self.sequence = sequence
        self.is_busy = False


class Partitions:
    """What `live` has yet to take of the partitions of `holder`."""

    def __init__(self, live: LivePipeline, holder: BatchHolder, feed: Feed) -> None:
        self._live = live
        self._holder = holder
        self._feed = feed
        count = holder.edge.partitions
        self._left = deque([Part(at, at, HashRange(at, count)) for at in range(count)])
        self._cut: Cut | None = None
        self._bits: _Bits | None = None
        self._ordered: PartitionInOrder | PartitionByRank | None = None

    @property
    def are_over(self) -> bool:
        """Whether everything was handed out, and no more can come of it."""
        is_between = self._cut is None and self._bits is None and self._ordered is None
        return self._holder.state.finished and not self._left and is_between

    def has_input(self) -> bool:
        if not self._holder.state.finished:
            return False
        if self._ordered is not None:
            return self._ordered.has_input()
        if self._cut is not None:
            return bool(self._feed.parts[self._cut.part.place])
        if self._bits is not None:
            return not self._bits.is_busy
        return bool(self._left)

    def upcoming(self, count: int) -> list[tuple[BatchHolder, Entry]]:
        """The batches that the next tasks will take, with their holder."""
        part = self._current
        entries = [] if part is None or not self.has_input() else self._feed.parts[part.place][:count]
        return [(self._holder, entry) for entry in entries]

    def are_near(self, partition: int) -> bool:
        """Whether a task will soon take batches of a partition of the edge."""
        part = self._current
        return part is not None and partition <= part.partition + self._live.graph.slots

    @property
    def _current(self) -> Part | None:
        if self._ordered is not None:
            return self._ordered.current
        if self._cut is not None:
            return self._cut.part
        if self._bits is not None:
            return self._bits.part
        return self._left[0] if self._left else None

    # ---------------------------------------------------------------------------------------- tasks

    def next_task(self) -> Task:
        """A task over the next partition, over a few batches of one that is cut, or over the next bit of one."""
        if self._cut is None and self._bits is None and self._ordered is None:
            self._begin()
        if self._ordered is not None:
            return self._ordered.next_task()
        if self._cut is not None:
            return self._cut_task(self._cut)
        if self._bits is not None:
            return self._bit_task(self._bits)
        live = self._live
        task = self._task(TaskKind.BATCHES, live.next_input, self._feed.pop_part(self._left.popleft().place))
        live.next_input += 1
        live.number(task)
        return task

    def _begin(self) -> None:
        """Looks how the next partition is to be taken; one that is taken whole stays first in line."""
        live, part = self._live, self._left[0]
        entries = self._feed.parts[part.place]
        nbytes = sum([entry.batch.nbytes for entry in entries])
        need = nbytes + live.costs.need_of_batches(nbytes)
        rows = sum([entry.batch.rows for entry in entries])
        into = parts_of(need, self._share, rows=rows)
        if into == 1 or len(self._holder.state.feeds) > 1:
            return
        can_cut = live.stage.can_cut()
        is_cut = can_cut and not part.is_stuck and part.within.total * into < HASH_PARTS_MAX
        if is_cut and not self._has_giants(part, nbytes, rows):
            self._left.popleft()
            self._cut = Cut(part, into, nbytes)
        elif live.stage.can_order():
            self._left.popleft()
            self._ordered = PartitionInOrder(live, self._holder, self._feed, part, self._range_share)
        elif (ranked := live.stage.ranked()) is not None:
            self._left.popleft()
            self._ordered = PartitionByRank(live, ranked, self._holder, self._feed, part, self._range_share)
        elif len(entries) > 1 and live.stage.can_take_bits():
            self._left.popleft()
            self._bits = _Bits(part, live.next_input)
            live.next_input += 1
            event = PartitionInBits(live.query, live.pipeline.id, self._holder.edge.id, nbytes, len(entries))
            live.graph.recorder.record(event)

    def _has_giants(self, part: Part, nbytes: int, rows: int) -> bool:
        """Whether its groups are so large that no cut by hashes would make them fit."""
        ranked = self._live.stage.ranked()
        return ranked is not None and nbytes > self._share * ranked.groups_expected(part.within, rows)

    @property
    def _range_share(self) -> int:
        graph = self._live.graph
        return range_share(graph.ledger.limits[Tier.DEVICE], slots=graph.slots)

    @property
    def _share(self) -> int:
        graph = self._live.graph
        steps = self._live.pipeline.steps
        share = range_share if steps and isinstance(steps[0], SortStep) else partition_share
        return share(graph.ledger.limits[Tier.DEVICE], slots=graph.slots)

    def _some(self, part: Part) -> list[Entry]:
        return some_of(self._feed, part, self._share)

    def _cut_task(self, cut: Cut) -> Task:
        task = self._task(TaskKind.CUT, cut.next_number(), self._some(cut.part))
        task.call = partial(self._live.stage.cut, within=cut.part.within, into=cut.into)
        return task

    def _bit_task(self, bits: _Bits) -> Task:
        task = self._task(TaskKind.BIT, bits.sequence, self._some(bits.part))
        bits.is_busy = True
        is_last = not self._feed.parts[bits.part.place]
        task.call = partial(self._live.stage.run_bit, sequence=bits.sequence, is_last=is_last)
        if is_last:
            self._live.number(task)
        return task

    def _task(self, kind: TaskKind, sequence: int, entries: list[Entry]) -> Task:
        return task_over(self._live, self._holder, kind, sequence, entries)

    # ---------------------------------------------------------------------------------- taking back

    def take_back(self, task: Task, result: Result, grant: Reservation) -> None:
        """A task of a cut, or over a bit, has ended."""
        if self._ordered is not None:
            self._ordered.take_back(task, result, grant)
            if self._ordered.is_over:
                self._ordered = None
        elif task.kind is TaskKind.BIT and self._bits is not None:
            self._bits.is_busy = False
            if task.place >= 0:
                self._bits = None
        elif task.kind is TaskKind.CUT and self._cut is not None:
            cut = self._cut
            cut.take(task.sequence, put_back(self._live, self._holder, cut.part, result, grant))
            if cut.is_done(self._feed):
                self._cut = None
                self._end_cut(cut)

    def _end_cut(self, cut: Cut) -> None:
        for part in reversed(cut.end(self._live, self._holder, self._feed)):
            self._left.appendleft(part)
