"""A query that is given up at every step of the loop that it takes, in each way that a caller has.

Whatever the step, nothing is left behind, no tier holds a byte, and the worker answers the next query. Memory is that
of a few rows, so batches, states and bytes of splits are on their way between tiers all the time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.disk import DiskFaults, MemorySource, MemorySpill
from support.fake_stages import FakeStages
from support.random_dag import Case, DagMaker
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate
from support.sim_worker import check_worker

from bireme.config import Config
from bireme.data.tier import Tier
from bireme.errors import Cancelled, OutOfRoom
from bireme.observe.event import Demoted, Promoted, StateRelieved
from bireme.runtime.memory.mover import Mover
from bireme.runtime.query import ResultStream
from bireme.runtime.worker import Worker
from bireme.units import MIB

_PATIENCE_SECONDS = 3_600.0


@dataclass(slots=True)
class Walk:
    """What one run went through: its steps, and whether it was given up before its end."""

    first_step: int = 0
    last_step: int = 0
    given_up: bool = False
    moved: int = 0
    relieved: int = 0


class CancelRun:
    """One query, given up at `step` by `how`; none is where it is 0. Then another one, to its end."""

    def __init__(self, seed: int, step: int, how: str, loop: SimLoop) -> None:
        self.seed, self.step, self.how, self.loop = seed, step, how, loop
        rng = random.Random(seed)
        self.config = Config(
            threads=rng.choice((1, 2)),
            memory_bytes_max=rng.choice((16, 80)),
            pinned_bytes_max=rng.choice((0, MIB)),
            spill_folders=(Path("simulated"),),
            spill_bytes_max=1 << 30,
            preload_bytes_max=rng.choice((1, 60)),
            edge_bytes_max=rng.choice((1, 50)),
            result_bytes_max=rng.choice((1, 50)),
        )
        self.walk = Walk()
        self.source = MemorySource(random.Random(seed + 1), DiskFaults())
        self.spill = MemorySpill(random.Random(seed + 2), DiskFaults())

    async def run(self) -> Walk:
        worker = Worker(
            self.config, source=self.source, spill=self.spill, clock=SimClock(self.loop), threads=SimThreads
        )
        async with worker, asyncio.timeout(_PATIENCE_SECONDS):
            await self._give_up(worker)
            # A lane of Compute may just have been given room for what is no more.
            await asyncio.sleep(0.001)
            self._check_empty(worker)
            if not worker.closing:
                case, stages = _case(self.seed + 1_000_000)
                try:
                    assert case.right(await _read(worker.run(case.dag, stages)))
                except OutOfRoom:
                    # States that cannot be moved may be larger than memory.
                    assert case.stateful
                await asyncio.sleep(0.001)
                self._check_empty(worker)
        events = [event for _, event in worker.recorder.events()]
        self.walk.moved = sum(isinstance(event, (Demoted, Promoted)) for event in events)
        self.walk.relieved = sum(isinstance(event, StateRelieved) for event in events)
        return self.walk

    async def _give_up(self, worker: Worker) -> None:
        case, stages = _case(self.seed)
        self.walk.first_step = self.loop.steps
        stream = worker.run(case.dag, stages)
        reader = asyncio.ensure_future(_read(stream))
        ways: dict[str, Callable[[], Any]] = {
            "the reader is cancelled": reader.cancel,
            "the stream is closed": lambda: asyncio.ensure_future(stream.aclose()),
            "the worker is closed": lambda: asyncio.ensure_future(worker.close()),
        }
        if self.step:
            self.loop.at_step(self.step, ways[self.how])
        try:
            got = await reader
            assert case.right(got), f"{got} instead of {case.rows}"
        except (asyncio.CancelledError, Cancelled):
            self.walk.given_up = True
        except OutOfRoom:
            assert case.stateful
        await stream.aclose()
        self.walk.last_step = self.loop.steps
        check_worker(worker)
        if self.how == "the worker is closed":
            await worker.close()

    def _check_empty(self, worker: Worker) -> None:
        ledger = worker.ledger
        assert ledger.live == 0, f"{ledger!r}"
        assert all(ledger.totals[tier] == 0 for tier in Tier)
        assert self.spill.bytes_used == 0
        assert not worker._queries


def _case(seed: int) -> tuple[Case, FakeStages]:
    rng = random.Random(seed)
    case = DagMaker(rng).make()
    return case, FakeStages(case.works, seed=seed, is_kept=False)


async def _read(stream: ResultStream) -> list[int]:
    got: list[int] = []
    async for batch in stream:
        got += batch.column(0).to_pylist()
    return got


def walk(seed: int, step: int = 0, how: str = "") -> Walk:
    return simulate(lambda loop: CancelRun(seed, step, how, loop).run(), seed)


_WAYS = ("the reader is cancelled", "the stream is closed", "the worker is closed")


def walk_all(seed: int, how: str, *, stride: int) -> int:
    """Gives a query up at every `stride`-th of its steps; says how often it had not ended yet."""
    whole = walk(seed)
    given_up = 0
    for step in range(whole.first_step + 1 + seed % stride, whole.last_step + 2, stride):
        try:
            given_up += walk(seed, step, how).given_up
        except BaseException as error:
            error.add_note(f"found at step {step} of seed {seed}, where {how}")
            raise
    return given_up


@pytest.mark.parametrize("how", _WAYS)
def test_a_query_may_be_given_up_at_many_steps(how: str) -> None:
    assert sum(walk_all(seed, how, stride=37) for seed in range(6)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("how", _WAYS)
@pytest.mark.parametrize("seed", range(100, 124))
def test_a_query_may_be_given_up_at_any_step(how: str, seed: int) -> None:
    # One seed a test: each takes about 15 s, and what takes too long is ended inside a step of the loop, where it looks
    # like a worker that hangs.
    walk_all(seed, how, stride=1)


def test_the_walks_go_where_they_claim() -> None:
    walks = [walk(seed) for seed in range(8)]
    assert sum(one.moved for one in walks) > 100
    assert sum(one.relieved for one in walks) > 0
    assert sum(one.last_step - one.first_step for one in walks) > 1_000


def forget_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cancelled move has written is left where it is."""
    original = Mover._free_body
    monkeypatch.setattr(Mover, "_free_body", lambda mover, batch: None if batch.id % 5 == 0 else original(mover, batch))


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_moves(monkeypatch)
    with pytest.raises(AssertionError):
        sum(walk_all(seed, _WAYS[0], stride=37) for seed in range(12))
