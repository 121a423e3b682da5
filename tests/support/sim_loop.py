"""The simulated loop: production code runs unchanged, without sleeping, without threads, in an order drawn from a seed.

Time moves to the next timer when nothing is ready. Ready tasks step in seeded order; those of a group that fails are
cancelled in seeded order too. Thread work runs inline after a seeded delay. When everything waits and no timer is
pending, the run stops with `Stuck`; when it goes on without end, with `Endless`.

It leans on four private names of asyncio (`_ready`, `_run_once`, `Handle._callback`, `TaskGroup._tasks`);
`tests/sim/test_sim_loop.py` checks what it promises for each Python version.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")

_STEPS_MAX = 100_000


class Stuck(Exception):
    """Every task waits and no timer is pending."""


class Endless(Exception):
    """More steps than any honest run takes."""


class _SkipIdle(selectors.SelectSelector):
    """Waits for nothing: moves the loop's clock instead."""

    loop: SimLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck
        self.loop.now += max(timeout, 0.0)
        return []


class SimLoop(asyncio.SelectorEventLoop):
    """An event loop with its own clock."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.steps = 0
        self._alarms: dict[int, Callable[[], object]] = {}
        selector = _SkipIdle()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def at_step(self, step: int, alarm: Callable[[], object]) -> None:
        """Calls `alarm` before the loop's step of that number."""
        self._alarms[step] = alarm

    def _run_once(self) -> None:
        self.steps += 1
        if self.steps > _STEPS_MAX:
            raise Endless
        if (alarm := self._alarms.pop(self.steps, None)) is not None:
            alarm()
        ready: Any = self._ready  # type: ignore[attr-defined]
        if len(ready) > 1:
            # Only task steps are reordered; plain callbacks keep the order that asyncio promises.
            slots = [index for index, handle in enumerate(ready) if _is_task_step(handle)]
            steps = [ready[index] for index in slots]
            self.rng.shuffle(steps)
            for index, step in zip(slots, steps, strict=True):
                ready[index] = step
        super()._run_once()  # type: ignore[misc]


def _is_task_step(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


class _Tasks:
    """The tasks of a group, in place of a set, whose order would depend on where objects lie in memory."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def add(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None

    def discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(self._rng.sample(list(self._tasks), len(self._tasks)))


class SimThreads:
    """Threads that run work on the loop after a delay, like `runtime.threads.LoopThreads` in all else."""

    def __init__(self, name: str, count: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        self._loop = loop
        self._busy_until = [0.0] * count
        self.open = True

    def submit(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        return self.submit_numbered(lambda _: work(*args))

    def submit_numbered(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        assert self.open, "work was given to threads that have ended"
        loop = self._loop
        future: asyncio.Future[T] = loop.create_future()
        # The thread that is free first takes it.
        thread = min(range(len(self._busy_until)), key=self._busy_until.__getitem__)
        ends = max(loop.time(), self._busy_until[thread]) + loop.rng.expovariate(100)
        self._busy_until[thread] = ends
        loop.call_at(ends, _settle, future, work, (thread, *args))
        return future

    def close(self) -> None:
        self.open = False


def _settle(future: asyncio.Future[Any], work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        result = work(*args)
    except BaseException as error:
        if not future.cancelled():
            future.set_exception(error)
    else:
        if not future.cancelled():
            future.set_result(result)


class SimClock:
    """The loop's time as a Clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return self._loop.now


def simulate(main: Callable[[SimLoop], Coroutine[Any, Any, T]], seed: int) -> T:
    """Runs `main` on a fresh loop of `seed`, and checks that it leaves no task behind."""
    loop = SimLoop(seed)
    plain = asyncio.TaskGroup.__init__

    def seeded(group: Any) -> None:
        plain(group)
        group._tasks = _Tasks(loop.rng)

    with mock.patch.object(asyncio.TaskGroup, "__init__", seeded):
        try:
            result = loop.run_until_complete(main(loop))
            left = asyncio.all_tasks(loop)
            assert not left, f"tasks left behind: {left}"
            return result
        finally:
            _end(loop)


def _end(loop: SimLoop) -> None:
    """Lets go of whatever a failed run left, without noise."""
    loop.set_exception_handler(lambda *_: None)
    loop.steps = -_STEPS_MAX
    for task in asyncio.all_tasks(loop):
        task.cancel()
    for _ in range(100):
        if not asyncio.all_tasks(loop):
            break
        loop.call_later(1.0, loop.stop)
        loop.run_forever()
    loop.close()
