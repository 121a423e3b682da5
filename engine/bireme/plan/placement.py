"""Fills in what hints say of time: when an edge is next read, and for how long it lives.

The expected order of execution is the order of pipelines in the Dag; row and byte estimates are put in by `lower`.
"""

from __future__ import annotations

from bireme.data.node import replaced
from bireme.plan.physical import Dag, Edge, ScanSource

# Row groups that Pre-Load keeps ahead of the tasks of a scan: enough to hide a read and for tasks of several of them,
# few enough to stay in budget.
_SCAN_PREFETCH_DEPTH = 24


def place(dag: Dag) -> Dag:
    """The same Dag with the hints complete."""
    pipelines = tuple(
        [
            replaced(pipeline, hint=replaced(pipeline.hint, prefetch_depth=_SCAN_PREFETCH_DEPTH))
            if isinstance(pipeline.source, ScanSource)
            else pipeline
            for pipeline in dag.pipelines
        ]
    )
    return replaced(dag, pipelines=pipelines, edges=tuple([_placed(edge, len(pipelines)) for edge in dag.edges]))


def _placed(edge: Edge, end: int) -> Edge:
    # The caller reads the result after everything else.
    uses = edge.consumers or (end,)
    return replaced(edge, hint=replaced(edge.hint, next_use=min(uses), last_use=max(uses)))
