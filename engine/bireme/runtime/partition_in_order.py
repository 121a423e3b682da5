"""A partition that is taken in the order of its rows, however large it is: cut by that order, arranged, and taken.

Parts that are too large are cut again. Then tasks bring one part each into order, many at once, or, of a part with
equal keys in all rows, some of its batches. When all of that is done, batches are taken one task after the other.
Everything lies in the holder of the partition, where it can be demoted. Changes only on the loop.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from bireme.data.ids import TaskId
from bireme.observe.event import PartitionInBits
from bireme.operators.base import ordered_parts
from bireme.runtime.compute.policy import arranged_bytes, ordered_ranges_of
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.runtime.partition_cut import Cut, Part, is_alike, put_back, some_of, task_over

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline


class PartitionInOrder:
    """`part` of `holder`, taken by `live`; a task may need `share` bytes of memory."""

    def __init__(self, live: LivePipeline, holder: BatchHolder, feed: Feed, part: Part, share: int) -> None:
        self._live = live
        self._holder = holder
        self._feed = feed
        self._share = share
        self._whole = Part(part.place, part.partition, part.within)
        self._left = deque([self._whole])
        self._cut: Cut | None = None
        self._ranges = 0  # that the cut is to give
        # The tasks that arrange; and by their numbers, what those that ended have made.
        self._arranging: set[TaskId] = set()
        self._arranged: dict[int, list[Entry]] = {}
        self._ordered: Part | None = None
        self._is_busy = False
        self.is_over = False

    def has_input(self) -> bool:
        if self._cut is not None:
            return bool(self._feed.parts[self._cut.part.place])
        if self._left:
            return True
        return self._ordered is not None and not self._is_busy

    @property
    def current(self) -> Part | None:
        """What the next tasks will take batches of."""
        if self._cut is not None:
            return self._cut.part
        return self._left[0] if self._left else self._ordered

    # ---------------------------------------------------------------------------------------- tasks

    def next_task(self) -> Task:
        if self._cut is None and self._left:
            self._begin()
        if self._cut is not None:
            return self._cut_task(self._cut)
        return self._arrange_task(self._left[0]) if self._left else self._bit_task()

    def _begin(self) -> None:
        """Looks whether the first part that is left has to be cut."""
        part = self._left[0]
        if part.is_stuck or is_alike(part):
            return
        entries = self._feed.parts[part.place]
        nbytes = sum([entry.batch.nbytes for entry in entries])
        into = ordered_ranges_of(nbytes, self._share, rows=sum([entry.batch.rows for entry in entries]))
        if into > 1:
            self._left.popleft()
            self._cut = Cut(part, ordered_parts(into), nbytes)
            self._ranges = into

    def _cut_task(self, cut: Cut) -> Task:
        task = self._task(TaskKind.CUT, cut.next_number(), some_of(self._feed, cut.part, self._share))
        task.call = partial(self._live.stage.cut_in_order, within=cut.part.within, into=self._ranges)
        return task

    def _arrange_task(self, part: Part) -> Task:
        are_alike = is_alike(part)
        entries = some_of(self._feed, part, self._share) if are_alike else self._feed.pop_part(part.place)
        if not self._feed.parts[part.place]:
            self._left.popleft()
        number = len(self._arranged) + len(self._arranging)
        task = self._task(TaskKind.CUT, number, entries)
        task.call = partial(self._live.stage.arrange, number=number, are_alike=are_alike)
        task.known_need = arranged_bytes(task.basis, rows=task.rows_in)
        self._arranging.add(task.id)
        return task

    def _bit_task(self) -> Task:
        assert self._ordered is not None
        live = self._live
        task = self._task(TaskKind.BIT, live.next_input, some_of(self._feed, self._ordered, self._share))
        live.next_input += 1
        live.number(task)
        task.is_repeatable = True
        self._is_busy = True
        is_last = not self._feed.parts[self._ordered.place]
        task.call = partial(live.stage.run_bit, sequence=task.sequence, is_last=is_last)
        return task

    def _task(self, kind: TaskKind, sequence: int, entries: list[Entry]) -> Task:
        return task_over(self._live, self._holder, kind, sequence, entries)

    # ---------------------------------------------------------------------------------- taking back

    def take_back(self, task: Task, result: Result, grant: Reservation) -> None:
        """A task of it has ended."""
        if task.kind is TaskKind.BIT:
            self._is_busy = False
            assert self._ordered is not None
            self.is_over = not self._feed.parts[self._ordered.place]
            return
        if task.kind is not TaskKind.CUT:
            return
        made = put_back(self._live, self._holder, self._whole, result, grant)
        if task.id in self._arranging:
            self._arranging.remove(task.id)
            self._arranged[task.sequence] = [entry for _, entry in made]
        elif (cut := self._cut) is not None:
            cut.take(task.sequence, made)
            if cut.is_done(self._feed):
                self._cut = None
                self._left.extendleft(reversed(cut.end(self._live, self._holder, self._feed)))
        if not (self._left or self._arranging or self._cut):
            self._go_in_order()

    def _go_in_order(self) -> None:
        """All parts are in order."""
        entries = [entry for number in sorted(self._arranged) for entry in self._arranged[number]]
        nbytes = sum([entry.batch.nbytes for entry in entries])
        live = self._live
        event = PartitionInBits(live.query, live.pipeline.id, self._holder.edge.id, nbytes, len(entries))
        live.graph.recorder.record(event)
        self._arranged.clear()
        self._ordered = Part(self._feed.add_part(entries), self._whole.partition, self._whole.within)
