"""Aggregates to pipelines: partial groups and their merge, and groups that need no merge.

Where the ranges of a table's splits hardly overlap in a grouping key (design: clustering), all rows of most groups come
from one split: such groups leave their task with results (`physical.Finals`), and only those at the borders are merged.
That rests on statistics which may lie, so it is checked while running, and nothing may leave the query before all of it
has been: `arrange_finals` sees to that. What it looks at is the finished Dag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bireme.data.ids import EdgeId
from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.data.types import DataType, Field, Kind
from bireme.errors import EngineBug, Unsupported
from bireme.plan.draft import Opened
from bireme.plan.expr import Aggregation, Column, Expr, Literal, SortKey
from bireme.plan.physical import (
    AggregateStep,
    Dag,
    Edge,
    EdgeSource,
    EmitSink,
    Finals,
    GroupSink,
    GroupSpec,
    LimitStep,
    MergeGroupsStep,
    Pipeline,
    ProbeStep,
    ProgramStep,
    Scalar,
    ScanSource,
    Step,
    Take,
)
from bireme.plan.relation import Aggregate
from bireme.plan.states import HOLISTIC, input_names, is_holistic, state_schema
from bireme.plan.tree import all_columns, walk
from bireme.plan.window_order import NotedKeys

if TYPE_CHECKING:
    from bireme.plan.lower import Lowering

# Fewer groups than this merge in less time than it takes to tell whole ones from others.
_GROUPS_MIN: Final = 16_384
_DECIMAL_DIGITS_MAX: Final = 18
# A partition should hold enough groups to be worth a task of its own (about a millisecond of merging).
_GROUPS_PER_PARTITION: Final = 16_384
# So many expected groups may be many more, though hardly more than one for each few rows.
_GROUPS_UNSURE: Final = 1_024
_ROWS_PER_GROUP_UNSURE: Final = 8
# What gives the same, but for the last digits of doubles, in whatever order rows come.
_ORDER_BLIND: Final = frozenset({"count_star", "count", "sum", "min", "max", "avg", "bool_and", "bool_or", *HOLISTIC})


def lower_aggregate(lowering: Lowering, rel: Aggregate) -> Opened:
    """Groups per slot, then a merge of each partition."""
    if rel.grouping_sets is not None or any(call.distinct or call.filter for call in rel.aggregates):
        raise EngineBug("an aggregate with DISTINCT, FILTER or grouping sets reached lowering")
    if all(call.function in _ORDER_BLIND for call in rel.aggregates):
        lowering.note_unordered(rel.input)
    opened = lowering.open(rel.input)
    exprs = list(lowering.bind_all(rel.keys, opened))
    steps = tuple([_aggregate_step(lowering, call, exprs, len(rel.keys), opened) for call in rel.aggregates])
    fields = zip(input_names(len(exprs)), exprs, strict=True)
    inputs = Schema(tuple([Field(name, expr.type) for name, expr in fields]))
    opened.project(tuple(exprs), inputs.names, inputs)
    spec = GroupSpec(tuple([key.type for key in rel.keys]), steps)
    if is_holistic(spec):
        partitions = lowering.row_partitions(opened) if rel.keys else 1
        noted = NotedKeys(tuple([SortKey(each) for each in all_columns(inputs)]), lowering.sample_name())
        edge = lowering.draft.edge("rows", inputs, opened.rows, partitions)
        return _merged(lowering, rel, opened, spec, edge, noted)
    groups = lowering.rows(rel)
    partitions = _partitions(groups, lowering.rows(rel.input), lowering.partitions_max) if rel.keys else 1
    edge = lowering.draft.edge("groups", state_schema(spec), groups, partitions)
    clustered = _clustered_key(lowering, opened, len(rel.keys)) if groups >= _GROUPS_MIN else None
    if clustered is None:
        return _merged(lowering, rel, opened, spec, edge)
    final = lowering.draft.edge("final groups", rel.schema, groups)
    lowering.draft.close(opened, GroupSink(edge, spec, Finals(final, *clustered, (), (rel.schema,))))
    merged = lowering.draft.from_edge(edge, Take.PARTITION, "merge groups")
    merged.add(MergeGroupsStep(spec, rel.schema.names), rel.schema)
    lowering.draft.close(merged, EmitSink(final))
    return lowering.draft.from_edge(final, Take.STREAM, "final groups")


def _merged(
    lowering: Lowering, rel: Aggregate, opened: Opened, spec: GroupSpec, edge: EdgeId, noted: NotedKeys | None = None
) -> Opened:
    lowering.draft.close(opened, GroupSink(edge, spec, None, noted))
    merged = lowering.draft.from_edge(edge, Take.PARTITION, "merge groups")
    merged.add(MergeGroupsStep(spec, rel.schema.names, None if noted is None else noted.sample), rel.schema)
    return merged


def _partitions(groups: float, rows: float, most: int) -> int:
    """How many hash partitions are right for this many groups of so many rows.

    An estimate of many groups rests on a sample and may be far too low; too few partitions would leave all of the merge
    to one thread, a few too many cost nothing beside the rows.
    """
    if groups >= _GROUPS_UNSURE:
        groups = max(groups, rows / _ROWS_PER_GROUP_UNSURE)
    return int(max(1, min(most, groups // _GROUPS_PER_PARTITION)))


def _aggregate_step(
    lowering: Lowering, call: Aggregation, exprs: list[Expr], keys: int, opened: Opened
) -> AggregateStep:
    """The aggregate over a column of the group table's input, which is appended to `exprs` where it is new."""
    if not call.args:
        return AggregateStep(call.function, None, None, call.type)
    fraction = 0.0
    if call.function in HOLISTIC:
        given = call.args[1]
        assert isinstance(given, Literal)
        assert isinstance(given.value, float)
        fraction = given.value
    elif len(call.args) > 1:
        raise Unsupported(f"the aggregate {call.function} with {len(call.args)} arguments cannot run yet")
    bound = lowering.bind(call.args[0], opened)
    if bound not in exprs[keys:]:
        exprs.append(bound)
    return AggregateStep(call.function, exprs.index(bound, keys), bound.type, call.type, fraction)


# --------------------------------------------------------------------------------------------- clustering


def _clustered_key(lowering: Lowering, opened: Opened, keys: int) -> tuple[int, int] | None:
    """A key that is a column of the scanned table, in which that is clustered: its number, and the column's."""
    scan = opened.source
    if not lowering.levers.clustering or not isinstance(scan, ScanSource):
        return None
    for key in range(keys):
        position = _scanned(opened, key)
        if position is None or not _has_ranges(opened.schemas[0][position].type):
            continue
        column = scan.columns[position]
        if lowering.estimates.samples.statistics(scan.table, scan.version).columns[column].clustered:
            return key, column
    return None


def _scanned(opened: Opened, column: int) -> int | None:
    """The position in the scan of what is `column` after all steps; None for what was computed or joined."""
    at: int | None = column
    for step in reversed(opened.steps):
        at = None if at is None else _before(step, at)
    return at


def _before(step: Step, column: int) -> int | None:
    match step:
        case ProgramStep(_, exprs):
            expr = exprs[column]
            return expr.index if isinstance(expr, Column) else None
        case ProbeStep(left_output=left):
            return left[column] if column < len(left) else None
        case _:
            return None


def _has_ranges(kind: DataType) -> bool:
    if kind.kind is Kind.DECIMAL:
        return kind.precision <= _DECIMAL_DIGITS_MAX
    return (kind.is_integer and kind.kind is not Kind.UINT64) or kind.kind in (Kind.DATE, Kind.TIMESTAMP)


def arrange_finals(dag: Dag) -> Dag:
    """The Dag with programs over final groups run where those are made, and the order in which they may leave.

    What a reader of final groups gives on may reach the caller, or end the scan early, before the last split was
    checked. Then border groups, which come when all are checked, go first, and an ordered edge holds the others back.
    """
    for position, pipeline in enumerate(dag.pipelines):
        if isinstance(pipeline.sink, GroupSink) and pipeline.sink.finals is not None:
            dag = _arranged(dag, position, pipeline.sink, pipeline.sink.finals)
    return dag


def _arranged(dag: Dag, position: int, sink: GroupSink, finals: Finals) -> Dag:
    edge = dag.edges[finals.edge]
    if len(edge.consumers) == 1:
        dag = _programs_moved(dag, position, sink, finals)
        edge = dag.edges[finals.edge]
    if _leaves_late(dag, finals.edge):
        return dag
    scan, merge = edge.producers
    return _with_edges(dag, {finals.edge: replaced(edge, producers=(merge, scan))})


def _programs_moved(dag: Dag, position: int, sink: GroupSink, finals: Finals) -> Dag:
    """Moves the first steps of the reader of final groups to both of their makers."""
    edge = dag.edges[finals.edge]
    reader = dag.pipelines[edge.consumers[0]]
    moved: list[ProgramStep] = []
    for step in reader.steps:
        if not isinstance(step, ProgramStep) or _waits_for_scalar(step):
            break
        moved.append(step)
    if not moved:
        return dag
    count = len(moved)
    schemas = reader.schemas[: count + 1]
    merge = next(one for one in dag.pipelines if one.id in edge.producers and one.id != dag.pipelines[position].id)
    changed = {
        dag.pipelines[position].id: replaced(
            dag.pipelines[position],
            sink=GroupSink(sink.edge, sink.spec, Finals(finals.edge, finals.key, finals.column, tuple(moved), schemas)),
        ),
        merge.id: replaced(merge, steps=(*merge.steps, *moved), schemas=(*merge.schemas, *schemas[1:])),
        reader.id: replaced(reader, steps=reader.steps[count:], schemas=reader.schemas[count:]),
    }
    pipelines = tuple([changed.get(one.id, one) for one in dag.pipelines])
    narrowed = replaced(edge, schema=schemas[-1], hint=replaced(edge.hint, rows_expected=reader.hint.rows_expected))
    return _with_edges(replaced(dag, pipelines=pipelines), {finals.edge: narrowed})


def _waits_for_scalar(step: ProgramStep) -> bool:
    exprs = (*step.exprs, *(() if step.predicate is None else (step.predicate,)))
    return any(isinstance(node, Scalar) for expr in exprs for node in walk(expr))


def _leaves_late(dag: Dag, edge: EdgeId) -> bool:
    """Whether every way from `edge` on waits for its end: at a merge, a sort or a build, before any limit."""
    if edge == dag.result:
        return False
    return all(_waits(dag, dag.pipelines[consumer]) for consumer in dag.edges[edge].consumers)


def _waits(dag: Dag, pipeline: Pipeline) -> bool:
    if isinstance(pipeline.source, EdgeSource) and pipeline.source.take is Take.PARTITION:
        return True
    if any(isinstance(step, LimitStep) for step in pipeline.steps):
        return False
    return not isinstance(pipeline.sink, EmitSink) or _leaves_late(dag, pipeline.sink.edge)


def _with_edges(dag: Dag, changed: dict[EdgeId, Edge]) -> Dag:
    return replaced(dag, edges=tuple([changed.get(edge.id, edge) for edge in dag.edges]))
