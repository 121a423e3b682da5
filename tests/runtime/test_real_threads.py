"""The random Dags of the simulation on a real loop with real threads: what only true concurrency can show."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
import uvloop
from support.disk import MemorySource, MemorySpill
from support.fake_stages import FakeStages
from support.random_dag import DagMaker
from support.sim_worker import check_worker

from bireme.config import Config
from bireme.errors import OutOfRoom
from bireme.runtime.worker import Worker


async def one_query(worker: Worker, rng: random.Random) -> bool:
    """Runs a random Dag; whether it got its answer rather than ran out of room."""
    case = DagMaker(rng).make()
    stages = FakeStages(case.works)
    got: list[int] = []
    try:
        async for batch in worker.run(case.dag, stages):
            got += batch.column(0).to_pylist()
            check_worker(worker)
    except OutOfRoom:
        assert worker.config.memory_bytes_max < 10_000
    else:
        assert case.right(got), f"{got} instead of {case.rows}"
    counts = stages.counts
    assert not counts.faults, counts.faults
    assert (counts.opened, counts.set_closed) == (counts.closed, 1)
    return case.right(got)


@pytest.mark.parametrize("room", [1 << 30, 300, 64])
def test_random_plans_side_by_side(room: int) -> None:
    spill = MemorySpill()
    config = Config(
        threads=3,
        memory_bytes_max=room,
        spill_folders=(Path("none"),),
        spill_bytes_max=1 << 30,
        result_bytes_max=200,
        edge_bytes_max=400,
        stall_seconds_max=0.01,
    )

    async def main() -> list[bool]:
        async with Worker(config, source=MemorySource(), spill=spill) as worker:
            answers: list[bool] = []
            for start in range(0, 40, 4):
                queries = [one_query(worker, random.Random(seed)) for seed in range(start, start + 4)]
                answers += await asyncio.gather(*queries)
            assert worker.ledger.live == 0
            return answers

    answers = uvloop.run(main())
    assert answers.count(True) >= (40 if room == 1 << 30 else 10)
    assert spill.bytes_used == 0
    assert spill.writes > 0 or room == 1 << 30
