"""One scan that several pipelines share: the edge on which it puts its rows, and the readers that take from there.

Which scans become one, and what it asks, is for `share_scans` and `share_filtered` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.plan.hint import Hint
from bireme.plan.membership import scans
from bireme.plan.physical import (
    Dag,
    Edge,
    EdgeSource,
    EmitSink,
    GroupSink,
    Pipeline,
    ProbeStep,
    ProgramStep,
    ScanSource,
    Take,
)
from bireme.plan.tree import remap

_TASK_ROWS: Final = 131_072

Reader = tuple[Pipeline, ScanSource]


def shareable(dag: Dag) -> Iterator[Reader]:
    """The scans that may take their rows from elsewhere, of tables of which there are several scans."""
    found = scans(dag)
    tables = [source.table for _, source in found]
    if len(set(tables)) == len(tables):
        return
    for pipeline, source in found:
        if tables.count(source.table) < 2:
            continue
        if source.row_numbers or source.splits_max is not None:
            continue  # a sample is there before the rows, and is not to wait for all of them
        if isinstance(pipeline.sink, GroupSink) and pipeline.sink.finals is not None:
            continue  # what goes by splits has to read them
        yield pipeline, source


def widest(readers: Sequence[Reader]) -> tuple[ScanSource, Schema]:
    """What reads all columns that any reader reads, and their schema; filters are those of the first reader."""
    fields = {
        column: pipeline.schemas[0][place]
        for pipeline, source in readers
        for place, column in enumerate(source.columns)
    }
    columns = tuple(sorted(fields))
    first = readers[0][1]
    moved = {place: columns.index(column) for place, column in enumerate(first.columns)}
    filters = remap(first.filters, moved)
    return ScanSource(first.table, first.version, columns, filters), Schema(tuple([fields[each] for each in columns]))


def with_shared(
    dag: Dag,
    source: ScanSource,
    step: ProgramStep | ProbeStep,
    schemas: tuple[Schema, Schema],
    after: tuple[PipelineId, ...],
    rows: int,
    reading: Callable[[EdgeSource], Sequence[Pipeline]],
) -> Dag:
    """The Dag with one scan and its `step`, and an edge from which pipelines take: `reading` gives them anew."""
    number, edge = PipelineId(len(dag.pipelines)), EdgeId(len(dag.edges))
    schema = schemas[1]
    hint = Hint(rows_expected=rows, bytes_expected=rows * schema.row_bytes)
    scan = Pipeline(number, f"scan {source.table}", source, (step,), EmitSink(edge), after, schemas, hint)
    # Few rows are one task for each reader.
    readers = reading(EdgeSource(edge, Take.PARTITION if rows <= _TASK_ROWS else Take.STREAM))
    pipelines = [*dag.pipelines, scan]
    for each in readers:
        pipelines[each.id] = each
    taken = Edge(edge, "shared", schema, (number,), tuple([each.id for each in readers]), 1, True, hint)
    return replaced(dag, pipelines=tuple(pipelines), edges=(*dag.edges, taken))
