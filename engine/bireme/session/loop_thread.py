"""The thread that a session's event loop runs on, and how other threads wait for it.

One loop per session. Callers are scripts (which block), notebooks (which have a loop of their own, and block too) and
asyncio programs (which await); none of them ever runs bireme's coroutines on its own thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from bireme.errors import Cancelled, ConfigError

T = TypeVar("T")


class LoopThread:
    """A running loop on a thread of its own."""

    def __init__(self, name: str) -> None:
        self._loop = uvloop.new_event_loop()
        # Between the last coroutine and the end of the loop no other may slip in: nobody would run it.
        self._lock = threading.Lock()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Runs a coroutine on the loop; cancelling the future cancels it. Raises ConfigError once the loop ends."""
        with self._lock:
            if self._ending:
                coroutine.close()
                raise ConfigError("the session is closed; connect() a new one")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and blocks for its result.

        Ctrl-C, or anything else that interrupts the wait, cancels the coroutine and waits until it has cleaned up.
        """
        future = self.start(coroutine)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled("the query was cancelled") from None
        except BaseException:
            if not future.done():
                future.cancel()
                concurrent.futures.wait([future])
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Runs a plain function on the loop, soon."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Stops the loop and joins the thread; what still runs there is cancelled first. Idempotent."""
        with self._lock:
            if self._ending:
                return
            self._ending = True
            last = asyncio.run_coroutine_threadsafe(_cancel_the_rest(), self._loop)
        last.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_the_rest() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
