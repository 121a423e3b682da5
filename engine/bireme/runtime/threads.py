"""A few named threads that run blocking work for the loop: kernels, copies and file IO, nothing else.

Leaner than an executor of the standard library: one queue, one future, one wake-up of the loop per call. All state but
the queue belongs to the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from bireme.errors import EngineBug

T = TypeVar("T")
_Item = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]", bool]


class Threads(Protocol):
    """Where blocking work goes. The simulated loop has its own."""

    def submit(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Runs `work(*args)` soon. Cancelling the future does not stop work that has begun."""
        ...

    def submit_numbered(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Runs `work(number, *args)` soon, where `number` is that of the thread that does."""
        ...

    def close(self) -> None:
        """Waits for work that has begun and ends the threads; idempotent."""
        ...


class LoopThreads:
    """`count` real threads that serve one loop."""

    def __init__(self, name: str, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(index,), name=f"bireme-{name}-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((work, args, future, False))
        return future

    def submit_numbered(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((work, args, future, True))
        return future

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _serve(self, number: int) -> None:
        wake = self._loop.call_soon_threadsafe
        while (item := self._queue.get()) is not None:
            work, args, future, is_numbered = item
            error: BaseException | None
            try:
                result, error = work(number, *args) if is_numbered else work(*args), None
            except StopIteration as raised:
                # No future takes this one; the caller would wait for ever.
                result, error = None, EngineBug(f"{work!r} raised StopIteration")
                error.__cause__ = raised
            except BaseException as raised:
                result, error = None, raised
            wake(_settle, future, result, error)
            # Without this the thread would keep the last input and output alive while it waits.
            del item, work, args, future, result, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
