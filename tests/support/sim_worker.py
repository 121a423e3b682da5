"""One simulated run: a real worker on the simulated loop, random Dags, drawn limits, drawn faults, drawn callers.

First safety: what a caller reads is right so far, nothing is lost, doubled or leaked. Then liveness: every query
ends, with its answer or with an error that the faults drawn for it explain.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bireme.config import Config
from bireme.data.tier import Tier
from bireme.errors import BiremeError, Cancelled, OutOfRoom, Overflow, SpillFailed, StorageError
from bireme.observe.event import CacheRead, Event, TaskEnded, TaskRetried
from bireme.runtime.memory.ledger import Use
from bireme.runtime.query import ResultStream
from bireme.runtime.worker import Worker
from bireme.units import MIB
from support.disk import DiskFaults, MemorySource, MemorySpill
from support.fake_stages import FakeStages
from support.random_dag import DagMaker
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate

_PATIENCE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything drawn before the first step."""

    seed: int
    config: Config
    disk: DiskFaults
    queries: int
    short_of_memory: float
    fails: float
    slow: float
    close_after: float | None
    # Whether what is decoded outlives queries; then all queries of the run are the same.
    is_kept: bool

    @classmethod
    def draw(cls, seed: int) -> Plan:
        rng = random.Random(seed)
        is_kept = rng.random() < 0.3
        room = rng.choice((16, 80, 400, 2_000, 1 << 30))
        config = Config(
            threads=rng.choice((1, 2, 3)),
            io_threads=rng.choice((1, 2)),
            memory_bytes_max=room,
            pinned_bytes_max=rng.choice((0, 0, MIB, 2 * MIB)),
            spill_folders=(Path("simulated"),),
            spill_bytes_max=rng.choice((1 << 30, 1 << 30, 30_000)),
            preload_bytes_max=rng.choice((1, 60, 1 << 20)),
            preload_ahead_count_max=rng.choice((1, 3, 16)),
            result_bytes_max=rng.choice((1, 50, 1 << 20)),
            edge_bytes_max=rng.choice((1, 50, 1 << 20)),
        )
        return cls(
            seed,
            config,
            DiskFaults.draw(rng),
            rng.choice((2, 3, 4) if is_kept else (1, 1, 1, 2, 3)),
            rng.choice((0.0, 0.0, 0.0, 0.05, 0.3)),
            rng.choice((0.0, 0.0, 0.0, 0.02)),
            rng.choice((0.0, 0.5, 0.5, 1.0)),
            rng.expovariate(10) if rng.random() < 0.1 else None,
            is_kept,
        )


@dataclass(slots=True)
class Outcome:
    """What a run went through, so that a test can show that the simulation reaches what it claims to."""

    rows: int = 0
    finished: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    closed: int = 0
    cancelled: int = 0
    spilled: int = 0
    retried: int = 0
    on_loop: int = 0
    on_threads: int = 0
    cached: int = 0
    hits: int = 0
    relieved: int = 0
    cut: int = 0
    bits: int = 0
    trace: list[Event] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.rows += other.rows
        self.finished += other.finished
        self.closed += other.closed
        self.cancelled += other.cancelled
        self.spilled += other.spilled
        self.retried += other.retried
        self.on_loop += other.on_loop
        self.on_threads += other.on_threads
        self.cached += other.cached
        self.hits += other.hits
        self.relieved += other.relieved
        self.cut += other.cut
        self.bits += other.bits
        for name, count in other.failed.items():
            self.failed[name] = self.failed.get(name, 0) + count


class SimRun:
    """Runs one plan."""

    def __init__(self, plan: Plan, loop: SimLoop) -> None:
        self.plan = plan
        self.loop = loop
        self.rng = random.Random(plan.seed + 1)
        self.outcome = Outcome()
        self.stateful = False
        self._seen, self._patience = 0, 1.0
        self.spill = MemorySpill(random.Random(plan.seed + 2), plan.disk)
        self.source = MemorySource(random.Random(plan.seed + 3), plan.disk)

    async def run(self) -> Outcome:
        worker = Worker(
            self.plan.config, source=self.source, spill=self.spill, clock=SimClock(self.loop), threads=SimThreads
        )
        async with worker:
            async with asyncio.timeout(_PATIENCE_SECONDS), asyncio.TaskGroup() as group:
                for number in range(self.plan.queries):
                    group.create_task(self._query(worker, number))
                if self.plan.close_after is not None:
                    group.create_task(self._close(worker, self.plan.close_after))
                self._look_again(worker)
            self.outcome.cached = worker.cache.nbytes
            worker.cache.clear()
            self._check_empty(worker)
        self.outcome.trace = [event for _, event in worker.recorder.events()]
        self.outcome.hits = sum(event.hit_count for event in self.outcome.trace if isinstance(event, CacheRead))
        ended = [event.on_loop for event in self.outcome.trace if isinstance(event, TaskEnded)]
        self.outcome.on_loop, self.outcome.on_threads = sum(ended), len(ended) - sum(ended)
        self.outcome.spilled = self.spill.writes
        self.outcome.retried = sum(isinstance(event, TaskRetried) for event in self.outcome.trace)
        return self.outcome

    async def _close(self, worker: Worker, after: float) -> None:
        await asyncio.sleep(after)
        await worker.close()

    # Callers ------------------------------------------------------------------------------------

    async def _query(self, worker: Worker, number: int) -> None:
        rng = random.Random(1_000 * self.plan.seed + number)
        case = DagMaker(random.Random(self.plan.seed) if self.plan.is_kept else rng).make()
        self.stateful = self.stateful or case.stateful
        for work in case.works.values():
            work.short_of_memory, work.fails, work.slow = self.plan.short_of_memory, self.plan.fails, self.plan.slow
        stages = FakeStages(case.works, seed=rng.randrange(1 << 30), is_kept=self.plan.is_kept)
        await asyncio.sleep(rng.choice((0.0, 0.02, 1.0, 2.0, 3.0) if self.plan.is_kept else (0.0, 0.0, 0.02)))
        got: list[int] = []
        caller = rng.choice((self._read_all, self._read_all, self._pause, self._close_early, self._cancel))
        try:
            if self.plan.close_after is not None and worker.closing:
                stages.close()
                return
            await caller(worker.run(case.dag, stages), got, rng)
        except BiremeError as error:
            self._excuse(error, stages)
        else:
            assert case.right(got) or caller not in (self._read_all, self._pause), f"{got} instead of {case.rows}"
        assert case.right_so_far(got), f"{got} does not begin {case.rows}"
        self.outcome.rows += len(got)
        counts = stages.counts
        self.outcome.relieved += counts.relieved
        self.outcome.cut += counts.cut
        self.outcome.bits += counts.bits
        assert not counts.faults, counts.faults
        assert (counts.opened, counts.set_closed) == (counts.closed, 1), counts

    async def _read_all(self, stream: ResultStream, got: list[int], rng: random.Random) -> None:
        async for batch in stream:
            got += batch.column(0).to_pylist()
        self.outcome.finished += 1

    async def _pause(self, stream: ResultStream, got: list[int], rng: random.Random) -> None:
        async for batch in stream:
            got += batch.column(0).to_pylist()
            await asyncio.sleep(rng.choice((0.0, 0.01, 60.0)))
        self.outcome.finished += 1

    async def _close_early(self, stream: ResultStream, got: list[int], rng: random.Random) -> None:
        left = rng.randint(0, 3)
        async with stream:
            await asyncio.sleep(rng.choice((0.0, 0.0, 0.005, 0.05)))
            while left:
                try:
                    got += (await anext(stream)).column(0).to_pylist()
                except StopAsyncIteration:
                    break
                left -= 1
        self.outcome.closed += 1

    async def _cancel(self, stream: ResultStream, got: list[int], rng: random.Random) -> None:
        try:
            async with stream, asyncio.timeout(rng.expovariate(20)):
                async for batch in stream:
                    got += batch.column(0).to_pylist()
                # Read to the end in time.
                self.outcome.finished += 1
        except TimeoutError:
            self.outcome.cancelled += 1

    def _excuse(self, error: BiremeError, stages: FakeStages) -> None:
        """Passes an error that the drawn faults explain, raises any other."""
        name = type(error).__name__
        self.outcome.failed[name] = self.outcome.failed.get(name, 0) + 1
        disk = self.source.faulted + self.spill.faulted + self.spill.flipped > 0
        # Only states cannot be moved; batches can, unless the disk takes none.
        tight = self.stateful or disk or self.plan.config.spill_bytes_max < 100_000
        match error:
            case Overflow() if stages.counts.failures:
                return
            case Cancelled() if self.plan.close_after is not None:
                return
            case StorageError() if disk:
                return
            case SpillFailed() if self.plan.config.spill_bytes_max < 100_000:
                return
            case OutOfRoom() if stages.counts.shortages or (tight and self.plan.config.memory_bytes_max < 1 << 20):
                return
        raise error

    # Checks -------------------------------------------------------------------------------------

    def _look_again(self, worker: Worker) -> None:
        """Checks every invariant at random moments for as long as queries run; seldom while nothing happens."""
        check_worker(worker)
        self._patience = 1.0 if worker.recorder.count != self._seen else min(2 * self._patience, 2_000.0)
        self._seen = worker.recorder.count
        if worker._queries or self.loop.now < 0.05:
            self.loop.call_later(self._patience * self.rng.expovariate(25), self._look_again, worker)

    def _check_empty(self, worker: Worker) -> None:
        statistics = worker.statistics()
        assert statistics.queries == 0, statistics
        assert statistics.reservations == 0, f"{statistics.reservations} reservations left: {worker.ledger!r}"
        assert all(held == 0 for held in statistics.bytes_held.values()), statistics
        assert statistics.tasks_running == 0, statistics
        assert statistics.waiting_for_room == 0, statistics
        assert self.spill.bytes_used == 0, f"{self.spill.bytes_used} spilled bytes left"


def check_worker(worker: Worker) -> None:
    """What must hold between any two steps."""
    worker.ledger.check()
    worker.cache.check()
    assert worker.cache.nbytes <= worker.ledger.used(Tier.DEVICE, Use.CACHE), f"{worker.cache!r} is not paid for"
    batches = dict.fromkeys(Tier, 0)
    for query in worker._queries.values():
        for holder in query.graph.holders.values():
            holder.state.check()
            for identity, entry in holder.state.entries.items():
                reservation = holder._reservations[identity]
                assert reservation.tier is entry.batch.tier, f"{entry!r} is paid for by {reservation!r}"
                batches[entry.batch.tier] += reservation.nbytes
            known = set(holder.state.entries)
            assert known == set(holder._reservations), f"{holder!r} pays for batches that it does not have"
    for tier in (Tier.DEVICE, Tier.PINNED, Tier.DISK):
        # More may be reserved than held: targets of moves under way.
        assert batches[tier] <= worker.ledger.used(tier, Use.BATCH), f"{tier.name} holds more than it reserved"


def run_seed(seed: int, plan: Callable[[int], Plan] = Plan.draw) -> Outcome:
    """One whole simulated run; an AssertionError or an unexcused error is a found fault."""
    drawn = plan(seed)
    return simulate(lambda loop: SimRun(drawn, loop).run(), seed)
