"""Scans of one table that ask the same condition first become one scan, whose rows they share.

A query and its subquery often ask the same of a table, and then want other columns of the rows. Where these are few,
the condition is asked once, and the rows go on an edge with the columns that any of the readers wants.

Rule: only conditions that are known before the query starts, and only where the scans may skip the same splits. Scans
that share what a join table leaves of them are in `share_scans`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.plan.draft import is_identity
from bireme.plan.expr import Column, Expr
from bireme.plan.membership import MemberEstimates
from bireme.plan.physical import Dag, EdgeSource, Pipeline, ProgramStep, Scalar, ScanSource
from bireme.plan.pipeline_order import in_order
from bireme.plan.shared_scan import shareable, widest, with_shared
from bireme.plan.tree import columns_in, mask_of, remap, walk

# Keeping so many of the rows is cheap next to asking all of them again.
_KEPT_MAX: Final = 0.05
_SCANNED_MIN: Final = 16_384


class _Reader(NamedTuple):
    pipeline: Pipeline
    source: ScanSource
    step: ProgramStep


# Table and version, condition and filters, the last two by columns of the table.
_Question = tuple[str, str, Expr, frozenset[Expr]]


def share_filtered(dag: Dag, estimates: MemberEstimates) -> Dag:
    """The same Dag with such scans shared."""
    made = dag
    for readers in _alike(dag).values():
        source, predicate = readers[0].source, readers[0].step.predicate
        if len(readers) < 2 or predicate is None or _reads_scalars((predicate, *source.filters)):
            continue
        rows = estimates.scanned(source)
        if rows >= _SCANNED_MIN and (kept := estimates.fulfilling(source, predicate)) <= _KEPT_MAX:
            made = _shared(made, readers, int(rows * kept))
    return made if made is dag else in_order(made)


def _alike(dag: Dag) -> Mapping[_Question, list[_Reader]]:
    """The scans that ask something before they do anything else, by what they ask."""
    found: dict[_Question, list[_Reader]] = {}
    for pipeline, source in shareable(dag):
        step = pipeline.steps[0] if pipeline.steps else None
        if not isinstance(step, ProgramStep) or step.predicate is None:
            continue
        places = dict(enumerate(source.columns))
        filters = frozenset(remap(source.filters, places))
        question = source.table, source.version, remap(step.predicate, places), filters
        found.setdefault(question, []).append(_Reader(pipeline, source, step))
    return found


def _reads_scalars(exprs: Sequence[Expr]) -> bool:
    return any(isinstance(node, Scalar) for expr in exprs for node in walk(expr))


def _shared(dag: Dag, readers: Sequence[_Reader], rows: int) -> Dag:
    """The Dag with one scan for the readers, and an edge from which they take."""
    reads, whole = widest([(each.pipeline, each.source) for each in readers])
    wanted = sorted({each.source.columns[place] for each in readers for place in columns_in(mask_of(each.step.exprs))})
    places = {column: place for place, column in enumerate(reads.columns)}
    schema = whole.select([places[column] for column in wanted])
    first = readers[0]
    moved = {place: places[column] for place, column in enumerate(first.source.columns)}
    assert first.step.predicate is not None
    exprs = tuple([Column(places[column], whole[places[column]].type) for column in wanted])
    step = ProgramStep(remap(first.step.predicate, moved), exprs, schema.names)

    def reading(taken: EdgeSource) -> list[Pipeline]:
        return [_reading(each, wanted, schema, taken) for each in readers]

    return with_shared(dag, reads, step, (whole, schema), (), rows, reading)


def _reading(reader: _Reader, wanted: Sequence[int], schema: Schema, taken: EdgeSource) -> Pipeline:
    """The pipeline of a reader, with the edge for its table and its condition."""
    pipeline, source, step = reader
    places = {place: wanted.index(column) for place, column in enumerate(source.columns) if column in wanted}
    exprs = remap(step.exprs, places)
    schemas = schema, *pipeline.schemas[1:]
    if is_identity(exprs, schema) and pipeline.schemas[1] == schema:
        return replaced(pipeline, name="shared", source=taken, steps=pipeline.steps[1:], schemas=schemas[1:])
    steps = ProgramStep(None, exprs, step.names), *pipeline.steps[1:]
    return replaced(pipeline, name="shared", source=taken, steps=steps, schemas=schemas)
