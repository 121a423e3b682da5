"""When the join tables of a query may go: when the last pipeline that reads them has ended, or is past them.

Changes only on the loop. It knows names and counts; freeing is the stages' and the graph's.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        self._pipelines = {pipeline.id: pipeline for pipeline in dag.pipelines}
        for pipeline in dag.pipelines:
            names = _read_by(pipeline)
            if isinstance(pipeline.sink, BuildSink):
                self._makers[pipeline.sink.table] = pipeline.id
            self._tables[pipeline.id] = names
            for name in names:
                self._readers.setdefault(name, set()).add(pipeline.id)

    def ended(self, pipeline: PipelineId) -> list[Spent]:
        """A pipeline has ended. The tables that this was the last to read, by name."""
        return self._read(pipeline, self._tables.pop(pipeline, set()))

    def passed(self, pipeline: PipelineId, step: int) -> list[Spent]:
        """As `ended`, of the tables that only its source and steps up to `step` read: no row comes there any more."""
        tables = self._tables[pipeline]
        past = tables - _read_after(self._pipelines[pipeline], step)
        tables -= past
        return self._read(pipeline, past)

    def _read(self, pipeline: PipelineId, tables: Iterable[str]) -> list[Spent]:
        spent: list[Spent] = []
        for name in sorted(tables):
            readers = self._readers[name]
            readers.discard(pipeline)
            if not readers and name in self._makers:
                spent.append(Spent(name, self._makers[name]))
        return spent


def _read_by(pipeline: Pipeline) -> set[str]:
    names = _read_after(pipeline, -1)
    if isinstance(pipeline.source, ScanSource):
        names.update([lookup.table for lookup in pipeline.source.lookups])
    return names


def _read_after(pipeline: Pipeline, step: int) -> set[str]:
    """What later steps read, and the sink; a source that is a table is there to the end."""
    names = {later.table for later in pipeline.steps[step + 1 :] if isinstance(later, ProbeStep)}
    if isinstance(pipeline.source, UnmatchedSource):
        names.add(pipeline.source.table)
    if isinstance(pipeline.sink, MatchSink | BuildSink):
        names.add(pipeline.sink.table)
    return names
