"""The stages of one query, and where their tables come from.

The composition of stages is here and only here; the runtime knows `base.StageSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bireme.backends.base import Kernels
from bireme.config import Levers
from bireme.errors import EngineBug
from bireme.operators.stage import PipelineStage
from bireme.operators.states import QueryStates
from bireme.plan.physical import Dag, EmitSink, GroupSink, Pipeline, ScanSource, TopSink
from bireme.storage.base import ScannableSource, Split


class PipelineStages:
    """The `StageSet` of a Dag; `source` gives the table that a scan names."""

    def __init__(
        self, dag: Dag, kernels: Kernels, source: Callable[[str, str], ScannableSource], levers: Levers
    ) -> None:
        self._dag = dag
        self._kernels = kernels
        self._source = source
        self._states = QueryStates(levers)

    def stage(self, pipeline: Pipeline) -> PipelineStage:
        return PipelineStage(pipeline, self._output_partitions(pipeline), self._kernels, self._states)

    def _output_partitions(self, pipeline: Pipeline) -> int:
        if not isinstance(pipeline.sink, EmitSink | GroupSink | TopSink):
            return 1
        return self._dag.edges[pipeline.sink.edge].partitions

    def splits(self, pipeline: Pipeline) -> Sequence[Split]:
        scan = pipeline.source
        if not isinstance(scan, ScanSource):
            raise EngineBug(f"pipeline {pipeline.name} reads no table")
        filters = [self._states.resolve(each) for each in scan.filters]
        return self._source(scan.table, scan.version).splits(scan.columns, filters)

    def stop(self) -> None:
        self._states.stopped = True

    def close(self) -> None:
        self._states.close()
