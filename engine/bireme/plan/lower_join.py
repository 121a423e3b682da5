"""Joins to pipelines: which side is built, what streams past it, and where rows without a match come from.

A join is a build pipeline, which makes a join table, and a step of the pipeline that streams the other side. Rows that
only the end can tell (unmatched build rows) come from a pipeline of their own, after the stream. What a probe does is
in `operators.hash_join`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bireme.data.ids import PipelineId
from bireme.data.schema import Schema
from bireme.plan.draft import Opened
from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.physical import (
    BuildRows,
    BuildSink,
    EmitSink,
    MatchSink,
    ProbeStep,
    ProgramStep,
    Take,
    UnmatchedSource,
)
from bireme.plan.range_keys import RangeBounds, RangeKeys, is_worth_planning, ranges_of
from bireme.plan.relation import Join, JoinKind, Rel, join_schema
from bireme.plan.tree import remap

if TYPE_CHECKING:
    from bireme.plan.lower import Lowering

# A left side that is this much smaller than the right is built instead of it.
_SWAP_FACTOR: Final = 2.0


class _Condition(NamedTuple):
    """What pairs with equal keys are tested by, and how the order of the build side answers part of it."""

    residual: Expr | None
    ranges: RangeKeys | None = None
    bounds: RangeBounds | None = None


def lower_join(lowering: Lowering, rel: Join, wanted: Sequence[int]) -> Opened:
    """The join with the columns `wanted` (ascending positions in its schema) only."""
    if rel.kind is JoinKind.RIGHT:
        return _stream_right(lowering, rel, wanted, JoinKind.LEFT)
    if not _builds_left(lowering, rel):
        return _stream_left(lowering, rel, wanted)
    if rel.kind is JoinKind.LEFT:
        return _stream_right(lowering, rel, wanted, JoinKind.RIGHT)
    return _match_left(lowering, rel, wanted)


def _builds_left(lowering: Lowering, rel: Join) -> bool:
    if rel.null_aware or rel.kind not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.LEFT):
        return False
    return lowering.rows(rel.left) * _SWAP_FACTOR < lowering.rows(rel.right)


def _condition(
    lowering: Lowering, rel: Join, residual: Expr | None, stream: Rel, side: Rel, keys: tuple[Expr, ...]
) -> _Condition:
    """The condition of the join as the stream sees it, where `side` is built."""
    found = None if rel.null_aware else ranges_of(residual, len(stream.schema))
    if found is None:
        return _Condition(residual)
    rows_per_key = lowering.rows(side) / max(1.0, lowering.estimates.tuples(side, keys)) if keys else 0.0
    if not is_worth_planning(has_keys=bool(keys), rows_per_key=rows_per_key):
        return _Condition(residual)
    return _Condition(residual, found.keys, found.bounds)


def _bound(lowering: Lowering, condition: _Condition, stream: Opened) -> tuple[Expr | None, RangeBounds | None]:
    """The residual and the bounds with subqueries replaced; `stream` waits for those."""
    residual, _, bounds = condition
    if residual is None:
        return None, None
    if bounds is not None and bounds.rest is not None:
        bounds = RangeBounds(bounds.bounds, lowering.bind(bounds.rest, stream))
    return lowering.bind(residual, stream), bounds


def _build(
    lowering: Lowering, side: Rel, keys: tuple[Expr, ...], rel: Join, ranges: RangeKeys | None, *, remembers: bool
) -> tuple[str, PipelineId]:
    """A pipeline that makes a join table of `side`; returns the table's name and the pipeline.

    Joins with equal build sides share a table, unless it `remembers` which of its rows were matched.
    """
    has_residual = rel.null_aware and rel.residual is not None
    recipe = (side, keys, rel.null_equal_count, rel.null_aware, has_residual, ranges)
    known = lowering.built.get(recipe)
    if known is not None and not remembers:
        return known
    opened = lowering.open(side)
    opened.name = f"build from {opened.name}"
    table = lowering.table_name(side, keys)
    bound = lowering.bind_all(keys, opened)
    sink = BuildSink(table, bound, rel.null_equal_count, rel.null_aware, has_residual, ranges)
    made = (table, lowering.draft.close(opened, sink))
    if not remembers:
        lowering.built[recipe] = made
    return made


def _stream_left(lowering: Lowering, rel: Join, wanted: Sequence[int]) -> Opened:
    """Streams the left side against a table of the right."""
    condition = _condition(lowering, rel, rel.residual, rel.left, rel.right, rel.right_keys)
    remembers = rel.kind is JoinKind.FULL
    table, built = _build(lowering, rel.right, rel.right_keys, rel, condition.ranges, remembers=remembers)
    stream = lowering.open(rel.left)
    stream.after.add(built)
    left, right = _sides(rel, wanted)
    _probe(lowering, stream, rel, table, rel.left_keys, condition, rel.kind, rel.right.schema, left, right)
    if rel.kind is JoinKind.FULL:
        return _with_unmatched(lowering, stream, table, rel.right.schema, len(left), right, rel)
    return stream


def _stream_right(lowering: Lowering, rel: Join, wanted: Sequence[int], kind: JoinKind) -> Opened:
    """Streams the right side against a table of the left; `kind` is the join's as the stream sees it."""
    condition = _swapped_condition(lowering, rel)
    remembers = kind is JoinKind.RIGHT
    table, built = _build(lowering, rel.left, rel.left_keys, rel, condition.ranges, remembers=remembers)
    stream = lowering.open(rel.right)
    stream.after.add(built)
    left, right = _sides(rel, wanted)
    _probe(lowering, stream, rel, table, rel.right_keys, condition, kind, rel.left.schema, right, left)
    if kind is JoinKind.RIGHT:
        stream = _with_unmatched(lowering, stream, table, rel.left.schema, len(right), left, rel)
    order = [*range(len(right), len(right) + len(left)), *range(len(right))]
    schema = rel.schema.select(wanted)
    stream.project(tuple([Column(index, stream.schema[index].type) for index in order]), schema.names, schema)
    return stream


def _match_left(lowering: Lowering, rel: Join, wanted: Sequence[int]) -> Opened:
    """Builds the left side, lets the right mark what it matches, and gives left rows by their marks."""
    condition = _swapped_condition(lowering, rel)
    table, built = _build(lowering, rel.left, rel.left_keys, rel, condition.ranges, remembers=True)
    stream = lowering.open(rel.right)
    stream.after.add(built)
    residual, bounds = _bound(lowering, condition, stream)
    keys = lowering.bind_all(rel.right_keys, stream)
    marked = lowering.draft.close(stream, MatchSink(table, keys, residual, rel.null_equal_count, bounds))
    rows = {JoinKind.SEMI: BuildRows.MATCHED, JoinKind.ANTI: BuildRows.UNMATCHED}.get(rel.kind, BuildRows.MARK)
    opened = Opened(rel.kind.value, UnmatchedSource(table, rows), [rel.schema], after={marked})
    schema = rel.schema.select(wanted)
    opened.project(tuple([Column(index, rel.schema[index].type) for index in wanted]), schema.names, schema)
    return opened


def _probe(
    lowering: Lowering,
    stream: Opened,
    rel: Join,
    table: str,
    keys: tuple[Expr, ...],
    condition: _Condition,
    kind: JoinKind,
    build: Schema,
    stream_output: Sequence[int],
    build_output: Sequence[int],
) -> None:
    residual, bounds = _bound(lowering, condition, stream)
    step = ProbeStep(
        table,
        kind,
        lowering.bind_all(keys, stream),
        residual,
        rel.null_equal_count,
        rel.null_aware,
        kind in (JoinKind.RIGHT, JoinKind.FULL),
        tuple(stream_output),
        tuple(build_output),
        bounds,
    )
    kept = stream.schema.select(stream_output)
    if kind is not JoinKind.MARK:
        schema = join_schema(kept, build.select(build_output), kind, rel.null_aware)
    else:
        # The mark is all there is of the build side; it may not be asked for.
        schema = join_schema(kept, build, kind, rel.null_aware) if build_output else kept
    stream.add(step, schema)


def _with_unmatched(
    lowering: Lowering, stream: Opened, table: str, build: Schema, padded: int, kept: Sequence[int], rel: Join
) -> Opened:
    """Ends the stream on an edge, to which the unmatched rows of the table follow, padded on the stream's side."""
    edge = lowering.draft.edge("outer", stream.schema, lowering.rows(rel))
    probed = lowering.draft.close(stream, EmitSink(edge))
    rest = Opened("unmatched", UnmatchedSource(table), [build], after={probed})
    exprs: list[Expr] = [Literal(None, stream.schema[index].type) for index in range(padded)]
    exprs += [Column(index, build[index].type) for index in kept]
    rest.add(ProgramStep(None, tuple(exprs), stream.schema.names), stream.schema)
    lowering.draft.close(rest, EmitSink(edge))
    return lowering.draft.from_edge(edge, Take.STREAM, "outer")


def _sides(rel: Join, wanted: Sequence[int]) -> tuple[list[int], list[int]]:
    """The wanted columns by side, as positions in that side."""
    width = len(rel.left.schema)
    return [index for index in wanted if index < width], [index - width for index in wanted if index >= width]


def _swapped_condition(lowering: Lowering, rel: Join) -> _Condition:
    """The condition where the left side is built."""
    residual = None if rel.residual is None else remap(rel.residual, _swapped(rel))
    return _condition(lowering, rel, residual, rel.right, rel.left, rel.left_keys)


def _swapped(rel: Join) -> dict[int, int]:
    """Where the columns of left ++ right are in right ++ left."""
    left, right = len(rel.left.schema), len(rel.right.schema)
    places = {index: right + index for index in range(left)}
    places.update({left + index: index for index in range(right)})
    return places
