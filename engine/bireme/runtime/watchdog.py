"""Finds queries that wait for themselves, and ends them with their story instead of hanging.

A query makes progress as long as events of it are recorded, a task or a move runs, or its caller has a batch to
read. One that has done none of this for `seconds_max` is deadlocked: it fails with `Stalled`, whose message is the
wait-for graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bireme.errors import Stalled
from bireme.observe.event import DeadlockFound
from bireme.observe.recorder import Recorder
from bireme.runtime.query import Query
from bireme.runtime.story import story_of


class Watchdog:
    """Keeps one timer while there are queries. `busy` tells whether anything of the worker runs."""

    def __init__(self, *, seconds_max: float, recorder: Recorder, busy: Callable[[], bool]) -> None:
        self._seconds_max = seconds_max
        self._recorder = recorder
        self._busy = busy
        self._queries: dict[Query, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._seen = -1

    def __repr__(self) -> str:
        return f"<Watchdog of {len(self._queries)} queries>"

    def watch(self, query: Query) -> None:
        self._queries[query] = None
        if self._timer is None:
            self._arm()

    def forget(self, query: Query) -> None:
        self._queries.pop(query, None)
        if not self._queries:
            self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._seen = self._recorder.count
        self._timer = asyncio.get_running_loop().call_later(self._seconds_max, self._look)

    def _look(self) -> None:
        if self._recorder.count == self._seen and not self._busy():
            for query in tuple(self._queries):
                self._judge(query)
        self._arm()

    def _judge(self, query: Query) -> None:
        graph = query.graph
        if graph.closed or graph.result_readable() or graph.fetching():
            return
        story = story_of(graph)
        self._recorder.record(DeadlockFound(query.id, story))
        graph.fail(Stalled(f"work waits for itself, which is a fault of the engine; please report this:\n{story}"))
