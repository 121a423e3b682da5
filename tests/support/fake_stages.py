"""Small fake stages whose right answer is known: each row is an int64 `v`, and a pipeline adds a constant to it.

A STREAM, SERIAL or PARTITION pipeline passes its rows on, with `v + add`, spread over the partitions of its edge. One
with `state` keeps rows per slot and gives them out at the end, sorted, in parts; where it `gives_up`, also when memory
is short, a part a slot. One with a limit says `enough`. One that `cuts` has the values of a partition spread by what is
left of them when they are divided, once more for each cut (nothing, where they are all `alike`); or takes them bit by
bit.
Misbehaviour (running out of memory, failing) is drawn before a call changes anything.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from bireme.data.hash_range import HashRange
from bireme.data.ids import PipelineId
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import EngineBug, Overflow
from bireme.operators.base import NOTHING, Emission, Output, Postponed, RankedStage, Relievable, Round, RoundCall
from bireme.plan.physical import EdgeSource, EmitSink, Pipeline
from bireme.storage.base import ByteRange, ChunkKey, Split
from support.disk import bytes_of

ROW_SCHEMA = Schema((Field("v", INT64),))


def rows_batch(values: Sequence[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["v"])


@dataclass(frozen=True, slots=True)
class FakeSplit:
    """Rows that are known; its bytes are read and checked like those of a real one."""

    values: tuple[int, ...]
    ranges: tuple[ByteRange, ...] = ()
    sharers: int = 1

    @property
    def first_row(self) -> int:
        return 0

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def decoded_bytes(self) -> int:
        return 8 * len(self.values)

    @property
    def schema(self) -> Schema:
        return ROW_SCHEMA

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        """Its rows are their own version: other queries have other files under the same names."""
        return tuple([ChunkKey(one.path, str(self.values), one.offset, 0) for one in self.ranges[:1]])

    def part(self, columns: Sequence[int]) -> FakeSplit:
        return self

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        assert [buffer.to_pybytes() for buffer in buffers] == [bytes_of(one) for one in self.ranges]
        yield rows_batch(self.values)

    def encoded(self) -> str:
        return ""

    def damage(self, column: int, story: str) -> EngineBug:
        return EngineBug(story)


@dataclass(slots=True)
class FakeWork:
    """What a fake stage does. `state` keeps rows until `finish` in `parts`, or until relief; `limit` stops after that
    many rows.
    """

    add: int = 0
    splits: tuple[FakeSplit, ...] = ()
    values: tuple[int, ...] = ()
    partitions: int = 1
    state: bool = False
    parts: int = 1
    gives_up: bool = False
    cuts: bool = False
    alike: bool = False
    limit: int | None = None
    emits: bool = True
    short_of_memory: float = 0.0
    fails: float = 0.0
    rows_max: int | None = None
    slow: float = 0.0
    slow_splits: bool = False


@dataclass(slots=True)
class Counts:
    """What all stages of a query count together, to be checked at the end."""

    opened: int = 0
    closed: int = 0
    calls: int = 0
    relieved: int = 0
    cut: int = 0
    bits: int = 0
    ended: int = 0
    shortages: int = 0
    failures: int = 0
    set_closed: int = 0
    tables_freed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class FakeStage:
    """One fake stage; it checks that it is called as `operators.base.Stage` promises."""

    def __init__(self, pipeline: Pipeline, work: FakeWork, counts: Counts, rng: random.Random) -> None:
        self.pipeline = pipeline
        self.work = work
        self._counts = counts
        self._rng = rng
        self._lock = threading.Lock()
        self._slots: list[list[int]] = []
        self._busy: set[int] = set()
        self._seen: set[tuple[str, int]] = set()
        self._passed = 0
        self._finishing = False
        self._relieving = False
        self._relief_left = 0
        self._is_open = False
        self._is_closed = False
        self._given = False
        self._rows: list[int] = []
        self._unended: list[int] | None = None
        self._ended: list[Emission] = []
        self._bits: dict[int, list[int]] = {}

    # The contract -----------------------------------------------------------------------------

    def open(self, slots: int) -> None:
        self._expect(not self._is_open, "opened twice")
        self._is_open = True
        self._counts.opened += 1
        self._slots = [[] for _ in range(slots + 1)]

    def rows_out_max(self, rows: int) -> int | None:
        return None if self._rng.random() < self.work.slow else rows

    def passes_over(self, sequence: int) -> bool:
        return False

    def run_split(self, split: Split, buffers: Sequence[pa.Buffer], sequence: int, slot: int) -> Output:
        with _Call(self, "split", sequence, slot):
            return self._run(list(split.decode(buffers)), slot)

    def run_batches(self, batches: Sequence[pa.RecordBatch], sequence: int, slot: int) -> Output:
        with _Call(self, "batches", sequence, slot):
            values = [value for batch in batches for value in batch.column(0).to_pylist()]
            return self._run([rows_batch(values if batches else self.work.values)], slot)

    def can_cut(self) -> bool:
        return self.work.cuts

    def can_take_bits(self) -> bool:
        return self.work.cuts

    def can_order(self) -> bool:
        return False

    def ranked(self) -> RankedStage | None:
        return None

    def cut(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        with _Call(self, "cut", 0, slot):
            values = _values(batches)
            self._misbehave(0)
            self._counts.cut += len(values)
            self._expect(within.number < within.total, f"cut within {within}")
            assert isinstance(self.pipeline.source, EdgeSource)
            spread: dict[int, list[int]] = {}
            for value in values:
                spread.setdefault(0 if self.work.alike else value // within.total % into, []).append(value)
            edge = self.pipeline.source.edge
            made = [Emission(edge, part, rows_batch(rows)) for part, rows in spread.items()]
            return Output(made, state_bytes=self._state_bytes)

    def run_bit(self, batches: Sequence[pa.RecordBatch], sequence: int, is_last: bool, slot: int) -> Output:
        with _Call(self, "bit", sequence, slot):
            self._counts.bits += 1
            self._bits.setdefault(sequence, []).extend(_values(batches))
            if not is_last:
                return Output(state_bytes=self._state_bytes)
            return self._give([rows_batch(self._bits.pop(sequence))], slot)

    @property
    def _state_bytes(self) -> int:
        return 8 * sum(map(len, (*self._slots, *self._bits.values())))

    def enough(self) -> bool:
        return self.work.limit is not None and self._passed >= self.work.limit

    def relievable(self) -> Relievable:
        if not self.work.gives_up or self._finishing:
            return NOTHING
        return Relievable(8 * sum(map(len, self._slots)), 8 * max(map(len, self._slots)))

    def relief_parts(self) -> int:
        self._expect(not self._busy, "relieved while it runs")
        self._expect(not self._finishing, "relieved after its inputs")
        self._relieving = True
        self._relief_left = len(self._slots)
        return len(self._slots)

    def relieve(self, part: int, slot: int) -> Output:
        with _Call(self, "relief", part, slot):
            self._misbehave(0)
            rows, self._slots[part] = self._slots[part], []
            self._counts.relieved += len(rows)
            with self._lock:
                self._relief_left -= 1
                self._relieving = self._relief_left > 0
            return self._emit([rows_batch(rows)] if rows else [], state_bytes=self._state_bytes)

    def postponed(self) -> Sequence[Postponed]:
        return ()

    def leave(self, step: int) -> None:
        raise AssertionError("nothing was postponed")

    def run_round(
        self, call: RoundCall, part: Round, batches: Sequence[pa.RecordBatch], sequence: int, slot: int, *, seen: bool
    ) -> Output:
        raise AssertionError("nothing was postponed")

    def finish_parts(self) -> int:
        self._expect(not self._busy, "finished while it runs")
        self._expect(not self._bits, "finished with a partition half taken")
        self._finishing = True
        if self.work.state:
            self._rows = sorted(value for rows in self._slots for value in rows)
        return self.work.parts if self.work.state else 0

    def finish(self, part: int, slot: int) -> Output:
        with _Call(self, "part", part, slot):
            self._misbehave(0)
            rows = self._rows[part :: self.work.parts]
            return self._emit([rows_batch(rows)], state_bytes=8 * len(self._rows))

    def end(self, bytes_max: int, slot: int) -> Output | None:
        if self._unended is None:
            self._expect(not self._relieving, "ended while it is relieved")
            if self._state_bytes > bytes_max:
                return None
            self._unended = list(range(self.finish_parts()))
            self._counts.ended += 1
        while self._unended:
            self._ended += self.finish(self._unended[0], slot).emissions
            del self._unended[0]
        return Output(self._ended, state_bytes=8 * len(self._rows))

    def close(self) -> None:
        self._expect(not self._is_closed, "closed twice")
        self._expect(not self._busy, "closed while it runs")
        self._is_closed = True
        self._counts.closed += 1
        self._slots = []

    # The work ---------------------------------------------------------------------------------

    def _run(self, batches: list[pa.RecordBatch], slot: int) -> Output:
        self._misbehave(sum(batch.num_rows for batch in batches))
        return self._give(batches, slot)

    def _give(self, batches: list[pa.RecordBatch], slot: int) -> Output:
        if self.work.limit is not None:
            batches = [self._limited(batch) for batch in batches]
        if self.work.state:
            kept = self._slots[slot]
            for batch in batches:
                kept += [value + self.work.add for value in batch.column(0).to_pylist()]
            return Output(state_bytes=self._state_bytes)
        added = [pc.add(batch.column(0), self.work.add) for batch in batches]
        return self._emit([pa.RecordBatch.from_arrays([column], ["v"]) for column in added])

    def _limited(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self.work.limit is not None
        kept = batch.slice(0, max(0, self.work.limit - self._passed))
        self._passed += kept.num_rows
        return kept

    def _emit(self, batches: list[pa.RecordBatch], state_bytes: int = 0) -> Output:
        sink = self.pipeline.sink
        if not isinstance(sink, EmitSink):
            return Output(state_bytes=state_bytes)
        output = Output(state_bytes=state_bytes)
        for batch in batches:
            if self.work.partitions == 1:
                output.emissions.append(Emission(sink.edge, 0, batch))
                continue
            values = batch.column(0).to_pylist()
            for partition in range(self.work.partitions):
                part = [value for value in values if value % self.work.partitions == partition]
                if part:
                    output.emissions.append(Emission(sink.edge, partition, rows_batch(part)))
        return output

    def _misbehave(self, rows: int) -> None:
        with self._lock:
            self._counts.calls += 1
            shortage = self._rng.random() < self.work.short_of_memory
            failure = self._rng.random() < self.work.fails
        if shortage or (self.work.rows_max is not None and rows > self.work.rows_max):
            self._counts.shortages += 1
            raise MemoryError("simulated")
        if failure:
            self._counts.failures += 1
            raise Overflow("simulated: a value left the range of its type")

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self._counts.faults.append(f"{self.pipeline.name} was {what}")


def _values(batches: Sequence[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


class _Call:
    """Guards one call: the slot is free, the stage is open, and no input comes twice."""

    def __init__(self, stage: FakeStage, kind: str, sequence: int, slot: int) -> None:
        self._stage, self._key, self._slot = stage, (kind, sequence), slot

    def __enter__(self) -> None:
        stage, slot = self._stage, self._slot
        with stage._lock:
            stage._expect(stage._is_open and not stage._is_closed, "called while it is not open")
            stage._expect(slot not in stage._busy, f"called twice at once in slot {slot}")
            phases = (stage._finishing, stage._relieving)
            stage._expect(
                (self._key[0] == "part", self._key[0] == "relief") == phases, f"called out of order with {self._key}"
            )
            stage._busy.add(slot)

    def __exit__(self, *_: object) -> None:
        with self._stage._lock:
            self._stage._busy.discard(self._slot)


class FakeStages:
    """A StageSet of fake stages."""

    def __init__(
        self,
        works: dict[PipelineId, FakeWork],
        seed: int = 0,
        is_kept: bool = False,
        make: type[FakeStage] = FakeStage,
    ) -> None:
        self._make = make
        self.counts = Counts()
        self.works = works
        self._rng = random.Random(seed)
        self._is_kept = is_kept

    def stage(self, pipeline: Pipeline) -> FakeStage:
        return self._make(pipeline, self.works[pipeline.id], self.counts, self._rng)

    def are_splits_quick(self, pipeline: Pipeline) -> bool:
        return not self.works[pipeline.id].slow_splits

    def splits(self, pipeline: Pipeline) -> Sequence[Split]:
        return self.works[pipeline.id].splits

    def is_kept(self, table: str) -> bool:
        return self._is_kept

    def free_table(self, table: str) -> None:
        self.counts.tables_freed.append(table)

    def stop(self) -> None:
        """Fake calls are short."""

    def close(self) -> None:
        self.counts.set_closed += 1
