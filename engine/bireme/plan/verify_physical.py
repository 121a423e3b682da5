"""What must hold of a Dag before it runs, as code; run in tests and when debugging.

`complaints` lists every breach in words: pipelines come after what they need, edges and states have makers and
readers, columns are those of the schemas around them. What must hold of relations is in `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bireme.data.ids import EdgeId
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import EngineBug
from bireme.plan.draft import output_edges
from bireme.plan.explain_physical import explain_dag
from bireme.plan.expr import Column, Expr
from bireme.plan.physical import (
    BuildSink,
    Dag,
    EdgeSource,
    EmitSink,
    GroupSink,
    Lookup,
    MatchSink,
    MergeGroupsStep,
    Pipeline,
    ProbeStep,
    ProgramStep,
    RangeSink,
    SampleSink,
    Scalar,
    ScalarSink,
    ScanSource,
    SortStep,
    Step,
    TopSink,
    UnmatchedSource,
    UnnestStep,
    WindowStep,
)
from bireme.plan.tree import walk
from bireme.plan.window_order import NotedKeys


def verify_dag(dag: Dag) -> None:
    """Raises EngineBug, with the Dag, if something does not hold."""
    found = list(complaints(dag))
    if found:
        raise EngineBug("a Dag is broken: " + "; ".join(found) + "\n" + explain_dag(dag))


def complaints(dag: Dag) -> Iterator[str]:
    """What does not hold, in words."""
    return _Check(dag).all()


class _Check:
    """One check: who makes which state, and what each pipeline has to wait for."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        sinks = [(pipeline, pipeline.sink) for pipeline in dag.pipelines]
        self._tables = {sink.table: (pipeline, sink) for pipeline, sink in sinks if isinstance(sink, BuildSink)}
        self._scalars = {sink.scalar: pipeline for pipeline, sink in sinks if isinstance(sink, ScalarSink)}
        self._samples = {sink.sample: pipeline for pipeline, sink in sinks if isinstance(sink, SampleSink)}
        noted = [sink.noted for _, sink in sinks if isinstance(sink, EmitSink | GroupSink)]
        self._noted = {each.sample for each in noted if each is not None}
        self._done_before: list[set[int]] = []

    def all(self) -> Iterator[str]:
        yield from self._edges()
        for index, pipeline in enumerate(self._dag.pipelines):
            if pipeline.id != index:
                yield f"pipeline {pipeline.id} is at position {index}"
                return
            yield from [f"pipeline {index}: {each}" for each in self._pipeline(pipeline)]

    def _edges(self) -> Iterator[str]:
        for edge in self._dag.edges:
            makers = [p.id for p in self._dag.pipelines if edge.id in output_edges(p.sink)]
            readers = [
                p.id for p in self._dag.pipelines if isinstance(p.source, EdgeSource) and p.source.edge == edge.id
            ]
            if sorted(edge.producers) != makers or sorted(edge.consumers) != readers:
                yield f"edge {edge.id} has producers {edge.producers} and consumers {edge.consumers}"
            if not makers or (not readers and edge.id != self._dag.result):
                yield f"edge {edge.id} ends nowhere"

    def _pipeline(self, pipeline: Pipeline) -> Iterator[str]:
        source = pipeline.source
        needs = set(pipeline.after)
        if isinstance(source, EdgeSource):
            needs |= set(self._dag.edges[source.edge].producers)
        if any(each >= pipeline.id for each in needs):
            yield f"it comes before {sorted(needs)}, which it needs"
            needs = {each for each in needs if each < pipeline.id}
        self._done_before.append(needs.union(*[self._done_before[each] for each in needs]))
        if len(pipeline.schemas) != len(pipeline.steps) + 1:
            yield f"{len(pipeline.steps)} steps have {len(pipeline.schemas)} schemas"
            return
        yield from self._source(pipeline, source)
        for index, step in enumerate(pipeline.steps):
            yield from self._step(pipeline, step, pipeline.schemas[index], pipeline.schemas[index + 1])
        yield from self._sink(pipeline, pipeline.schemas[-1])

    # ------------------------------------------------------------------------------------------------ parts

    def _source(self, pipeline: Pipeline, source: object) -> Iterator[str]:
        match source:
            case ScanSource():
                if len(source.columns) + source.row_numbers != len(pipeline.schemas[0]):
                    yield f"the scan reads {len(source.columns)} columns into {len(pipeline.schemas[0])}"
                yield from self._exprs(pipeline, source.filters, pipeline.schemas[0])
                for lookup in source.lookups:
                    yield from self._lookup(pipeline, lookup)
                if source.bound is not None:
                    yield from self._exprs(pipeline, [source.bound.key.expr], pipeline.schemas[0])
                    if not isinstance(pipeline.sink, TopSink):
                        yield "its scan is bound by a top-n that it does not have"
            case UnmatchedSource(table):
                yield from self._table(pipeline, table)

    def _lookup(self, pipeline: Pipeline, lookup: Lookup) -> Iterator[str]:
        yield from self._table(pipeline, lookup.table)
        if lookup.table not in self._tables:
            return
        schema = pipeline.schemas[0]
        if not all(0 <= column < len(schema) for column in lookup.columns):
            yield f"a lookup in {lookup.table} reads columns {lookup.columns} of {len(schema)}"
            return
        sink = self._tables[lookup.table][1]
        asked, built = [schema[column].type for column in lookup.columns], [key.type for key in sink.keys]
        if asked != built or not built:
            yield f"a lookup compares columns of types {asked} with keys of {lookup.table} of types {built}"
        if sink.null_equal_count or sink.null_aware:
            yield f"a lookup asks {lookup.table}, for which NULL equals NULL"

    def _table(self, pipeline: Pipeline, table: str) -> Iterator[str]:
        made = self._tables.get(table)
        if made is None:
            yield f"nobody builds {table}"
        elif made[0].id not in self._done_before[pipeline.id]:
            yield f"it does not wait for {table}"

    def _step(self, pipeline: Pipeline, step: Step, before: Schema, after: Schema) -> Iterator[str]:
        match step:
            case ProgramStep(predicate, exprs, names):
                yield from self._exprs(pipeline, exprs if predicate is None else (predicate, *exprs), before)
                if tuple([expr.type for expr in exprs]) != after.types or names != after.names:
                    yield f"a program gives {after} otherwise"
            case ProbeStep():
                yield from self._table(pipeline, step.table)
                yield from self._probe(pipeline, step, before, after)
            case UnnestStep(kept, lists):
                if any(place >= len(before) for place in (*kept, *lists)):
                    yield "it unnests a column that is not there"
            case SortStep(keys):
                yield from self._exprs(pipeline, [key.expr for key in keys], before)
            case WindowStep(_, _, keys, sample):
                if not all(0 <= key < len(before) for key in keys):
                    yield f"windows are partitioned by columns {keys} of {len(before)}"
                yield from self._noting(sample)
            case MergeGroupsStep(_, _, sample):
                yield from self._noting(sample)

    def _noted_keys(self, pipeline: Pipeline, noted: NotedKeys | None) -> Iterator[str]:
        if noted is not None:
            yield from self._exprs(pipeline, [key.expr for key in noted.keys], pipeline.schemas[-1])

    def _noting(self, sample: str | None) -> Iterator[str]:
        if sample is not None and sample not in self._noted:
            yield f"nobody notes {sample}"

    def _probe(self, pipeline: Pipeline, step: ProbeStep, before: Schema, after: Schema) -> Iterator[str]:
        yield from self._exprs(pipeline, step.keys, before)
        if step.table not in self._tables:
            return
        maker, sink = self._tables[step.table]
        built = maker.schemas[-1]
        if [key.type for key in step.keys] != [key.type for key in sink.keys]:
            yield f"the keys of {step.table} are probed by others"
        if step.residual is not None:
            yield from self._exprs(pipeline, [step.residual], before.concat(built))
        yield from self._bounds(pipeline, step, before, sink)
        taken = [before[column].type for column in step.left_output]
        if after.types[: len(taken)] != tuple(taken) or len(after) != len(taken) + len(step.right_output):
            yield f"a probe of {step.table} gives {after} otherwise"

    def _bounds(
        self, pipeline: Pipeline, step: ProbeStep | MatchSink, before: Schema, sink: BuildSink
    ) -> Iterator[str]:
        if step.bounds is None:
            return
        yield from self._exprs(pipeline, [bound.value for bound in step.bounds.bounds], before)
        keys = () if sink.ranges is None else sink.ranges.exprs
        if not all(bound.key < len(keys) and bound.value.type is keys[bound.key].type for bound in step.bounds.bounds):
            yield f"the ranges of {step.table} are asked for by others"

    def _sink(self, pipeline: Pipeline, schema: Schema) -> Iterator[str]:
        match pipeline.sink:
            case EmitSink(edge, _, top, noted):
                if top is not None:
                    yield from self._exprs(pipeline, [*top.keys, top.order.expr], schema)
                yield from self._noted_keys(pipeline, noted)
                yield from self._put(schema, edge)
            case SampleSink(edge, keys):
                if edge is not None:
                    yield from self._put(schema, edge)
                yield from self._exprs(pipeline, [key.expr for key in keys], schema)
            case RangeSink(edge, keys, sample):
                yield from self._put(_positioned(schema), edge)
                yield from self._exprs(pipeline, [key.expr for key in keys], schema)
                maker = self._samples.get(sample)
                if maker is None or maker.id not in self._done_before[pipeline.id]:
                    yield f"it does not wait for {sample}"
            case GroupSink(_, spec, finals, noted):
                yield from self._noted_keys(pipeline, noted)
                if schema.types[: len(spec.key_types)] != spec.key_types:
                    yield "its groups have other keys than it gives"
                if finals is not None and not isinstance(pipeline.source, ScanSource):
                    yield "its groups are final by splits, of which it has none"
            case TopSink(edge, keys):
                yield from self._exprs(pipeline, [key.expr for key in keys], self._dag.edges[edge].schema)
            case MatchSink(table, keys) as sink:
                yield from self._table(pipeline, table)
                yield from self._exprs(pipeline, keys, schema)
                if table in self._tables:
                    yield from self._bounds(pipeline, sink, schema, self._tables[table][1])
            case BuildSink(_, keys) as sink:
                yield from self._exprs(pipeline, keys, schema)
                if sink.ranges is not None:
                    yield from self._exprs(pipeline, sink.ranges.exprs, schema)

    def _put(self, schema: Schema, edge: EdgeId) -> Iterator[str]:
        if self._dag.edges[edge].schema.types != schema.types:
            yield f"it puts {schema} on edge {edge}"

    def _exprs(self, pipeline: Pipeline, exprs: Sequence[Expr], schema: Schema) -> Iterator[str]:
        for part in [part for expr in exprs for part in walk(expr)]:
            if isinstance(part, Column) and not (
                0 <= part.index < len(schema) and schema[part.index].type is part.type
            ):
                yield f"column {part.index} of type {part.type} is read of {schema}"
            if isinstance(part, Scalar):
                maker = self._scalars.get(part.scalar)
                if maker is None or maker.id not in self._done_before[pipeline.id]:
                    yield f"it does not wait for {part.scalar}"


def _positioned(schema: Schema) -> Schema:
    return Schema((*schema.fields, Field("position", INT64, False)))
