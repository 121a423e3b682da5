"""One pipeline of a Dag, live on this worker: which input comes next, what is out, and when it ends.

A supplier of tasks for Compute. It changes only on the loop, through `graph`, which owns it. What a task does with
an input is the `Stage`; where outputs wait is the Batch Holder.

Phases go one way: WAITING for what must be done before, OPEN for inputs, FINISHING its parts, STOPPING (nobody wants
more, calls still run), ENDED.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from bireme.data.ids import EventId, QueryId
from bireme.observe.event import NO_CAUSE, PipelineEnded, TaskRetried
from bireme.operators.base import Stage
from bireme.plan.physical import (
    BuildSink,
    EdgeSource,
    EmitSink,
    LimitStep,
    MatchSink,
    Pipeline,
    SampleSink,
    Take,
)
from bireme.runtime.compute.task import Result, SplitInput, Task, TaskKind
from bireme.runtime.costs import Costs
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.runtime.next_inputs import batch_task, next_batches, run_is_due, split_task
from bireme.runtime.outputs import keep_columns, note_dropped, put_nothing, put_outputs
from bireme.runtime.partitions import Partitions
from bireme.runtime.preload.shared import SharedBytes
from bireme.runtime.relief import Relief, keeps_too_much, tell_relievable
from bireme.runtime.rounds import Rounds
from bireme.storage.base import Split

if TYPE_CHECKING:
    from bireme.runtime.graph import Graph


class Phase(IntEnum):
    WAITING = 0
    OPENING = 1
    OPEN = 2
    FINISHING = 3
    STOPPING = 4
    ENDED = 5


class LivePipeline:
    """`inputs_max` is how many inputs there will be; None while only the edge knows."""

    def __init__(self, graph: Graph, pipeline: Pipeline, stage: Stage, rank: tuple[int, ...]) -> None:
        self.graph = graph
        self.pipeline = pipeline
        self.stage = stage
        self.rank = rank
        self.listed = False
        self.dirty = False
        self.phase = Phase.WAITING
        self.source: BatchHolder | None = None
        self.feed: Feed | None = None
        self.partitions: Partitions | None = None
        self.sinks: list[tuple[BatchHolder, int]] = []
        self.dependents: list[LivePipeline] = []
        self.splits: Sequence[Split] = ()
        self.loaded: dict[int, SplitInput] = {}
        self.shared: SharedBytes | None = None
        self.fetch_next = 0
        self.fetching = 0
        self.is_kept = False
        self.inputs_max: int | None = None
        self.next_input = 0
        self.next_place = 0
        self.in_flight = 0
        self.parts = 0
        self.next_part = 0
        self.parts_done = 0
        self._how = "done"
        self._requeued: deque[Task] = deque()
        self.relief: Relief | None = None
        self.rounds: Rounds | None = None
        self.costs = Costs(graph.ledger, pipeline)

    def __repr__(self) -> str:
        return f"<{self.pipeline.name}, {self.phase.name.lower()}>"

    @property
    def query(self) -> QueryId:
        return self.graph.query

    @property
    def take(self) -> Take | None:
        source = self.pipeline.source
        return source.take if isinstance(source, EdgeSource) else None

    @property
    def repeatable(self) -> bool:
        """Whether a call that ran out of memory can be made again: it must not have changed what it keeps."""
        pipeline = self.pipeline
        if any(isinstance(step, LimitStep) for step in pipeline.steps):
            return False
        return isinstance(pipeline.sink, EmitSink | SampleSink | MatchSink | BuildSink)

    @property
    def splittable(self) -> bool:
        return self.take in (Take.STREAM, Take.RUNS)

    @property
    def ahead(self) -> int:
        """Splits whose bytes are here or coming, and which no task has yet."""
        return len(self.loaded) + self.fetching

    def read(self, holder: BatchHolder, feed: Feed) -> None:
        """Its source is an edge."""
        self.source, self.feed = holder, feed
        if feed.take is Take.PARTITION:
            self.partitions = Partitions(self, holder, feed)

    # ------------------------------------------------------------------------------------ supplying

    def has_work(self) -> bool:
        if self.graph.closed:
            return False
        if self.relief is not None:
            return bool(self.relief.tasks)
        if self._requeued:
            return True
        if self.phase is Phase.OPEN:
            has_input = self.has_input() if self.rounds is None else self.rounds.has_work()
            return has_input and not self.graph.gated(self)
        return self.phase is Phase.FINISHING and self.next_part < self.parts

    def relief_due(self) -> bool:
        return self.relief is not None and bool(self.relief.tasks) and not self.graph.closed

    def has_input(self) -> bool:
        """Whether an input is there for a next task."""
        feed = self.feed
        if feed is not None:
            if feed.take is Take.STREAM:
                return bool(feed.queue)
            if feed.take is Take.RUNS:
                return run_is_due(self)
            if feed.take is Take.SERIAL:
                return bool(feed.queue) and self.in_flight == 0
            assert self.partitions is not None
            return self.partitions.has_input()
        if self.inputs_max is None or self.next_input >= self.inputs_max:
            return False
        return not self.splits or self.next_input in self.loaded or self.is_in_memory(self.next_input)

    def is_in_memory(self, index: int) -> bool:
        """Whether a split needs nothing fetched, and nothing leased."""
        return not self.splits[index].ranges or self.stage.passes_over(index)

    def next_task(self) -> Task:
        self.in_flight += 1
        self.graph.running += 1
        if self.relief is not None:
            return self.relief.tasks.popleft()
        if self._requeued:
            return self._requeued.popleft()
        graph = self.graph
        if self.phase is Phase.FINISHING:
            task = Task(self, self.stage, graph.next_task_id(), TaskKind.FINISH, self.next_part)
            self.next_part += 1
            task.basis = self.costs.state_bytes // self.parts
        elif self.rounds is not None:
            task = self.rounds.next_task()
            self.number(task)
        elif self.splits:
            task = split_task(self)
        else:
            task = batch_task(self)
        task.ready_at = graph.clock.now()
        return task

    def number(self, task: Task) -> None:
        task.place = self.next_place
        self.next_place += 1

    def estimate(self, task: Task) -> int:
        return self.costs.need(task)

    def is_brief(self, task: Task) -> bool:
        return self.costs.is_brief(task, self.stage.rows_out_max(task.rows_in))

    def upcoming(self, count: int) -> list[tuple[BatchHolder, Entry]]:
        """The batches that the next tasks will take, each with the holder that it lies in."""
        return next_batches(self, count)

    # ------------------------------------------------------------------------------------ taking back

    def deliver(self, task: Task, result: Result, grant: Reservation) -> None:
        self._out(task)
        for event in task.events(result, self.pipeline.id):
            self.graph.recorder.record(event)
        if self.graph.closed or self.phase >= Phase.STOPPING:
            self._drop(task, result.rows)
            return
        try:
            self.costs.account(task, result)
            if result.has_ended:
                self._begin_end(0)
            if task.place >= 0 or task.kind is TaskKind.FINISH:
                put_outputs(self, task, result, grant)
            if self.partitions is not None:
                self.partitions.take_back(task, result, grant)
            tell_relievable(self, is_open=self.phase is Phase.OPEN)
            keep_columns(self, task, grant)
        finally:
            self._let_go(task)
        if self.relief is not None and task.kind is TaskKind.RELIEVE:
            self.relief.part_done()
        elif task.kind is TaskKind.FINISH:
            self.parts_done += 1
        elif self.rounds is not None:
            self.rounds.done(task)
        elif self.phase is Phase.OPEN and self.stage.enough():
            self._stop_inputs("enough")
        self.graph.touch_around(self)

    def put_back(self, task: Task) -> None:
        self._out(task)
        if self.graph.closed or self.phase >= Phase.STOPPING:
            self._drop(task, 0)
            return
        waiting = self._requeued if task.kind is not TaskKind.RELIEVE or self.relief is None else self.relief.tasks
        waiting.appendleft(task)
        self.graph.touch(self)

    def retry(self, task: Task, reason: BaseException) -> None:
        self.costs.suffered(task)
        text = str(reason) or type(reason).__name__
        self.graph.recorder.record(TaskRetried(self.query, self.pipeline.id, task.id, task.attempt, task.pieces, text))
        self.put_back(task)
        self.graph.settle()

    def fail(self, task: Task | None, error: BaseException) -> None:
        if self.phase < Phase.STOPPING:
            self.graph.fail(error)  # before anything settles, or this would seem to have done its last input
        if task is not None:
            self._out(task)
            self._drop(task, 0)

    def _out(self, task: Task) -> None:
        self.in_flight -= 1
        self.graph.running -= 1

    def _drop(self, task: Task, rows: int) -> None:
        if rows:
            note_dropped(self, task, rows)
        self._let_go(task)
        self.graph.touch(self)
        self.graph.settle()

    def _let_go(self, task: Task) -> None:
        """The inputs of `task` are used up."""
        if task.holder is not None:
            for entry in task.entries:
                task.holder.consume(entry)
        if task.given is not None:
            task.given.release()
        task.split = task.given = None

    # ------------------------------------------------------------------------------------- advancing

    def advance(self) -> None:
        """Goes on to the next phase when this one is over."""
        if self.relief is not None and self.in_flight == 0:
            self.relief.advance()
        over = self.phase is Phase.OPEN and self.relief is None and not self._requeued and self._rounds_over()
        if over and keeps_too_much(self):
            self.relieve(NO_CAUSE)
        elif over:
            self._begin_end(self.stage.finish_parts())
        if self.phase is Phase.FINISHING and self.parts_done == self.parts and self.in_flight == 0:
            self._end()
        if self.phase is Phase.STOPPING and self.in_flight == 0 and self.fetching == 0:
            self._end()

    def _begin_end(self, parts: int) -> None:
        """No more inputs: `parts` parts are left to do."""
        self.phase = Phase.FINISHING
        if self.relief is not None:
            self.relief.end()
        tell_relievable(self, is_open=False)
        if not isinstance(self.pipeline.sink, BuildSink):
            self.costs.leave()
        self.parts = parts

    def relieve(self, cause: EventId) -> asyncio.Future[None]:
        """Has the stage give up what it can of its state; the future is done when it has, or never will."""
        if self.relief is None:
            self.relief = Relief(self, cause)
        done = self.relief.done
        if self.phase is not Phase.OPEN or self.graph.closed:
            self.relief.end()
        self.graph.touch(self)
        self.graph.settle()
        return done

    def _rounds_over(self) -> bool:
        """Whether inputs and rounds are over; begins the rounds when the inputs are."""
        if self.rounds is None:
            if self.in_flight or not self.are_inputs_over():
                return False
            self.rounds = Rounds(self)
        return not self.rounds.advance() and self.in_flight == 0

    def abandon(self) -> None:
        """Nobody wants more of it: inputs go at once, the end comes when no call runs."""
        if self.phase < Phase.STOPPING:
            opened = self.phase is not Phase.WAITING
            self._stop_inputs("abandoned")
            self.phase = Phase.STOPPING if opened else Phase.ENDED
            if not opened:
                self.graph.ended(self)
            self.graph.touch(self)

    def close(self) -> None:
        """The query is over, however it went; no call is running."""
        self.discard_inputs()
        if Phase.OPENING <= self.phase < Phase.ENDED:
            self.phase = Phase.ENDED
            self.stage.close()
        self.costs.release_state()

    def discard_inputs(self) -> None:
        """Gives back what waits to become tasks, and gives up nothing more."""
        if self.relief is not None:
            self.relief.end()
        tell_relievable(self, is_open=False)
        while self._requeued:
            self._let_go(self._requeued.popleft())
        for given in self.loaded.values():
            given.release()
        self.loaded.clear()
        self.shared = None
        if self.rounds is not None:
            self.rounds.discard()

    def are_inputs_over(self) -> bool:
        feed = self.feed
        if feed is not None:
            if feed.closed:
                return True
            assert self.source is not None
            if self.partitions is not None:
                return self.partitions.are_over
            return self.source.state.finished and not feed.queue
        return self.inputs_max is not None and self.next_input >= self.inputs_max

    def _stop_inputs(self, how: str) -> None:
        self._how = how
        self.inputs_max = self.next_input
        for task in (*self._requeued, *(() if self.relief is None else self.relief.tasks)):
            put_nothing(self, task)
        self.fetch_next = len(self.splits)
        self.discard_inputs()
        if self.feed is not None and self.source is not None:
            self.source.close_feed(self.feed)
            self.graph.touch_source(self)

    def _end(self) -> None:
        self.phase = Phase.ENDED
        self.stage.close()
        if self.feed is not None and self.source is not None:
            self.source.close_feed(self.feed)
        if not isinstance(self.pipeline.sink, BuildSink):
            self.costs.release_state()
        self.graph.recorder.record(PipelineEnded(self.query, self.pipeline.id, self._how))
        for holder, producer in self.sinks:
            holder.finish(producer)
        self.graph.ended(self)
