"""Two workers that exchange batches over the in-memory transport, with tiny memories, drawn schedules and lost peers.

Each worker makes rows for both. What is for the other travels; everyone must get all rows meant for it, each flow in
the order in which it was made, or hear that the peer is lost. Nothing may be left of either's memory.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from support.disk import MemorySource, MemorySpill
from support.fake_stages import ROW_SCHEMA, rows_batch
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate

from bireme.config import Config
from bireme.data.batch import Batch
from bireme.data.ids import BatchId, EdgeId, PipelineId, QueryId, WorkerId
from bireme.data.tier import Tier
from bireme.errors import PeerLost
from bireme.observe.event import BatchReceived, Demoted
from bireme.plan.physical import Edge, Take
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.memory.ledger import Use
from bireme.runtime.worker import Worker
from bireme.transport.memory import MemoryNetwork, MemoryTransport

QUERY = QueryId(1)
EDGE = EdgeId(1)


@dataclass(slots=True)
class Plan:
    """What is drawn for one run."""

    room: int
    window: int
    batches: int
    leave_after: float | None

    @classmethod
    def draw(cls, seed: int) -> Plan:
        rng = random.Random(seed)
        leave = rng.expovariate(10) if rng.random() < 0.25 else None
        return cls(rng.choice((8, 60, 400, 1 << 20)), rng.choice((1, 30, 500)), rng.randint(0, 12), leave)


@dataclass(slots=True)
class End:
    """One worker of the ring."""

    worker: Worker
    transport: MemoryTransport
    spill: MemorySpill
    out: BatchHolder
    into: BatchHolder
    made: list[list[int]] = field(default_factory=list)
    got: list[int] = field(default_factory=list)
    lost: bool = False


def edge(name: str, producers: int) -> Edge:
    return Edge(EDGE, name, ROW_SCHEMA, tuple(map(PipelineId, range(producers))), (), partitions=2, ordered=True)


class Ring:
    """Runs one plan."""

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.plan = Plan.draw(seed)
        self.rng = random.Random(seed + 1)
        self.loop = loop
        self.network = MemoryNetwork()
        self.ids = count(1)

    async def run(self) -> list[End]:
        ends = [self._end(number) for number in (0, 1)]
        async with ends[0].worker, ends[1].worker:
            async with asyncio.timeout(600), asyncio.TaskGroup() as group:
                for number, end in enumerate(ends):
                    group.create_task(self._make(end, number))
                    group.create_task(self._gather(end, 1 - number))
                if self.plan.leave_after is not None:
                    group.create_task(self._leave(ends[1]))
            for end in ends:
                end.out.close()
                end.into.close()
                await end.out.wait_quiet()
                await end.into.wait_quiet()
                await end.worker.mover.drained()
                if end.worker.network is not None:
                    end.worker.network.forget(QUERY)
            await asyncio.sleep(60)
            for end in ends:
                assert end.worker.ledger.live == 0, f"{end.worker.ledger!r} after {self.plan}"
                assert end.spill.bytes_used == 0
        return ends

    def _end(self, number: int) -> End:
        config = Config(
            threads=1,
            memory_bytes_max=self.plan.room,
            spill_folders=(Path("simulated"),),
            spill_bytes_max=1 << 30,
            receive_bytes_max=self.plan.window,
        )
        transport = self.network.join(WorkerId(number))
        spill = MemorySpill()
        worker = Worker(
            config,
            source=MemorySource(),
            spill=spill,
            clock=SimClock(self.loop),
            threads=SimThreads,
            transport=transport,
        )
        out = BatchHolder(edge("out", 1), query=QUERY, takes=(Take.STREAM,), drop=worker.drop)
        into = BatchHolder(edge("in", 2), query=QUERY, takes=(Take.STREAM,), drop=worker.drop)
        # The worker has no query of its own here, so it is told which holders there are.
        worker._holders = lambda: (out, into)  # type: ignore[method-assign]
        return End(worker, transport, spill, out, into)

    async def _make(self, end: End, number: int) -> None:
        """Puts rows for both workers: its own directly, the peer's where they are exported."""
        assert end.worker.network is not None
        end.worker.network.export(
            end.out, end.out.state.feeds[0], peer=WorkerId(1 - number), producer=1, rank=(0,), partitions=(1 - number,)
        )
        for sequence in range(self.plan.batches):
            await asyncio.sleep(self.rng.choice((0.0, 0.01)))
            if end.out.state.closed:
                return
            rows = [1_000 * number + 10 * sequence + at for at in range(self.rng.randint(1, 6))]
            end.made.append(rows)
            outputs = []
            for partition in (0, 1):
                content = rows_batch(rows)
                batch = Batch(BatchId(next(self.ids)), len(rows), content.nbytes, Tier.DEVICE, content)
                outputs.append((partition, batch, end.worker.ledger.take(Tier.DEVICE, batch.nbytes, Use.BATCH)))
            end.out.put(0, sequence, outputs)
        end.out.finish(0)

    async def _gather(self, end: End, peer: int) -> None:
        assert end.worker.network is not None
        await asyncio.sleep(self.rng.choice((0.0, 0.05)))
        arrived = asyncio.Event()
        flow = end.worker.network.admit(end.into, peer=WorkerId(peer), producer=1, arrived=arrived.set)
        end.into.finish(0)
        feed = end.into.state.feeds[0]
        while (entry := await self._next(end, feed, flow)) is not None:
            await asyncio.sleep(self.rng.choice((0.0, 0.0, 0.02)))
            await end.into.wait_moved(entry)
            if entry.batch.tier is not Tier.DEVICE:
                end.into.state.start_move(entry)
                space = end.worker.ledger.take(Tier.DEVICE, entry.batch.nbytes, Use.BATCH)
                await end.worker.mover.promote(end.into, entry, space, ahead=False)
            end.got += entry.batch.content.column(0).to_pylist()
            end.into.consume(entry)

    async def _next(self, end: End, feed: object, flow: object) -> object:
        take = asyncio.ensure_future(end.into.take(feed))
        done = flow.done
        await asyncio.wait([take, done], return_when=asyncio.FIRST_COMPLETED)
        if not take.done() and done.result() is not None:
            end.lost = isinstance(done.result(), PeerLost)
            end.into.close()
        return await take

    async def _leave(self, end: End) -> None:
        await asyncio.sleep(self.plan.leave_after)
        await end.transport.close()


def run(seed: int) -> tuple[Plan, list[End]]:
    plan = Plan.draw(seed)
    return plan, simulate(lambda loop: Ring(seed, loop).run(), seed)


@pytest.mark.parametrize("part", range(5))
def test_all_rows_arrive_in_order_or_the_peer_is_lost(part: int) -> None:
    for seed in range(part, 100, 5):
        plan, ends = run(seed)
        for end, other in ((ends[0], ends[1]), (ends[1], ends[0])):
            expected = [value for rows in other.made for value in rows]
            if plan.leave_after is None:
                assert end.got == expected, f"seed {seed}: {plan}"
                assert not end.lost
            else:
                assert end.got == expected[: len(end.got)], f"seed {seed}: {plan}"


def test_the_ring_goes_where_it_claims() -> None:
    runs = [run(seed) for seed in range(40)]
    events = [event for _, ends in runs for end in ends for _, event in end.worker.recorder.events()]
    assert any(isinstance(event, BatchReceived) for event in events)
    assert any(isinstance(event, Demoted) for event in events)
    assert any(end.lost for _, ends in runs for end in ends)
