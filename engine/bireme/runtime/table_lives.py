"""When the join tables of a query may go: when the last pipeline that reads them has ended.

Changes only on the loop. It knows names and counts; freeing is the stages' and the graph's.
"""

from __future__ import annotations

from typing import NamedTuple

from bireme.data.ids import PipelineId
from bireme.plan.physical import BuildSink, Dag, MatchSink, Pipeline, ProbeStep, ScanSource, UnmatchedSource


class Spent(NamedTuple):
    """A table that nobody will read any more, and the pipeline that made it."""

    table: str
    maker: PipelineId


class TableLives:
    """The tables of one query, and who has still to read them. A maker counts as a reader of its own table."""

    def __init__(self, dag: Dag) -> None:
        self._makers: dict[str, PipelineId] = {}
        self._readers: dict[str, set[PipelineId]] = {}
        self._tables: dict[PipelineId, set[str]] = {}
        for pipeline in dag.pipelines:
            names = _read_by(pipeline)
            if isinstance(pipeline.sink, BuildSink):
                self._makers[pipeline.sink.table] = pipeline.id
                names.add(pipeline.sink.table)
            self._tables[pipeline.id] = names
            for name in names:
                self._readers.setdefault(name, set()).add(pipeline.id)

    def ended(self, pipeline: PipelineId) -> list[Spent]:
        """A pipeline has ended. The tables that this was the last to read, by name."""
        spent: list[Spent] = []
        for name in sorted(self._tables.pop(pipeline, ())):
            readers = self._readers[name]
            readers.discard(pipeline)
            if not readers and name in self._makers:
                spent.append(Spent(name, self._makers[name]))
        return spent


def _read_by(pipeline: Pipeline) -> set[str]:
    names = {step.table for step in pipeline.steps if isinstance(step, ProbeStep)}
    if isinstance(pipeline.source, ScanSource):
        names.update([lookup.table for lookup in pipeline.source.lookups])
    if isinstance(pipeline.source, UnmatchedSource):
        names.add(pipeline.source.table)
    if isinstance(pipeline.sink, MatchSink):
        names.add(pipeline.sink.table)
    return names
