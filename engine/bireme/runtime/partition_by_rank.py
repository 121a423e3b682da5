"""A partition of whose rows only those at some places of an order are wanted: cut by the order, looked at in few parts.

At which places they are is known when all of it was cut once. Then parts without such a place go unread; others are cut
again while they are too large, and given to tasks that pick, many at once. Everything lies in the holder of the
partition, where it can be demoted. Changes only on the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from bireme.data.ids import TaskId
from bireme.observe.event import PartitionRanked
from bireme.operators.base import Output, RankedStage, ordered_parts
from bireme.runtime.compute.policy import arranged_bytes, first_ranges_of, ordered_ranges_of
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.runtime.partition_cut import Cut, Part, is_alike, put_back, some_of, task_over

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline


class _Phase(IntEnum):
    CUTTING = 0
    TO_RANK = 1
    RANKING = 2
    PICKING = 3
    ENDING = 4


class PartitionByRank:
    """`part` of `holder`, taken by `live`; a task may need `share` bytes of memory."""

    def __init__(
        self, live: LivePipeline, stage: RankedStage, holder: BatchHolder, feed: Feed, part: Part, share: int
    ) -> None:
        self._live = live
        self._stage = stage
        self._holder = holder
        self._feed = feed
        self._share = share
        self._whole = Part(part.place, part.partition, part.within)
        nbytes, rows = _size(feed.parts[part.place])
        self._ranges = first_ranges_of(nbytes, share, rows=rows)
        self._cut: Cut | None = Cut(self._whole, stage.parts(self._ranges), nbytes)
        self._phase = _Phase.CUTTING
        self._left: deque[Part] = deque()
        self._first = 0  # how many rows come before those that are left
        self._picking: set[TaskId] = set()
        self._nbytes = nbytes
        self._read_bytes = 0
        self.is_over = False

    def has_input(self) -> bool:
        if self._cut is not None:
            return bool(self._feed.parts[self._cut.part.place])
        if self._phase is _Phase.PICKING:
            return bool(self._left) or not self._picking
        return self._phase is _Phase.TO_RANK

    @property
    def current(self) -> Part | None:
        """What the next tasks will take batches of."""
        if self._cut is not None:
            return self._cut.part
        return self._left[0] if self._left and self._phase is _Phase.PICKING else None

    # ---------------------------------------------------------------------------------------- tasks

    def next_task(self) -> Task:
        if self._phase is _Phase.TO_RANK:
            self._phase = _Phase.RANKING
            return self._task(TaskKind.CUT, 0, [], self._stage.rank)
        if self._cut is None and self._left:
            self._begin()
        if self._cut is not None:
            return self._cut_task(self._cut)
        return self._pick_task(self._left.popleft()) if self._left else self._last_task()

    def _begin(self) -> None:
        """Looks whether the first part that is left has to be cut."""
        part = self._left[0]
        if part.is_stuck or is_alike(part):
            return
        nbytes, rows = _size(self._feed.parts[part.place])
        into = ordered_ranges_of(nbytes, self._share, rows=rows)
        if into > 1:
            self._left.popleft()
            self._cut = Cut(part, ordered_parts(into), nbytes)
            self._ranges = into

    def _cut_task(self, cut: Cut) -> Task:
        stage, number, within = self._stage, cut.next_number(), cut.part.within
        if cut.part is self._whole:
            call = partial(stage.cut_first, within=within, into=self._ranges, number=number)
        else:
            call = partial(stage.cut, within=within, into=self._ranges)
        return self._task(TaskKind.CUT, number, some_of(self._feed, cut.part, self._share), call)

    def _pick_task(self, part: Part) -> Task:
        entries = self._feed.pop_part(part.place)
        nbytes, rows = _size(entries)
        are_alike = is_alike(part)
        if are_alike:
            self._let_go(entries[1:])
            nbytes = entries[0].batch.nbytes
        call = partial(self._stage.pick, first=self._first, rows=rows, are_alike=are_alike)
        task = self._task(TaskKind.CUT, 0, entries[:1] if are_alike else entries, call)
        task.known_need = arranged_bytes(nbytes, rows=task.rows_in)
        self._first += rows
        self._picking.add(task.id)
        self._read_bytes += nbytes
        self._pass_over()
        return task

    def _last_task(self) -> Task:
        live = self._live
        self._phase = _Phase.ENDING
        event = PartitionRanked(live.query, live.pipeline.id, self._holder.edge.id, self._nbytes, self._read_bytes)
        live.graph.recorder.record(event)
        call = partial(self._stage.end, sequence=live.next_input)
        task = self._task(TaskKind.BIT, live.next_input, [], call)
        task.is_repeatable = True
        live.next_input += 1
        live.number(task)
        return task

    def _task(self, kind: TaskKind, sequence: int, entries: list[Entry], call: Callable[..., Output]) -> Task:
        task = task_over(self._live, self._holder, kind, sequence, entries)
        task.call = call
        return task

    def _pass_over(self) -> None:
        """Lets go of the next parts, as long as nothing of them is wanted."""
        while self._left:
            entries = self._feed.parts[self._left[0].place]
            _, rows = _size(entries)
            if self._stage.wants(self._first, rows):
                return
            self._let_go(self._feed.pop_part(self._left.popleft().place))
            self._first += rows

    def _let_go(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._holder.consume(entry)

    # ---------------------------------------------------------------------------------- taking back

    def take_back(self, task: Task, result: Result, grant: Reservation) -> None:
        """A task of it has ended."""
        if task.kind is TaskKind.BIT:
            self.is_over = True
        elif task.kind is not TaskKind.CUT:
            return  # one over a whole partition before this one, that took longer
        elif task.id in self._picking:
            self._picking.remove(task.id)
        elif self._phase is _Phase.RANKING:
            self._phase = _Phase.PICKING
            self._pass_over()
        elif self._cut is not None:
            self._cut.take(task.sequence, put_back(self._live, self._holder, self._whole, result, grant))
            if self._cut.is_done(self._feed):
                self._end_cut(self._cut)

    def _end_cut(self, cut: Cut) -> None:
        self._cut = None
        self._left.extendleft(reversed(cut.end(self._live, self._holder, self._feed)))
        if cut.part is self._whole:
            self._phase = _Phase.TO_RANK
        else:
            self._pass_over()


def _size(entries: list[Entry]) -> tuple[int, int]:
    """Bytes and rows."""
    return sum([entry.batch.nbytes for entry in entries]), sum([entry.batch.rows for entry in entries])
