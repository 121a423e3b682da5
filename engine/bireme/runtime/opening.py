"""How a pipeline opens, when all that it comes after has ended.

Rule: the loop waits for nothing. Splits that take long to find, of many row groups or by what the files say of their
pages, are found on an IO thread, and the pipeline is OPENING meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from bireme.observe.event import PipelineOpened
from bireme.plan.physical import EdgeSource, ScanSource
from bireme.runtime.pipeline import LivePipeline, Phase
from bireme.storage.base import Split


def open_pipeline(live: LivePipeline) -> None:
    """What must be done before is done."""
    stages, source = live.graph.stages, live.pipeline.source
    live.phase = Phase.OPENING
    # First: the order of splits may depend on what the stage keeps.
    live.stage.open(live.graph.slots)
    if not isinstance(source, ScanSource):
        _opened(live, ())
    elif stages.are_splits_quick(live.pipeline):
        _opened(live, stages.splits(live.pipeline))
    else:
        live.fetching += 1
        found = live.graph.services.on_io_thread(partial(stages.splits, live.pipeline))
        found.add_done_callback(partial(_found, live))


def _found(live: LivePipeline, done: asyncio.Future[Sequence[Split]]) -> None:
    graph = live.graph
    live.fetching -= 1
    error = None if done.cancelled() else done.exception()
    if error is not None:
        graph.fail(error)
    elif live.phase is Phase.OPENING and not graph.closed and not done.cancelled():
        graph.guarded(partial(_opened, live, done.result()))
    graph.touch(live)
    graph.settle()


def _opened(live: LivePipeline, splits: Sequence[Split]) -> None:
    graph, source = live.graph, live.pipeline.source
    live.phase = Phase.OPEN
    if isinstance(source, ScanSource):
        live.splits = splits
        live.is_kept = graph.stages.is_kept(source.table)
        live.inputs_max = len(splits)
        if splits:
            graph.services.want_bytes(live)
    elif not isinstance(source, EdgeSource):
        live.inputs_max = 1
    graph.recorder.record(PipelineOpened(live.query, live.pipeline.id, len(splits)))
