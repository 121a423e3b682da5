"""Finds queries that wait for themselves, and ends them with their story instead of hanging.

A query is stuck when for `seconds_max` nothing happened to it, nothing of it runs, moves or is being fetched, it is not
its caller's turn, and nothing else of the worker explains the wait: while anything happens to others, a query may wait
for a slot or for room. It fails with `Stalled`, whose message is the wait-for graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bireme.errors import Stalled
from bireme.observe.event import DeadlockFound
from bireme.observe.recorder import Recorder
from bireme.runtime.graph import Graph
from bireme.runtime.query import Query
from bireme.runtime.story import story_of


class Watchdog:
    """Keeps one timer while there are queries. `busy` tells whether anything of the worker runs."""

    def __init__(self, *, seconds_max: float, recorder: Recorder, busy: Callable[[], bool]) -> None:
        self._seconds_max = seconds_max
        self._recorder = recorder
        self._busy = busy
        self._heard: dict[Query, int] = {}
        # Of the whole worker. That nothing runs just now tells little: it may be between two tasks.
        self._heard_at_all = 0
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Watchdog of {len(self._heard)} queries>"

    def watch(self, query: Query) -> None:
        self._heard[query] = query.profile.heard
        if self._timer is None:
            self._arm()

    def forget(self, query: Query) -> None:
        self._heard.pop(query, None)
        if not self._heard:
            self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._heard_at_all = self._recorder.count
        self._timer = asyncio.get_running_loop().call_later(self._seconds_max, self._look)

    def _look(self) -> None:
        is_idle = self._recorder.count == self._heard_at_all and not self._busy()
        for query, heard in tuple(self._heard.items()):
            self._heard[query] = query.profile.heard
            if heard == query.profile.heard and _is_stuck(query.graph, is_idle):
                self._end(query.graph)
        self._arm()

    def _end(self, graph: Graph) -> None:
        story = story_of(graph)
        self._recorder.record(DeadlockFound(graph.query, story))
        graph.fail(Stalled(f"work waits for itself, which is a fault of the engine; please report this:\n{story}"))


def _is_stuck(graph: Graph, is_idle: bool) -> bool:
    """Of a query to which nothing happened; `is_idle` tells that the same holds for the worker."""
    if graph.closed or graph.running or graph.fetching() or graph.moving() or graph.result_readable():
        return False
    return is_idle or not graph.wants_something()
