"""The physical plan as text: pipelines in the order they run in, their edges, and what the runtime is told of them."""

from __future__ import annotations

from typing import Final

from bireme.data.schema import Schema
from bireme.plan.explain import format_expr
from bireme.plan.expr import Expr, SortKey
from bireme.plan.physical import (
    AssumeStep,
    BuildSink,
    Dag,
    Edge,
    EdgeSource,
    EmitSink,
    EncodeStep,
    Finals,
    GroupSink,
    GroupSpec,
    LimitStep,
    Lookup,
    MatchSink,
    MergeGroupsStep,
    Pipeline,
    ProbeStep,
    ProgramStep,
    RangeSink,
    SampleSink,
    ScalarSink,
    ScanSource,
    Sink,
    SortStep,
    Source,
    Step,
    TopBound,
    TopSink,
    UnmatchedSource,
    UnnestStep,
    ValuesSource,
    WindowStep,
)
from bireme.plan.range_keys import RangeBound, RangeBounds, RangeKeys
from bireme.plan.top_per_key import TopPerKey
from bireme.units import format_bytes, format_rows

_SIGNS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_RANGE_KEYS: Final = ("first", "second")


def explain_dag(dag: Dag) -> str:
    """All pipelines of a Dag, one paragraph each."""
    return "\n".join([_pipeline(pipeline, dag) for pipeline in dag.pipelines])


def _pipeline(pipeline: Pipeline, dag: Dag) -> str:
    after = f" after {', '.join(map(str, pipeline.after))}" if pipeline.after else ""
    lines = [f"pipeline {pipeline.id}{after}: {_source(pipeline.source, pipeline.schemas[0], dag)}"]
    for index, step in enumerate(pipeline.steps):
        lines.append(f"  {_step(step, pipeline.schemas[index])}")
    hint = pipeline.hint
    expected = f"~{format_rows(hint.rows_expected)} rows, {format_bytes(hint.bytes_expected)}"
    lines.append(f"  → {_sink(pipeline.sink, pipeline.schemas[-1], dag)}  [{expected}]")
    if isinstance(pipeline.sink, GroupSink) and pipeline.sink.finals is not None:
        lines += _finals(pipeline.sink.finals, pipeline.schemas[-1], dag)
    return "\n".join(lines)


def _source(source: Source, schema: Schema, dag: Dag) -> str:
    match source:
        case ScanSource(table, _, _, filters, lookups, row_numbers, bound, splits_max):
            pruned = f" prune by {' and '.join(format_expr(each, schema) for each in filters)}" if filters else ""
            numbered = " with row numbers" if row_numbers else ""
            names = schema.names[: len(source.columns)]
            dropped = f"{_lookups(lookups, schema)}{_bound(bound, schema)}"
            some = "" if splits_max is None else f" {splits_max} splits of"
            return f"scan{some} {table} ({', '.join(names)}){numbered}{pruned}{dropped}"
        case ValuesSource(rows):
            return f"values, {len(rows)} rows"
        case EdgeSource(edge, take):
            return f"take {_edge(dag.edges[edge])} {take.value}"
        case UnmatchedSource(table, rows):
            return f"{rows.value} rows of {table}"


def _lookups(lookups: tuple[Lookup, ...], schema: Schema) -> str:
    if not lookups:
        return ""
    asked = [
        f"({', '.join([schema.names[column] for column in lookup.columns])}) in {lookup.table} (~{lookup.kept:.1%})"
        for lookup in lookups
    ]
    return f"\n  look up {', '.join(asked)}"


def _bound(bound: TopBound | None, schema: Schema) -> str:
    if bound is None:
        return ""
    order = " desc" if bound.key.descending else ""
    return f"\n  drop what comes after the top-n by {format_expr(bound.key.expr, schema)}{order}"


def _step(step: Step, schema: Schema) -> str:
    match step:
        case ProgramStep(predicate, exprs, names):
            columns = ", ".join(_named(format_expr(e, schema), n) for e, n in zip(exprs, names, strict=True))
            kept = "" if predicate is None else f"where {format_expr(predicate, schema)} "
            return f"{kept}compute {columns}"
        case ProbeStep():
            keys = ", ".join(format_expr(key, schema) for key in step.keys)
            aware = " null-aware" if step.null_aware else ""
            tested = _tested(step.residual, step.bounds, schema)
            return f"probe {step.table} {step.kind.value}{aware} on ({keys}){tested}"
        case LimitStep(limit, offset):
            return f"limit {limit} offset {offset}"
        case MergeGroupsStep(spec):
            return f"merge groups: {_aggregates(spec)}"
        case SortStep(keys, limit, offset):
            return f"sort by {_ordered(keys, schema)}" + (
                f" limit {limit} offset {offset}" if limit is not None else ""
            )
        case AssumeStep(one, other):
            return f"assume {schema.names[one]}#{one} = {schema.names[other]}#{other}"
        case UnnestStep(_, lists):
            return f"unnest {', '.join([f'{schema.names[place]}#{place}' for place in lists])}"
        case EncodeStep():
            return "encode as row groups"
        case WindowStep(_, names):
            return f"window {', '.join(names)}"


def _in_order(ranges: RangeKeys | None, schema: Schema) -> str:
    if ranges is None:
        return ""
    return f" in the order of ({', '.join([format_expr(key, schema) for key in ranges.exprs])})"


def _tested(residual: Expr | None, bounds: RangeBounds | None, schema: Schema) -> str:
    """What a probe asks of build rows beside their keys."""
    if bounds is None:
        return "" if residual is None else " with residual"
    asked = ", ".join([_bounded(each, schema) for each in bounds.bounds])
    return f" within ({asked})" + ("" if bounds.rest is None else " with residual")


def _bounded(bound: RangeBound, schema: Schema) -> str:
    return f"{_RANGE_KEYS[bound.key]} {_SIGNS[bound.comparison]} {format_expr(bound.value, schema)}"


def _ordered(keys: tuple[SortKey, ...], schema: Schema) -> str:
    return ", ".join([f"{format_expr(key.expr, schema)}{' desc' if key.descending else ''}" for key in keys])


def _sink(sink: Sink, schema: Schema, dag: Dag) -> str:
    match sink:
        case EmitSink(target, keys, top):
            split = f" by hash of {', '.join(schema.names[key] for key in keys)}" if keys else ""
            return f"{_edge(dag.edges[target])}{split}{'' if top is None else _wanted(top, schema)}"
        case SampleSink(edge, keys):
            passed = "" if edge is None else f"{_edge(dag.edges[edge])}, with "
            return f"{passed}a sample by {_ordered(keys, schema)}"
        case RangeSink(edge, keys):
            return f"{_edge(dag.edges[edge])} by ranges of {_ordered(keys, schema)}"
        case GroupSink(edge, spec):
            return f"{_edge(dag.edges[edge])}: group by {len(spec.key_types)} keys, {_aggregates(spec)}"
        case TopSink(edge, _, limit):
            return f"{_edge(dag.edges[edge])}: first {limit}"
        case MatchSink(table, _, residual, _, bounds):
            return f"mark matches in {table}" + ("" if bounds is None else _tested(residual, bounds, schema))
        case BuildSink(table, keys):
            asked = ", ".join(format_expr(key, schema) for key in keys)
            return f"build {table} on ({asked}){_in_order(sink.ranges, schema)}"
        case ScalarSink(scalar):
            return f"keep {scalar}"


def _wanted(top: TopPerKey, schema: Schema) -> str:
    keys = ", ".join([format_expr(key, schema) for key in top.keys])
    first = f"first {top.limit} values" if top.is_dense else f"first {top.limit}"
    return f", of each ({keys}) what may be among the {first} by {_ordered((top.order,), schema)}"


def _finals(finals: Finals, schema: Schema, dag: Dag) -> list[str]:
    steps = [f"    {_step(step, before)}" for step, before in zip(finals.steps, finals.schemas, strict=False)]
    key = schema.names[finals.key]
    return [
        f"  clustered by {key}, groups that a split alone can hold:",
        *steps,
        f"    → {_edge(dag.edges[finals.edge])}",
    ]


def _aggregates(spec: GroupSpec) -> str:
    return ", ".join(step.function for step in spec.aggregates) or "distinct"


def _edge(edge: Edge) -> str:
    parts = f" in {edge.partitions} partitions" if edge.partitions > 1 else ""
    return f"edge {edge.id} «{edge.name}»{parts}"


def _named(text: str, name: str) -> str:
    return text if text == name else f"{text} as {name}"
