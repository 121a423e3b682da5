"""A Dag under construction: pipelines without a sink yet, and edges whose ends are still being found.

Bookkeeping only; what becomes a pipeline is decided in `lower` and `lower_join`.
"""

from __future__ import annotations

from dataclasses import field

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.schema import Schema
from bireme.plan.expr import Column, Expr
from bireme.plan.hint import Hint
from bireme.plan.physical import (
    Dag,
    Edge,
    EdgeSource,
    EmitSink,
    GroupSink,
    Pipeline,
    ProgramStep,
    RangeSink,
    SampleSink,
    Sink,
    Source,
    Step,
    Take,
    TopSink,
)
from bireme.records import dataclass


@dataclass(slots=True)
class Opened:
    """A pipeline under construction: everything but its sink."""

    name: str
    source: Source
    schemas: list[Schema]
    steps: list[Step] = field(default_factory=list)
    after: set[PipelineId] = field(default_factory=set)
    rows: float = 0.0

    @property
    def schema(self) -> Schema:
        return self.schemas[-1]

    def add(self, step: Step, schema: Schema) -> None:
        self.steps.append(step)
        self.schemas.append(schema)

    def replace_last(self, step: Step, schema: Schema) -> None:
        self.steps[-1] = step
        self.schemas[-1] = schema

    def project(self, exprs: tuple[Expr, ...], names: tuple[str, ...], schema: Schema) -> None:
        """Computes `exprs`; joins a filter before it into one step, and leaves out what changes nothing."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, ProgramStep) and is_identity(last.exprs, self.schemas[-2]):
            self.replace_last(ProgramStep(last.predicate, exprs, names), schema)
        elif not (is_identity(exprs, self.schema) and self.schema.names == names):
            self.add(ProgramStep(None, exprs, names), schema)


@dataclass(slots=True)
class _EdgeDraft:
    name: str
    schema: Schema
    partitions: int
    rows: float
    producers: list[PipelineId] = field(default_factory=list)
    consumers: list[PipelineId] = field(default_factory=list)


class Draft:
    """The pipelines and edges so far."""

    def __init__(self) -> None:
        self._pipelines: list[Pipeline] = []
        self._edges: list[_EdgeDraft] = []

    def edge(self, name: str, schema: Schema, rows: float, partitions: int = 1) -> EdgeId:
        self._edges.append(_EdgeDraft(name, schema, partitions, rows))
        return EdgeId(len(self._edges) - 1)

    def from_edge(self, edge: EdgeId, take: Take, name: str) -> Opened:
        draft = self._edges[edge]
        return Opened(name, EdgeSource(edge, take), [draft.schema], rows=draft.rows)

    def close(self, opened: Opened, sink: Sink) -> PipelineId:
        """Ends a pipeline in `sink`."""
        identifier = PipelineId(len(self._pipelines))
        hint = Hint(rows_expected=int(opened.rows), bytes_expected=int(opened.rows * opened.schema.row_bytes))
        self._pipelines.append(
            Pipeline(
                identifier,
                opened.name,
                opened.source,
                tuple(opened.steps),
                sink,
                tuple(sorted(opened.after)) if opened.after else (),
                tuple(opened.schemas),
                hint,
            )
        )
        if isinstance(opened.source, EdgeSource):
            self._edges[opened.source.edge].consumers.append(identifier)
        for edge in output_edges(sink):
            self._edges[edge].producers.append(identifier)
        return identifier

    def dag(self, result: EdgeId, schema: Schema) -> Dag:
        edges = []
        for index, draft in enumerate(self._edges):
            hint = Hint(
                rows_expected=int(draft.rows),
                bytes_expected=int(draft.rows * draft.schema.row_bytes),
                partitions=draft.partitions,
            )
            edges.append(
                Edge(
                    EdgeId(index), draft.name, draft.schema, tuple(draft.producers), tuple(draft.consumers),
                    draft.partitions, True, hint,
                )
            )  # fmt: skip
        return Dag(tuple(self._pipelines), tuple(edges), result, schema)


def output_edges(sink: Sink) -> tuple[EdgeId, ...]:
    """The edges that a pipeline with this sink produces for."""
    if isinstance(sink, (EmitSink, RangeSink, TopSink)):
        return (sink.edge,)
    if isinstance(sink, GroupSink):
        return (sink.edge,) if sink.finals is None else (sink.edge, sink.finals.edge)
    if isinstance(sink, SampleSink):
        return () if sink.edge is None else (sink.edge,)
    return ()


def is_identity(exprs: tuple[Expr, ...], schema: Schema) -> bool:
    """Whether the expressions are the columns of the schema, all and in order."""
    if len(exprs) != len(schema.fields):
        return False
    for index, expr in enumerate(exprs):  # noqa: SIM110  (a loop is twice as fast as all())
        if expr.__class__ is not Column or expr.index != index:
            return False
    return True
