"""One relief of a live pipeline: it hands over what it keeps as batches, between two inputs, because memory is short.

It begins once no call of the pipeline runs; until it has ended, no input is handed out. When it is due is decided in
`memory.policy`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from bireme.data.ids import EventId
from bireme.data.tier import Tier
from bireme.observe.event import StateRelieved
from bireme.operators.base import NOTHING
from bireme.plan.physical import BuildSink
from bireme.runtime.compute.task import Task, TaskKind
from bireme.runtime.round_policy import tables_bytes_max

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline


class Relief:
    """`done` is set at its end, also where it ended because the pipeline did. `tasks` wait to run, in order."""

    def __init__(self, pipeline: LivePipeline, cause: EventId) -> None:
        self.tasks: deque[Task] = deque()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pipeline = pipeline
        self._cause = cause
        self._bytes_before = pipeline.costs.state_bytes
        self._begun = False
        self._left = 0

    def __repr__(self) -> str:
        return f"<Relief of {self._pipeline!r}: {f'{self._left} parts left' if self._begun else 'waits for its calls'}>"

    def part_done(self) -> None:
        self._left -= 1

    def advance(self) -> None:
        """No call of the pipeline runs: it begins, or is over."""
        pipeline = self._pipeline
        if not self._begun:
            self._begun = True
            self.tasks.extend(map(self._task, range(pipeline.stage.relief_parts())))
            self._left = len(self.tasks)
        if self._left == 0:
            pipeline.graph.recorder.record(
                StateRelieved(
                    pipeline.query, pipeline.pipeline.id, self._bytes_before, pipeline.costs.state_bytes, self._cause
                )
            )
            self.end()

    def _task(self, part: int) -> Task:
        pipeline = self._pipeline
        task = Task(pipeline, pipeline.stage, pipeline.graph.next_task_id(), TaskKind.RELIEVE, part)
        task.ready_at = pipeline.graph.clock.now()
        pipeline.number(task)
        return task

    def end(self) -> None:
        """The pipeline goes on without it, and so does whoever waits for it; idempotent."""
        if self._pipeline.relief is self:
            self._pipeline.relief = None
        if not self.done.done():
            self.done.set_result(None)


def keeps_too_much(pipeline: LivePipeline) -> bool:
    """Whether a join table that is about to be made would leave too little memory for those that probe it."""
    if not isinstance(pipeline.pipeline.sink, BuildSink) or not pipeline.costs.relievable.nbytes:
        return False
    graph = pipeline.graph
    builds = [live for live in graph.pipelines.values() if isinstance(live.pipeline.sink, BuildSink)]
    return sum([live.costs.state_bytes for live in builds]) > tables_bytes_max(graph.ledger.limits[Tier.DEVICE])


def tell_relievable(pipeline: LivePipeline, *, is_open: bool) -> None:
    """Lets the Memory executor know what a pipeline could give up now; nothing once it takes no more inputs."""
    found = pipeline.stage.relievable() if is_open else NOTHING
    if found != pipeline.costs.relievable:
        pipeline.costs.relievable = found
        pipeline.graph.services.relievable(pipeline)
