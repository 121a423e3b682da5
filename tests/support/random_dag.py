"""Random Dags of fake stages whose right answer is known.

An oracle runs each Dag one batch at a time, in order. Where every edge on the way is ordered, the result must equal the
oracle's row for row; otherwise as a multiset.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.schema import Schema
from bireme.plan.hint import Hint
from bireme.plan.physical import (
    BuildSink,
    Dag,
    Edge,
    EdgeSource,
    EmitSink,
    Pipeline,
    ScanSource,
    Sink,
    Source,
    Take,
    UnmatchedSource,
    ValuesSource,
)
from bireme.storage.base import ByteRange
from support.fake_stages import ROW_SCHEMA, FakeSplit, FakeWork

Batches = list[tuple[int, list[int]]]


@dataclass(slots=True)
class OpenEdge:
    """An edge under construction: what the oracle says it carries, and whether in exactly that order."""

    id: EdgeId
    partitions: int
    ordered: bool
    exact: bool
    batches: Batches = field(default_factory=list)
    producers: list[PipelineId] = field(default_factory=list)
    consumers: list[PipelineId] = field(default_factory=list)

    @property
    def rows(self) -> list[int]:
        return [value for _, rows in self.batches for value in rows]


@dataclass(slots=True)
class Case:
    """A Dag, what its stages do, and the right answer."""

    dag: Dag
    works: dict[PipelineId, FakeWork]
    rows: list[int]
    exact: bool
    stateful: bool
    schema: Schema = ROW_SCHEMA

    def right(self, got: list[int]) -> bool:
        return got == self.rows if self.exact else sorted(got) == sorted(self.rows)

    def right_so_far(self, got: list[int]) -> bool:
        """Whether `got` can be the beginning of a right answer."""
        if self.exact:
            return got == self.rows[: len(got)]
        left = list(self.rows)
        for value in got:
            if value not in left:
                return False
            left.remove(value)
        return True


class DagMaker:
    """Draws one Dag."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pipelines: list[Pipeline] = []
        self.edges: list[OpenEdge] = []
        self.works: dict[PipelineId, FakeWork] = {}
        self.stateful = False
        self.tables: list[tuple[str, PipelineId]] = []
        self._value = 0

    def make(self) -> Case:
        rng = self.rng
        open_edges = [self._scan() for _ in range(rng.randint(1, 3))]
        for _ in range(rng.randint(0, 5)):
            self._grow(open_edges)
        result = self._edge(partitions=1, ordered=True)
        for source in open_edges:
            self._pass_on(source, result, Take.STREAM)
        dag = Dag(tuple(self.pipelines), tuple(map(_sealed, self.edges)), result.id, ROW_SCHEMA)
        return Case(dag, self.works, result.rows, result.exact, self.stateful)

    def _grow(self, open_edges: list[OpenEdge]) -> None:
        rng = self.rng
        source = open_edges.pop(rng.randrange(len(open_edges)))
        match rng.choice(("stream", "partition", "state", "serial", "union", "fork", "build", "values")):
            case "stream":
                target = self._edge()
                self._pass_on(source, target, Take.STREAM)
            case "partition":
                target = self._edge()
                self._pass_on(source, target, Take.PARTITION, cuts=rng.random() < 0.7)
            case "state":
                target = self._state(source)
            case "serial":
                target = self._edge()
                limited = source.exact and source.partitions == 1 and rng.random() < 0.7
                limit = rng.randint(0, 12) if limited else None
                self._pass_on(source, target, Take.SERIAL if source.ordered else Take.STREAM, limit=limit)
            case "union":
                target = self._edge()
                self._pass_on(source, target, Take.STREAM)
                for other in open_edges[: rng.randint(0, 2)]:
                    open_edges.remove(other)
                    self._pass_on(other, target, rng.choice((Take.STREAM, Take.PARTITION)))
            case "fork":
                target, second = self._edge(), self._edge()
                self._pass_on(source, target, rng.choice((Take.STREAM, Take.PARTITION)))
                self._pass_on(source, second, Take.STREAM)
                open_edges.append(second)
            case "build":
                target = self._build(source)
            case _:
                target = self._values()
                open_edges.append(source)
        open_edges.append(target)

    # Sources ----------------------------------------------------------------------------------

    def _scan(self) -> OpenEdge:
        rng = self.rng
        target = self._edge()
        splits = []
        for index in range(rng.choice((0, 1, 2, 3, 5, 8))):
            rows = tuple(self._fresh() for _ in range(rng.choice((0, 1, 2, 5, 9))))
            ranges = [ByteRange(f"file{len(self.pipelines)}", 100 * index, rng.randint(1, 40))] * rng.randint(0, 2)
            splits.append(FakeSplit(rows, tuple(ranges)))
        # Not drawn, so that seeds that once failed stand for the same Dags.
        slow = len(splits) % 3 == 0
        work = FakeWork(add=rng.randint(0, 3), splits=tuple(splits), partitions=target.partitions, slow_splits=slow)
        outputs = [[value + work.add for value in split.values] for split in splits]
        self._add(ScanSource("t", "", (0,), ()), target, work, outputs, exact=True)
        return target

    def _values(self) -> OpenEdge:
        target = self._edge()
        values = tuple(self._fresh() for _ in range(self.rng.randint(0, 5)))
        source: Source = ValuesSource(())
        outputs = [list(values)]
        if self.tables and self.rng.random() < 0.6:
            table, builder = self.rng.choice(self.tables)
            source = UnmatchedSource(table)
            work = FakeWork(values=values, partitions=target.partitions)
            self._add(source, target, work, outputs, exact=True, after=(builder,))
        else:
            self._add(source, target, FakeWork(values=values, partitions=target.partitions), outputs, exact=True)
        return target

    def _fresh(self) -> int:
        self._value += 7
        return self._value

    # Pipelines over edges ----------------------------------------------------------------------

    def _pass_on(
        self, source: OpenEdge, target: OpenEdge, take: Take, limit: int | None = None, *, cuts: bool = False
    ) -> None:
        work = FakeWork(add=self.rng.randint(0, 3), partitions=target.partitions, limit=limit, cuts=cuts)
        work.alike = cuts and self.rng.random() < 0.5
        self.stateful = self.stateful or work.alike
        outputs = _limited(_taken(source, take), limit)
        exact = False if cuts else None
        added = [[value + work.add for value in rows] for rows in outputs]
        self._add_over(source, take, target, work, added, exact=exact)

    def _state(self, source: OpenEdge) -> OpenEdge:
        target = self._edge()
        gives_up = self.rng.random() < 0.6
        self.stateful = self.stateful or not gives_up
        parts = self.rng.randint(1, 3)
        work = FakeWork(add=1, partitions=target.partitions, state=True, parts=parts, gives_up=gives_up)
        rows = sorted(value + 1 for value in source.rows)
        outputs = [rows[part :: work.parts] for part in range(work.parts)]
        take = self.rng.choice((Take.STREAM, Take.PARTITION))
        work.cuts = take is Take.PARTITION and self.rng.random() < 0.5
        # What is given up early leaves before smaller rows that come later.
        self._add_over(source, take, target, work, outputs, exact=not gives_up)
        return target

    def _build(self, source: OpenEdge) -> OpenEdge:
        """A join table from one reader of `source`; another reader comes after it."""
        self.stateful = True
        table = f"table{len(self.tables)}"
        identity = PipelineId(len(self.pipelines) + 1)
        self.works[identity] = FakeWork(state=True, parts=0)
        source.consumers.append(identity)
        sink = BuildSink(table, (), 0, False)
        self._pipeline(identity, EdgeSource(source.id, Take.PARTITION), sink, ())
        self.tables.append((table, identity))
        target = self._edge()
        work = FakeWork(add=2, partitions=target.partitions)
        outputs = [[value + 2 for value in rows] for rows in _taken(source, Take.STREAM)]
        self._add_over(source, Take.STREAM, target, work, outputs, after=(identity,))
        return target

    def _add_over(
        self,
        source: OpenEdge,
        take: Take,
        target: OpenEdge,
        work: FakeWork,
        outputs: list[list[int]],
        *,
        exact: bool | None = None,
        after: tuple[PipelineId, ...] = (),
    ) -> None:
        source.consumers.append(PipelineId(len(self.pipelines) + 1))
        reading = EdgeSource(source.id, take)
        if take is Take.STREAM and source.ordered and (7 * source.id + len(self.pipelines)) % 5 == 0:
            # Without a draw, so that seeds that failed once still draw what they drew.
            reading = EdgeSource(source.id, Take.RUNS, (1, 64, 1_000)[source.id % 3])
        # Across partitions no order is promised: a task that ran in pieces gives each piece's partitions in turn.
        kept = (source.exact and (take is Take.PARTITION or source.partitions == 1)) if exact is None else exact
        self._add(reading, target, work, outputs, exact=kept, after=after)

    def _add(
        self,
        source: Source,
        target: OpenEdge,
        work: FakeWork,
        outputs: list[list[int]],
        *,
        exact: bool,
        after: tuple[PipelineId, ...] = (),
    ) -> None:
        identity = PipelineId(len(self.pipelines) + 1)
        self.works[identity] = work
        target.producers.append(identity)
        target.exact = target.exact and target.ordered and exact
        for rows in outputs:
            target.batches += _spread(rows, target.partitions)
        if self.pipelines and self.rng.random() < 0.1:
            after = (*after, self.rng.choice(self.pipelines).id)
        self._pipeline(identity, source, EmitSink(target.id), after)

    def _pipeline(self, identity: PipelineId, source: Source, sink: Sink, after: tuple[PipelineId, ...]) -> None:
        hint = Hint(prefetch_depth=self.rng.choice((1, 2, 4)))
        name = f"p{identity}"
        self.pipelines.append(Pipeline(identity, name, source, (), sink, after, (ROW_SCHEMA,), hint))

    def _edge(self, partitions: int | None = None, ordered: bool | None = None) -> OpenEdge:
        rng = self.rng
        parts = partitions if partitions is not None else rng.choice((1, 1, 2, 3))
        in_order = ordered if ordered is not None else rng.random() < 0.7
        edge = OpenEdge(EdgeId(len(self.edges) + 1), parts, in_order, exact=True)
        self.edges.append(edge)
        return edge


def _spread(rows: list[int], partitions: int) -> Batches:
    if partitions == 1:
        return [(0, rows)] if rows else []
    parts = [(part, [value for value in rows if value % partitions == part]) for part in range(partitions)]
    return [(part, kept) for part, kept in parts if kept]


def _taken(source: OpenEdge, take: Take) -> list[list[int]]:
    """The inputs that a pipeline gets, in order."""
    if take is not Take.PARTITION:
        return [rows for _, rows in source.batches]
    parts = range(source.partitions)
    return [[value for at, rows in source.batches if at == part for value in rows] for part in parts]


def _limited(outputs: list[list[int]], limit: int | None) -> list[list[int]]:
    if limit is None:
        return outputs
    kept = []
    for rows in outputs:
        kept.append(rows[:limit])
        limit -= len(kept[-1])
    return kept


def _sealed(edge: OpenEdge) -> Edge:
    return Edge(
        edge.id,
        f"e{edge.id}",
        ROW_SCHEMA,
        tuple(edge.producers),
        tuple(edge.consumers),
        edge.partitions,
        edge.ordered,
        Hint(next_use=min(edge.consumers, default=0), last_use=max(edge.consumers, default=0)),
    )
