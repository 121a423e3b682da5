"""Faults that the simulation found, each as the smallest story that shows it. Those of `Room` are in `test_room`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.disk import MemorySource, MemorySpill
from support.fake_stages import FakeStages, FakeWork
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate
from support.small_dags import SCAN, dag, edge, emit, one_scan, pipeline, splits

from bireme.config import Config
from bireme.data.ids import PipelineId
from bireme.data.tier import Tier
from bireme.errors import Overflow
from bireme.runtime.memory.ledger import Use
from bireme.runtime.worker import Worker

ONE, TWO = PipelineId(1), PipelineId(2)


def worker_on(loop: SimLoop, **limits: int) -> Worker:
    config = Config(
        **({"threads": 1, "memory_bytes_max": 1 << 20, "spill_bytes_max": 1 << 20} | limits),
        spill_folders=(Path("simulated"),),
    )
    return Worker(config, source=MemorySource(), spill=MemorySpill(), clock=SimClock(loop), threads=SimThreads)


@pytest.mark.parametrize("seed", range(5))
def test_the_last_task_of_a_pipeline_fails_as_itself(seed: int) -> None:
    """Its pipeline settled before the failure was told, and seemed to end without that task's outputs."""

    async def main(loop: SimLoop) -> None:
        async with worker_on(loop) as worker:
            stream = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(1), fails=1.0)}))
            with pytest.raises(Overflow):
                await anext(stream)

    simulate(main, seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_scan_that_is_only_ahead_of_need_does_not_hold_up_one_that_has_nothing(seed: int) -> None:
    """The fetch loop gave up at the first scan without room, and nobody woke it for the second."""
    two_scans = dag((pipeline(1, SCAN, emit(1)), pipeline(2, SCAN, emit(1))), (edge(1, (1, 2)),))

    async def main(loop: SimLoop) -> None:
        async with worker_on(loop, memory_bytes_max=100) as worker:
            taken = worker.ledger.take(Tier.DEVICE, 90, Use.STATE)
            works = {ONE: FakeWork(splits=splits(6, range_bytes=40)), TWO: FakeWork(splits=splits(6, range_bytes=40))}
            got = [
                value
                async for batch in worker.run(two_scans, FakeStages(works))
                for value in batch.column(0).to_pylist()
            ]
            taken.release()
            assert got == [*range(6), *range(6)]

    simulate(main, seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_on_its_way_up_is_not_taken_for_one_that_cannot_move(seed: int) -> None:
    """A promotion larger than the whole tier counted as held for good, and its neighbour was out of room."""

    async def main(loop: SimLoop) -> None:
        async with worker_on(loop, memory_bytes_max=16, threads=2) as worker:
            stages = FakeStages({ONE: FakeWork(splits=splits(8, rows=3))})
            got = [value async for batch in worker.run(one_scan(), stages) for value in batch.column(0).to_pylist()]
            assert got == list(range(24))

    simulate(main, seed)
