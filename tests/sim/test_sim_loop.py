"""What the simulated loop promises: it is reproducible, never sleeps, and sees when nothing can move."""

from __future__ import annotations

import asyncio
import time

import pytest
from support.sim_loop import SimLoop, SimThreads, Stuck, simulate


async def trace_of_workers(loop: SimLoop) -> list[tuple[int, float]]:
    trace: list[tuple[int, float]] = []

    async def step(name: int) -> None:
        for _ in range(4):
            trace.append((name, loop.time()))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name in range(5):
            group.create_task(step(name))
    return trace


def test_same_seed_same_trace() -> None:
    assert simulate(trace_of_workers, 7) == simulate(trace_of_workers, 7)


def test_other_seeds_other_traces() -> None:
    assert len({tuple(simulate(trace_of_workers, seed)) for seed in range(10)}) > 5


def test_time_moves_without_sleeping() -> None:
    async def main(loop: SimLoop) -> float:
        await asyncio.sleep(3_600)
        return loop.time()

    started = time.monotonic()
    assert simulate(main, 0) == pytest.approx(3_600)
    assert time.monotonic() - started < 1


def test_timeouts_work_on_its_time() -> None:
    async def main(loop: SimLoop) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 5)
        assert loop.time() == pytest.approx(5)

    simulate(main, 0)


def test_a_group_fails_as_a_whole() -> None:
    async def boom() -> None:
        raise ValueError("boom")

    async def group_of_two() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(100))
            group.create_task(boom())

    async def main(loop: SimLoop) -> None:
        with pytest.raises(ExceptionGroup):
            await group_of_two()
        assert loop.time() == 0

    simulate(main, 0)


def test_a_deadlock_is_seen() -> None:
    async def main(loop: SimLoop) -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        simulate(main, 0)


def test_thread_work_is_delayed_and_ordered_per_thread() -> None:
    async def main(loop: SimLoop) -> list[int]:
        threads = SimThreads("t", 1)
        done: list[int] = []
        futures = [threads.submit(done.append, number) for number in range(5)]
        assert done == []
        await asyncio.gather(*futures)
        threads.close()
        return done

    assert simulate(main, 3) == [0, 1, 2, 3, 4]


def test_errors_of_thread_work_arrive() -> None:
    async def main(loop: SimLoop) -> None:
        threads = SimThreads("t", 2)
        with pytest.raises(ZeroDivisionError):
            await threads.submit(lambda: 1 // 0)

    simulate(main, 0)
