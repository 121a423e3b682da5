"""Which scans may drop rows by the bound that the top-n of their pipeline has learnt.

A row that comes, by the first key of the order, after as many rows as are wanted is not among the first; nor is
anything that a step makes of it, where the key is a function of the scanned columns. So it need not be decoded. Where a
step could fail for some row the scan keeps all, or it would depend on the order of tasks whether the query fails.
"""

from __future__ import annotations

from typing import Final

from bireme.data.node import replaced
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Column, Expr, SortKey
from bireme.plan.physical import Dag, Pipeline, ProbeStep, ProgramStep, ScanSource, Step, TopBound, TopSink
from bireme.plan.raises import may_raise
from bireme.plan.relation import JoinKind
from bireme.plan.tree import column_mask, columns_used, remap, substitute, unchanged

# What these give holds the row of the stream that it comes from, and they need no other row of it.
_OF_THE_STREAM: Final = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK})


def is_bounding(kind: DataType) -> bool:
    """Whether values of a type can be compared with a bound, in programs as in sorting."""
    return kind.is_integer or kind.is_float or kind.kind in (Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.STRING)


def with_bounds(dag: Dag) -> Dag:
    """The same Dag with bounds in its scans."""
    pipelines = tuple([_bounded(pipeline) for pipeline in dag.pipelines])
    return dag if unchanged(dag.pipelines, pipelines) else replaced(dag, pipelines=pipelines)


def _bounded(pipeline: Pipeline) -> Pipeline:
    source, sink = pipeline.source, pipeline.sink
    if not isinstance(source, ScanSource) or not isinstance(sink, TopSink):
        return pipeline
    first = sink.keys[0]
    expr = _at_the_scan(first.expr, pipeline)
    if expr is None or not is_bounding(expr.type) or not column_mask(expr) or may_raise(expr):
        return pipeline
    bound = TopBound(SortKey(expr, first.descending, first.nulls_first), len(sink.keys) == 2)
    return replaced(pipeline, source=replaced(source, bound=bound))


def _at_the_scan(expr: Expr, pipeline: Pipeline) -> Expr | None:
    """An expression over what comes to the sink as one over what the scan reads; None where it is not one."""
    if any(column >= len(pipeline.schemas[-1]) for column in columns_used(expr)):
        return None  # the position, which the sink itself appends
    for step in reversed(pipeline.steps):
        below = _below(expr, step)
        if below is None:
            return None
        expr = below
    return expr


def _below(expr: Expr, step: Step) -> Expr | None:
    match step:
        case ProgramStep(predicate, exprs):
            parts = exprs if predicate is None else (predicate, *exprs)
            return None if any(may_raise(part) for part in parts) else substitute(expr, exprs)
        case ProbeStep() if step.kind in _OF_THE_STREAM and not step.track_matches:
            asked = step.keys if step.residual is None else (*step.keys, step.residual)
            kept = step.left_output
            if any(may_raise(part) for part in asked) or any(column >= len(kept) for column in columns_used(expr)):
                return None
            return remap(expr, kept)
        case _:
            return None


def is_scanned(key: Expr, source: ScanSource) -> bool:
    """Whether a key is a stored column of the scan, of which statistics may tell."""
    return isinstance(key, Column) and key.index < len(source.columns)
