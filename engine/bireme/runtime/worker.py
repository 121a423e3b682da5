"""The composition root: builds one worker's parts from its config, and serves queries on them.

The four executors belong to the worker and serve all of its queries; a query brings its own graph and task group.
Everything runs on the event loop that `start` is called on. The seams (byte source, spill store, threads, clock)
are handed in or chosen here and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bireme.backends import allowance
from bireme.clock import Clock, MonotonicClock
from bireme.config import Config
from bireme.data.batch import Batch
from bireme.data.ids import QueryId
from bireme.data.record import joined
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.observe.moves import Moves
from bireme.observe.recorder import Recorder
from bireme.operators.base import StageSet
from bireme.plan.physical import Dag
from bireme.runtime.compute.executor import ComputeExecutor
from bireme.runtime.compute.meter import Meter, Unmetered
from bireme.runtime.compute.task import Supplier
from bireme.runtime.graph import Graph
from bireme.runtime.holder.batch_holder import BatchHolder, HolderStatistics
from bireme.runtime.holder.column_cache import ColumnCache
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.executor import MemoryExecutor
from bireme.runtime.memory.footprint import Footprint, Quota, share_of
from bireme.runtime.memory.ledger import Ledger, Use
from bireme.runtime.memory.mover import Joined, Mover
from bireme.runtime.memory.pinned_pool import PinnedPool
from bireme.runtime.memory.room import Purpose, Room, Waits
from bireme.runtime.pipeline import LivePipeline
from bireme.runtime.preload.executor import PreloadExecutor
from bireme.runtime.preload.policy import fetch_bytes_max
from bireme.runtime.query import Query, ResultStream
from bireme.runtime.threads import LoopThreads, Threads
from bireme.runtime.watchdog import Watchdog
from bireme.storage.base import ByteSource, SpillStore

if TYPE_CHECKING:
    from bireme.runtime.network.executor import NetworkExecutor
    from bireme.transport.base import Transport

__all__ = ["ResultStream", "Worker", "WorkerStatistics"]

T = TypeVar("T")
MakeThreads = Callable[[str, int], Threads]

# An edge whose readers have enough to do holds up to such a part of the memory: more would be spilled, and read again.
_EDGES_IN_MEMORY: Final = 8


@dataclass(frozen=True, slots=True)
class WorkerStatistics:
    """What a worker holds and does now. Bytes are per tier; `moves` all those between two tiers so far, `waits` those
    of all who stood in line for memory.
    """

    queries: int
    tasks_running: int
    tasks_finished: int
    reservations: int
    bytes_held: dict[Tier, int]
    bytes_peak: dict[Tier, int]
    bytes_max: dict[Tier, int]
    state_bytes: int
    cache_bytes: int
    spill_bytes: int
    moves: dict[tuple[Tier, Tier], Moves]
    waits: dict[Purpose, Waits]
    waiting_for_room: int
    events: int
    holders: tuple[HolderStatistics, ...]


class Worker:
    """Runs Dags. `async with Worker(...)`, or `start` and `close`, on one event loop.

    It owns neither `source`, `spill` nor `transport`: whoever made them closes them, after the worker. Without a
    transport it has no peers. `quota` limits what the backend's kernels keep of memory for reuse, `meter` measures
    what they take; `joined` makes one batch of several.
    """

    def __init__(
        self,
        config: Config,
        *,
        source: ByteSource,
        spill: SpillStore,
        clock: Clock | None = None,
        threads: MakeThreads = LoopThreads,
        transport: Transport | None = None,
        quota: Quota | None = None,
        meter: Meter | None = None,
        joined: Joined = joined,
    ) -> None:
        self.config = config
        self.clock: Clock = clock if clock is not None else MonotonicClock()
        self.recorder = Recorder(config.event_count_max)
        self.ledger = Ledger(
            {
                Tier.DEVICE: config.memory_bytes_max,
                Tier.PINNED: config.pinned_bytes_max,
                Tier.DISK: config.spill_bytes_max,
            }
        )
        self.cache = ColumnCache(self.recorder, bytes_max=int(config.cache_share_max * config.memory_bytes_max))
        self._footprint = (
            None
            if quota is None
            else Footprint(
                self.ledger,
                quota,
                self.recorder,
                self.clock,
                kept_max=config.pool_bytes_max,
                share=share_of(config.memory_bytes_max, slots=config.threads),
            )
        )
        self._source = source
        self._spill = spill
        self._make_threads = threads
        self._transport = transport
        self._joined = joined
        self._meter: Meter = Unmetered() if meter is None else meter
        self._queries: dict[QueryId, Query] = {}
        self._query_ids = count(1)
        self._batch_ids = count(1)
        self._root: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._closing = False
        self._fault: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Worker: {len(self._queries)} queries, {self.ledger!r}>"

    # ------------------------------------------------------------------------------------- life

    async def __aenter__(self) -> Worker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts threads and executors."""
        if self._root is not None:
            raise EngineBug("a worker is started once")
        self._assemble()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The one task without a group: it holds the group of all others.
        self._root = asyncio.get_running_loop().create_task(self._run(ready), name="worker")
        await ready

    @property
    def closing(self) -> bool:
        """Whether it takes no more queries."""
        return self._closing or self._stop.is_set()

    async def close(self) -> None:
        """Cancels all queries, waits until nothing of them is left, and ends executors and threads. Idempotent."""
        if self._root is None:
            return
        self._closing = True
        for query in tuple(self._queries.values()):
            await query.cancel()
        self._stop.set()
        await asyncio.wait([self._root])
        fault, self._fault = self._fault or self._root.exception(), None
        if fault is not None:
            raise EngineBug(f"an executor of the worker broke: {fault!r}") from fault

    def _assemble(self) -> None:
        config = self.config
        self._compute_threads = self._make_threads("compute", config.threads)
        self._io_threads = self._make_threads("io", config.io_threads)
        self._pool = PinnedPool(config.pinned_bytes_max) if config.pinned_bytes_max else None
        self.room = Room(self.ledger, self.recorder, stall_seconds_max=config.stall_seconds_max)
        if self._footprint is not None:
            self.room.spare = self._footprint.spare
            allowance.count_by(self._footprint.may_have)
            self._footprint.later = asyncio.get_running_loop().call_later
        self.mover = Mover(
            io=self._io_threads,
            spill=self._spill,
            pool=self._pool,
            ledger=self.ledger,
            recorder=self.recorder,
            clock=self.clock,
            joined=self._joined,
        )
        self.memory = MemoryExecutor(
            self.room,
            self.mover,
            cache=self.cache,
            holders=self._holders,
            queued=self._is_queued,
            recorder=self.recorder,
            watermark_start=config.watermark_start,
            watermark_stop=config.watermark_stop,
            batch_ids=self._batch_ids,
        )
        self.compute = ComputeExecutor(
            slots=config.threads,
            threads=self._compute_threads,
            room=self.room,
            mover=self.mover,
            recorder=self.recorder,
            clock=self.clock,
            meter=self._meter,
        )
        self.preload = PreloadExecutor(
            source=self._source,
            io=self._io_threads,
            room=self.room,
            mover=self.mover,
            recorder=self.recorder,
            clock=self.clock,
            upcoming=lambda: self.compute.ready.first(config.threads),
            count_max=config.preload_ahead_count_max,
            bytes_max=fetch_bytes_max(config.preload_bytes_max, config.memory_bytes_max),
            watermark_stop=config.watermark_stop,
        )
        self.network = self._network(self._transport) if self._transport is not None else None
        self.room.busy = self._busy
        self.mover.ended = self.room.retry
        self.mover.idle = lambda: self.compute.slots - self.compute.running
        self._watchdog = Watchdog(seconds_max=config.deadlock_seconds_max, recorder=self.recorder, busy=self._busy)

    def _network(self, transport: Transport) -> NetworkExecutor:
        from bireme.runtime.network.executor import NetworkExecutor  # most workers have no peers

        return NetworkExecutor(
            transport,
            io=self._io_threads,
            room=self.room,
            mover=self.mover,
            recorder=self.recorder,
            window=self.config.receive_bytes_max,
            batch_ids=self._batch_ids,
        )

    async def _run(self, ready: asyncio.Future[None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                parts = (self.memory, self.compute, self.preload, self.network)
                executors = [
                    group.create_task(self._guard(part.run()), name=part.name) for part in parts if part is not None
                ]
                ready.set_result(None)
                await self._stop.wait()
                for executor in executors:
                    executor.cancel()
        finally:
            self._stop.set()
            self._watchdog.close()
            self.cache.clear()
            if self._footprint is not None:
                allowance.count_no_more(self._footprint.may_have)
                self._footprint.close()
            self._compute_threads.close()
            self._io_threads.close()

    async def _guard(self, executor: Coroutine[Any, Any, None]) -> None:
        """An executor that breaks takes all queries with it, each with the reason, instead of hanging them."""
        try:
            await executor
        except Exception as error:
            self._fault = error
            self._stop.set()
            for query in tuple(self._queries.values()):
                query.lost(error)

    # ---------------------------------------------------------------------------------- queries

    def run(self, dag: Dag, stages: StageSet) -> ResultStream:
        """Starts a query at once and gives its result as it comes. Call it on the worker's loop.

        The worker owns `stages` from here on and closes it on every path. Several queries run side by side.
        """
        if self._root is None or self.closing:
            stages.close()
            raise EngineBug("the worker is not running") from self._fault
        try:
            graph = Graph(
                dag,
                stages,
                query=QueryId(next(self._query_ids)),
                services=self,
                slots=self.config.threads,
                edge_bytes_max=min(self.config.edge_bytes_max, self.config.memory_bytes_max // _EDGES_IN_MEMORY),
                result_bytes_max=self.config.result_bytes_max,
                batch_ids=self._batch_ids,
            )
        except BaseException:
            stages.close()
            raise
        query = Query(graph, room=self.room, mover=self.mover, ended=self._ended)
        self._queries[query.id] = query
        query.start_in(self._group)
        self._watchdog.watch(query)
        return ResultStream(query, dag.schema)

    def _ended(self, query: Query) -> None:
        del self._queries[query.id]
        self._watchdog.forget(query)

    def statistics(self) -> WorkerStatistics:
        tiers = (Tier.DEVICE, Tier.PINNED, Tier.DISK)
        return WorkerStatistics(
            queries=len(self._queries),
            tasks_running=self.compute.running,
            tasks_finished=self.compute.finished,
            reservations=self.ledger.live,
            bytes_held={tier: self.ledger.totals[tier] for tier in tiers},
            bytes_peak={tier: self.ledger.peaks[tier] for tier in tiers},
            bytes_max={tier: self.ledger.limits[tier] for tier in tiers},
            state_bytes=self.ledger.used(Tier.DEVICE, Use.STATE) + self.ledger.used(Tier.DEVICE, Use.LEAVING),
            cache_bytes=self.cache.nbytes,
            spill_bytes=self._spill.bytes_used,
            moves={edge: replace(moves) for edge, moves in self.mover.totals.items()},
            waits={purpose: replace(waits) for purpose, waits in self.room.waits.items()},
            waiting_for_room=len(self.room.wants),
            events=self.recorder.count,
            holders=tuple(holder.statistics() for holder in self._holders()),
        )

    # ------------------------------------------------------------------------ services for graphs

    def offer(self, supplier: Supplier) -> None:
        self.compute.offer(supplier)
        if self.ledger.totals[Tier.DISK] or self.ledger.totals[Tier.PINNED]:
            self.preload.notice()

    def want_bytes(self, pipeline: LivePipeline) -> None:
        self.preload.want(pipeline)

    def on_io_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return self._io_threads.submit(work)

    def relievable(self, pipeline: LivePipeline) -> None:
        self.memory.note_state(pipeline, pipeline.costs.relievable)

    def drop(self, batch: Batch) -> None:
        self.mover.drop(batch)

    def _busy(self) -> bool:
        """Whether something runs now, whose end will change what is held."""
        sending = self.network is not None and self.network.sending > 0
        return self.compute.running > 0 or self.mover.active > 0 or sending

    def _holders(self) -> Iterable[BatchHolder]:
        for query in self._queries.values():
            yield from query.graph.holders.values()

    def _is_queued(self, holder: BatchHolder, entry: Entry) -> bool:
        query = self._queries.get(holder.query)
        return query is not None and query.graph.queued(holder, entry)
