"""Who waits for whom in a query: the wait-for graph as text, for the watchdog and for people.

Reads only; what a pipeline may do next is decided in `pipeline` and `graph`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bireme.runtime.graph import Graph
from bireme.runtime.pipeline import LivePipeline, Phase


def story_of(graph: Graph) -> str:
    """A line per pipeline that has not ended, then the result and the ledger."""
    lines = [f"{pipeline!r} {reason}" for pipeline in graph.pipelines.values() for reason in _waits_for(pipeline)]
    return "\n".join([f"query {graph.query}:", *lines, repr(graph.result), repr(graph.ledger)])


def _waits_for(pipeline: LivePipeline) -> Iterator[str]:
    if pipeline.phase is Phase.WAITING:
        names = [f"{one!r}" for one in pipeline.graph.before(pipeline) if one.phase is not Phase.ENDED]
        yield f"waits for the end of {', '.join(names)}"
    elif pipeline.phase is Phase.OPENING:
        yield "looks for its splits"
    elif pipeline.in_flight or pipeline.fetching:
        yield f"runs {pipeline.in_flight} tasks, fetches {pipeline.fetching} splits"
    elif pipeline.has_work():
        yield "is ready for a slot"
    elif pipeline.phase is Phase.OPEN and pipeline.graph.gated(pipeline):
        yield f"waits until {', '.join(repr(holder) for holder, _ in pipeline.sinks)} is read"
    elif pipeline.source is not None and pipeline.phase is Phase.OPEN:
        yield f"waits for input from {pipeline.source!r}"
    elif pipeline.phase is Phase.OPEN and pipeline.splits:
        yield f"waits for the bytes of split {pipeline.next_input} of {len(pipeline.splits)}"
