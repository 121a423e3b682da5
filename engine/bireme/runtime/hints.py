"""Which of the planner's hints this worker cannot follow, and why: what is not obeyed is recorded.

Hints that are obeyed are read where they count: next use and home tier in `memory`, prefetch depth in `preload`, order
in `compute`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bireme.data.ids import PipelineId
from bireme.plan.hint import DeviceKind
from bireme.plan.physical import Dag


def unmet_hints(dag: Dag) -> Iterator[tuple[PipelineId, str]]:
    """Pipelines with a hint that a worker without GPU and without peers runs against, and the reason."""
    for pipeline in dag.pipelines:
        if pipeline.hint.device is DeviceKind.GPU:
            yield pipeline.id, "hinted to a GPU, runs on the CPU: this worker has no GPU"
        if pipeline.hint.affinity is not None:
            yield pipeline.id, f"hinted to worker {pipeline.hint.affinity}, runs here: this worker runs whole queries"
