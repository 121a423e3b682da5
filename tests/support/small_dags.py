"""Dags of one or a few pipelines, written down in one line each, for tests that tell a story."""

from __future__ import annotations

from bireme.data.ids import EdgeId, PipelineId
from bireme.plan.hint import Hint
from bireme.plan.physical import Dag, Edge, EdgeSource, EmitSink, Pipeline, ScanSource, Sink, Source, Take, ValuesSource
from bireme.storage.base import ByteRange
from support.fake_stages import ROW_SCHEMA, FakeSplit

SCAN = ScanSource("t", "1", (0,), ())
VALUES = ValuesSource(())


def pipeline(number: int, source: Source, sink: Sink, *, after: tuple[int, ...] = ()) -> Pipeline:
    earlier = tuple(map(PipelineId, after))
    return Pipeline(PipelineId(number), f"p{number}", source, (), sink, earlier, (ROW_SCHEMA,), Hint())


def edge(
    number: int,
    producers: tuple[int, ...],
    consumers: tuple[int, ...] = (),
    *,
    partitions: int = 1,
    ordered: bool = True,
) -> Edge:
    hint = Hint(next_use=min(consumers, default=0))
    ids = tuple(map(PipelineId, producers)), tuple(map(PipelineId, consumers))
    return Edge(EdgeId(number), f"e{number}", ROW_SCHEMA, *ids, partitions, ordered, hint)


def emit(number: int) -> EmitSink:
    return EmitSink(EdgeId(number))


def read(number: int, take: Take = Take.STREAM) -> EdgeSource:
    return EdgeSource(EdgeId(number), take)


def dag(pipelines: tuple[Pipeline, ...], edges: tuple[Edge, ...]) -> Dag:
    """The last edge is the result."""
    return Dag(pipelines, edges, edges[-1].id, ROW_SCHEMA)


def one_scan() -> Dag:
    return dag((pipeline(1, SCAN, emit(1)),), (edge(1, (1,)),))


def scan_then(take: Take, *, partitions: int = 1, waits: bool = False) -> Dag:
    """A scan, and a pipeline that takes from it in the given way; one that `waits` begins when the scan has ended."""
    return dag(
        (pipeline(1, SCAN, emit(1)), pipeline(2, read(1, take), emit(2), after=(1,) if waits else ())),
        (edge(1, (1,), (2,), partitions=partitions), edge(2, (2,))),
    )


def splits(count: int, *, rows: int = 1, range_bytes: int = 0) -> tuple[FakeSplit, ...]:
    """Splits of rising values; with `range_bytes` each has a range to fetch."""
    return tuple(
        FakeSplit(
            tuple(range(rows * index, rows * (index + 1))),
            (ByteRange("file", index * range_bytes, range_bytes),) if range_bytes else (),
        )
        for index in range(count)
    )
