"""Scans of one table that want about the same few rows become one scan, which its readers share.

Two pipelines that read a table and drop what is no member of the same join table (a query and its subquery, say, about
the same parts) decode the key of every row twice to find the same rows. Where these are few, they are found once, with
the columns that any reader wants, and put on an edge.

Rule: what is dropped is what `membership` shows that no reader wants; that it is dropped is sure, by a probe, so the
edge stays small. Which rows are looked up by whom in other scans is in `lookups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bireme.data.ids import PipelineId
from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.plan.draft import is_identity
from bireme.plan.expr import Column, Expr
from bireme.plan.membership import Member, MemberEstimates, Memberships
from bireme.plan.physical import Dag, EdgeSource, Pipeline, ProbeStep, ProgramStep, ScanSource
from bireme.plan.pipeline_order import PipelineOrder, in_order
from bireme.plan.relation import JoinKind
from bireme.plan.shared_scan import Reader, shareable, widest, with_shared
from bireme.plan.tree import remap

# Of the rows left over by the members, so many are cheap next to decoding a key of all.
_KEPT_MAX: Final = 0.05
_SCANNED_MIN: Final = 16_384


class _Common(NamedTuple):
    """Readers of a table, and what all of them demand, by columns of the table."""

    readers: tuple[Reader, ...]
    member: Member
    kept: float


def share_scans(dag: Dag, memberships: Memberships, estimates: MemberEstimates) -> Dag:
    """The same Dag with such scans shared."""
    by_table: dict[tuple[str, str], list[Reader]] = {}
    for pipeline, source in shareable(dag):
        by_table.setdefault((source.table, source.version), []).append((pipeline, source))
    made = dag
    for readers in by_table.values():
        rows = estimates.scanned(readers[0][1]) if len(readers) > 1 else 0.0
        if rows >= _SCANNED_MIN:
            # Scans that are shared already wait for builds of their own, which must not wait for this one.
            common = _common(readers, memberships, PipelineOrder(made), estimates)
            if common is not None:
                made = _shared(made, common, memberships.built_by(common.member.table).id, rows)
    return made if made is dag else in_order(made)


def _common(
    readers: Sequence[Reader], memberships: Memberships, order: PipelineOrder, estimates: MemberEstimates
) -> _Common | None:
    """The demand that several readers share and that leaves the fewest rows."""
    demanding: dict[tuple[Member, frozenset[Expr]], list[Reader]] = {}
    for pipeline, source in readers:
        places = dict(enumerate(source.columns))
        # Other filters may let a scan skip whole splits, which a shared one could not.
        filters = frozenset(remap(source.filters, places))
        for member in memberships.demands(pipeline):
            if not _goes_before(order, pipeline.id, (memberships.built_by(member.table).id,)):
                whole = Member(tuple([places[column] for column in member.columns]), member.table)
                demanding.setdefault((whole, filters), []).append((pipeline, source))
    best: _Common | None = None
    for (member, _), found in demanding.items():
        waits = _waits(found)
        if len(found) < 2 or any(_goes_before(order, pipeline.id, waits) for pipeline, _ in found):
            continue
        source = found[0][1]
        asked = Member(tuple([source.columns.index(column) for column in member.columns]), member.table)
        kept = estimates.kept(source, asked)
        if kept <= _KEPT_MAX and (best is None or (kept, member.rank) < (best.kept, best.member.rank)):
            best = _Common(tuple(found), member, kept)
    return best


def _waits(readers: Sequence[Reader]) -> tuple[PipelineId, ...]:
    """What a scan for these readers waits for because of its filters."""
    first, source = readers[0]
    return first.after if source.filters else ()


def _goes_before(order: PipelineOrder, pipeline: PipelineId, others: Sequence[PipelineId]) -> bool:
    """Whether one of `others` is the pipeline itself or starts after it."""
    return any(other == pipeline or order.waits(other, pipeline) for other in others)


def _shared(dag: Dag, common: _Common, built: PipelineId, rows: float) -> Dag:
    """The Dag with one scan for the readers, after the pipeline `built`, and an edge from which they take."""
    reads, schema = widest(common.readers)
    asked = [reads.columns.index(column) for column in common.member.columns]
    keys = tuple([Column(place, schema[place].type) for place in asked])
    kept = tuple(range(len(schema)))
    probe = ProbeStep(common.member.table, JoinKind.SEMI, keys, None, 0, False, False, kept, ())
    after = tuple(sorted({built, *_waits(common.readers)}))

    def reading(taken: EdgeSource) -> list[Pipeline]:
        return [_reading(pipeline, source, reads.columns, schema, taken) for pipeline, source in common.readers]

    return with_shared(dag, reads, probe, (schema, schema), after, int(rows * common.kept), reading)


def _reading(
    pipeline: Pipeline, source: ScanSource, columns: tuple[int, ...], schema: Schema, taken: EdgeSource
) -> Pipeline:
    """The pipeline with the edge for its table."""
    own = pipeline.schemas[0]
    exprs = tuple([Column(columns.index(column), own[place].type) for place, column in enumerate(source.columns)])
    if is_identity(exprs, schema):
        return replaced(pipeline, name="shared", source=taken)
    step = ProgramStep(None, exprs, own.names)
    return replaced(
        pipeline, name="shared", source=taken, steps=(step, *pipeline.steps), schemas=(schema, *pipeline.schemas)
    )
