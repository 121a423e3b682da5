"""A Dag made live on one worker: its pipelines, its Batch Holders, and who must look again when something changed.

Settling is to a fixed point: whatever changed is touched, and `settle` lets every touched pipeline advance until
nothing more follows; only then is work offered. All on the loop; nothing here waits.

Rules: a pipeline opens when all it comes after have ended. A producer makes no new tasks while its edge is full and
every reader of it has something to read; that cannot block for ever, because the last reader is the caller. When
all readers of an edge have stopped, so do its producers, at once and upward.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from bireme.data.ids import BatchId, EdgeId, PipelineId, QueryId, TaskId
from bireme.errors import BiremeError, EngineBug
from bireme.observe.event import TableFreed
from bireme.operators.base import StageSet
from bireme.plan.physical import Dag, Edge, EdgeSource, Take
from bireme.runtime.asides import Asides
from bireme.runtime.compute.policy import distances_to_result, rank
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.opening import open_pipeline
from bireme.runtime.pipeline import LivePipeline, Phase
from bireme.runtime.services import Services
from bireme.runtime.table_lives import Spent, TableLives


class Graph:
    """One query's live Dag. `outcome` is set once: to None when all is done and read, or to the error."""

    def __init__(
        self,
        dag: Dag,
        stages: StageSet,
        *,
        query: QueryId,
        services: Services,
        slots: int,
        edge_bytes_max: int,
        result_bytes_max: int,
        batch_ids: Iterator[int],
    ) -> None:
        self.dag = dag
        self.stages = stages
        self.query = query
        self.clock = services.clock
        self.recorder = services.recorder
        self.ledger = services.ledger
        self.cache = services.cache
        self.closed = False
        self.running = 0
        self.outcome: asyncio.Future[BiremeError | None] = asyncio.get_running_loop().create_future()
        self.services = services
        self.slots = slots
        self._edge_bytes_max = edge_bytes_max
        self._result_bytes_max = result_bytes_max
        self._batch_ids = batch_ids
        self._task_ids = count(1)
        self._dirty: deque[LivePipeline] = deque()
        self._settling = False
        self._quiet: asyncio.Future[None] | None = None
        self._any_gated = False
        self.pipelines: dict[PipelineId, LivePipeline] = {}
        self.holders: dict[EdgeId, BatchHolder] = {}
        self._tables = TableLives(dag)
        self.asides = Asides(self, services.drop)
        self._build()
        self._unended = len(self.pipelines)
        self.result = self.holders[dag.result]
        self.result_feed: Feed = self.result.state.feeds[-1]

    def __repr__(self) -> str:
        phases = ", ".join(repr(pipeline) for pipeline in self.pipelines.values())
        return f"<Graph of query {self.query}: {phases}>"

    # ------------------------------------------------------------------------------------- building

    def _build(self) -> None:
        takes = {
            (pipeline.source.edge, pipeline.id): pipeline.source.take
            for pipeline in self.dag.pipelines
            if isinstance(pipeline.source, EdgeSource)
        }
        for edge in self.dag.edges:
            feeds = [takes[edge.id, consumer] for consumer in edge.consumers]
            if edge.id == self.dag.result:
                feeds.append(Take.SERIAL)
            self.holders[edge.id] = BatchHolder(edge, query=self.query, takes=feeds, drop=self.services.drop)
        distances = distances_to_result(self.dag)
        for position, pipeline in enumerate(self.dag.pipelines):
            order = rank(query=self.query, distance=distances[pipeline.id], position=position)
            self.pipelines[pipeline.id] = LivePipeline(self, pipeline, self.stages.stage(pipeline), order)
        for edge in self.dag.edges:
            self._connect(edge)
        for live in self.pipelines.values():
            for earlier in live.pipeline.after:
                self.pipelines[earlier].dependents.append(live)

    def _connect(self, edge: Edge) -> None:
        holder = self.holders[edge.id]
        for index, consumer in enumerate(edge.consumers):
            live = self.pipelines[consumer]
            live.read(holder, holder.state.feeds[index])
        for index, producer in enumerate(edge.producers):
            self.pipelines[producer].sinks.append((holder, index))

    def next_task_id(self) -> TaskId:
        return TaskId(next(self._task_ids))

    def next_batch_id(self) -> BatchId:
        return BatchId(next(self._batch_ids))

    def before(self, pipeline: LivePipeline) -> list[LivePipeline]:
        return [self.pipelines[earlier] for earlier in pipeline.pipeline.after]

    # ------------------------------------------------------------------------------------- settling

    def start(self) -> None:
        """Opens what waits for nothing, and lets it run."""
        self.guarded(self._start)

    def _start(self) -> None:
        for holder in self.holders.values():
            if not holder.edge.producers:
                raise EngineBug(f"no pipeline produces for {holder!r}")
        for pipeline in self.pipelines.values():
            self.touch(pipeline)
        self.settle()

    def touch(self, pipeline: LivePipeline) -> None:
        """`pipeline` must look again."""
        if not pipeline.dirty and pipeline.phase is not Phase.ENDED:
            pipeline.dirty = True
            self._dirty.append(pipeline)

    def touch_around(self, pipeline: LivePipeline) -> None:
        """A task of `pipeline` has delivered: it, who reads on and, for what it took, its producers look again."""
        self.touch(pipeline)
        for holder, _ in pipeline.sinks:
            for consumer in holder.edge.consumers:
                reader = self.pipelines[consumer]
                if reader.phase is Phase.OPEN and reader.partitions is None:
                    self.touch(reader)
        if self._any_gated:
            self.touch_source(pipeline)
        self.settle()

    def touch_source(self, pipeline: LivePipeline) -> None:
        """`pipeline` has taken from its edge, or stopped reading it."""
        if pipeline.source is not None:
            self._touch_producers(pipeline.source)

    def _touch_producers(self, holder: BatchHolder) -> None:
        for producer in holder.edge.producers:
            self.touch(self.pipelines[producer])

    def result_taken(self) -> None:
        """The caller has read a batch, so there may be room on the result edge."""
        if self._any_gated:
            self._touch_producers(self.result)
        self.settle()

    def settle(self) -> None:
        """Lets everything that was touched advance, and offers what has work."""
        if not self._settling:
            self._settling = True
            try:
                self.guarded(self._settle)
            finally:
                self._settling = False
        self._check_quiet()

    def _settle(self) -> None:
        while self._dirty:
            while self._dirty:
                pipeline = self._dirty.popleft()
                pipeline.dirty = False
                self._look(pipeline)
            if self._any_gated and self.running == 0:
                # Nothing runs and the gates may be what is in the way: the last resort of `gated` is due.
                self._any_gated = False
                for pipeline in self.pipelines.values():
                    if pipeline.phase is Phase.OPEN and pipeline.sinks:
                        self._look(pipeline)
        self._check_done()

    def _look(self, pipeline: LivePipeline) -> None:
        if self.closed:
            return
        if pipeline.phase is Phase.WAITING and all(one.phase is Phase.ENDED for one in self.before(pipeline)):
            open_pipeline(pipeline)
        if pipeline.phase < Phase.STOPPING and not self._wanted(pipeline):
            pipeline.abandon()
        pipeline.advance()
        if pipeline.has_work():
            self.services.offer(pipeline)

    def _wanted(self, pipeline: LivePipeline) -> bool:
        """Whether someone still reads what it makes, or needs it done."""
        for holder, _ in pipeline.sinks:
            if not holder.state.closed:
                return True
        return any(_still_wants(dependent) for dependent in pipeline.dependents)

    def ended(self, pipeline: LivePipeline) -> None:
        """A pipeline has ended: its readers and dependents look again, and its producers if it stopped early."""
        self._unended -= 1
        for dependent in pipeline.dependents:
            self.touch(dependent)
        for earlier in self.before(pipeline):
            self.touch(earlier)
        for holder, _ in pipeline.sinks:
            for consumer in holder.edge.consumers:
                self.touch(self.pipelines[consumer])
        self.touch_source(pipeline)
        self.asides.ended(pipeline.pipeline.id)
        self._free_tables(self._tables.ended(pipeline.pipeline.id))

    def passed(self, pipeline: LivePipeline, step: int) -> None:
        """No row comes to the steps of a pipeline up to `step` any more."""
        pipeline.stage.leave(step)
        self._free_tables(self._tables.passed(pipeline.pipeline.id, step))

    def _free_tables(self, spent: Iterable[Spent]) -> None:
        for table, maker in spent:
            costs = self.pipelines[maker].costs
            self.stages.free_table(table)
            if costs.state_bytes:
                self.recorder.record(TableFreed(self.query, maker, table, costs.state_bytes))
                costs.release_state()

    # ---------------------------------------------------------------------------------- backpressure

    def gated(self, pipeline: LivePipeline) -> bool:
        """Whether `pipeline` should make no new tasks, because its edge is full and its readers have enough to do."""
        for holder, producer in pipeline.sinks:
            if self.is_full(holder) and self._full(pipeline, holder, producer):
                self._any_gated = True
                return True
        return False

    def is_full(self, holder: BatchHolder) -> bool:
        """Whether an edge holds as much as it should."""
        return holder.state.nbytes >= (self._result_bytes_max if holder is self.result else self._edge_bytes_max)

    def _full(self, pipeline: LivePipeline, holder: BatchHolder, producer: int) -> bool:
        state = holder.state
        if not all(self._reads(holder, consumer) for consumer in holder.edge.consumers):
            return False
        if all(feed.waiting or feed.closed for feed in state.feeds):
            return True
        awaited = state.awaited() if state.ordered else None
        if awaited is None or self.running == 0:
            return False
        before = self.pipelines[holder.edge.producers[awaited[0]]]
        if any(before.source is own for own, _ in pipeline.sinks):
            return False  # what is awaited waits for the end of this one
        return awaited[0] != producer or pipeline.in_flight > 0

    def _reads(self, holder: BatchHolder, consumer: PipelineId) -> bool:
        live = self.pipelines[consumer]
        return live.phase is Phase.ENDED or (live.phase is Phase.OPEN and live.take is not Take.PARTITION)

    # ---------------------------------------------------------------------------------------- ending

    def fail(self, error: BaseException) -> None:
        """The query fails; the first error counts."""
        fault = error if isinstance(error, BiremeError) else _bug(error)
        self._finish(fault)

    def fault(self) -> BiremeError | None:
        """What it failed with, if it did."""
        return self.outcome.result() if self.outcome.done() and not self.outcome.cancelled() else None

    def close(self) -> None:
        """The query ends here, whatever is still to do. Idempotent."""
        if self.closed:
            return
        self.closed = True
        self.guarded(lambda: self.stages.stop())
        for pipeline in self.pipelines.values():
            pipeline.discard_inputs()
        for holder in self.holders.values():
            holder.close()
        self._check_quiet()

    async def wait_quiet(self) -> None:
        """Waits until no task runs, no fetch is under way and no batch is being moved."""
        while not self._is_quiet():
            self._quiet = asyncio.get_running_loop().create_future()
            await self._quiet
        for holder in self.holders.values():
            await holder.wait_quiet()

    def free(self, *, force: bool) -> None:
        """Closes stages and gives back what is left; after `close` and `wait_quiet`, unless forced."""
        if not force and not (self.closed and self._is_quiet()):
            raise EngineBug(f"{self!r} is freed while it runs")
        for pipeline in self.pipelines.values():
            pipeline.close()
        self.stages.close()

    def _finish(self, fault: BiremeError | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(fault)
            if fault is not None:
                self.close()

    def _check_done(self) -> None:
        if self.outcome.done() or self.closed:
            return
        if self._unended == 0 and not self.result.state.entries:
            self._finish(None)

    def _is_quiet(self) -> bool:
        return self.running == 0 and not self.fetching()

    def _check_quiet(self) -> None:
        if self._quiet is not None and not self._quiet.done() and self._is_quiet():
            self._quiet.set_result(None)

    def guarded(self, step: Callable[[], None]) -> None:
        """Runs a step of ours and of the stages; what it raises fails this query and no other."""
        try:
            step()
        except Exception as error:
            self.fail(error)

    # --------------------------------------------------------------------------------------- telling

    def queued(self, holder: BatchHolder, entry: Entry) -> bool:
        """Whether a ready task waits for `entry`."""
        if holder in self.asides:
            return self.asides.soon(holder, entry)
        if entry.place < 0:
            return False
        return any(
            live.phase is Phase.OPEN
            and (live.partitions is None or (holder.state.finished and live.partitions.are_near(entry.partition)))
            for live in (self.pipelines[consumer] for consumer in holder.edge.consumers)
        )

    def fetching(self) -> bool:
        """Whether bytes of a scan are on their way."""
        return any(pipeline.fetching for pipeline in self.pipelines.values())

    def moving(self) -> bool:
        """Whether a batch is on its way between tiers."""
        return any(holder.state.moving for holder in self.holders.values())

    def wants_something(self) -> bool:
        """Whether it could go on if it had a slot, or room for the next bytes of a scan."""
        return any(
            pipeline.has_work() or (pipeline.phase is Phase.OPEN and pipeline.fetch_next < len(pipeline.splits))
            for pipeline in self.pipelines.values()
        )

    def result_readable(self) -> bool:
        """Whether it is the caller's turn: there is a batch to read, or one that was taken and not yet handed over."""
        state = self.result.state
        return self.result_feed.waiting > 0 or any(entry.place >= 0 for entry in state.entries.values())


def _still_wants(dependent: LivePipeline) -> bool:
    return dependent.phase < Phase.STOPPING


def _bug(error: BaseException) -> EngineBug:
    fault = EngineBug(f"{type(error).__name__}: {error}")
    fault.__cause__ = error
    return fault
