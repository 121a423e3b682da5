"""The stages of one query, and where their tables come from.

The composition of stages is here and only here; the runtime knows `base.StageSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bireme.backends.base import Kernels
from bireme.config import Levers
from bireme.data.key_range import EMPTY, KeyRange, exclusive
from bireme.errors import EngineBug
from bireme.operators.stage import PipelineStage
from bireme.operators.states import Cluster, QueryStates
from bireme.plan.physical import Dag, EmitSink, GroupSink, Pipeline, ScanSource, TopSink
from bireme.storage.base import ScannableSource, Split

# Where less of all ranges than this belongs to one split alone, telling whole groups apart gains nothing.
_FINAL_SHARE_MIN: Final = 0.5


def clusters(ranges: Sequence[KeyRange | None]) -> list[Cluster]:
    """What each split of a scan states of a key, and what it alone can hold; empty where that is little."""
    stated = [EMPTY if found is None else found for found in ranges]
    final = exclusive(ranges)
    if sum(map(_width, final)) < _FINAL_SHARE_MIN * sum(map(_width, stated)):
        return []
    return list(map(Cluster, stated, final))


def _width(found: KeyRange) -> int:
    return 0 if found.is_empty else found.high - found.low + 1


def _nothing_is_kept(_: str) -> bool:
    return False


class PipelineStages:
    """The `StageSet` of a Dag; `source` gives the table that a scan names, `is_kept` tells whether to cache it."""

    def __init__(
        self,
        dag: Dag,
        kernels: Kernels,
        source: Callable[[str, str], ScannableSource],
        levers: Levers,
        is_kept: Callable[[str], bool] = _nothing_is_kept,
    ) -> None:
        self._dag = dag
        self._kernels = kernels
        self._source = source
        self._is_kept = is_kept
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
        source = self._source(scan.table, scan.version)
        splits = source.splits(scan.columns, filters)
        if isinstance(pipeline.sink, GroupSink) and pipeline.sink.finals is not None:
            finals = pipeline.sink.finals
            self._states.clusters[finals.edge] = clusters(source.key_ranges(finals.column, splits))
        return splits

    def is_kept(self, table: str) -> bool:
        return self._is_kept(table)

    def stop(self) -> None:
        self._states.stopped = True

    def close(self) -> None:
        self._states.close()
