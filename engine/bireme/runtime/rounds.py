"""The rounds of a live pipeline: rows that waited for a join table are joined when all its inputs are done.

Partition by partition of both sides: the build rows become a table, the rows of the stream go on from their step, the
table goes. A partition that is too large is cut first, or done block by block (`round_policy`). Steps come in order,
because what goes on from one may wait again at a later one. Changes only on the loop; what the calls do is in
`operators.join_rounds`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from bireme.data.ids import BatchId, TaskId
from bireme.data.tier import Tier
from bireme.observe.event import RoundBegun
from bireme.operators.base import Aside, Cut, Postponed, Round, RoundCall
from bireme.runtime.compute.task import RoundWork, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.state import Entry
from bireme.runtime.round_policy import How, blocks, cut_bytes_max, how, joined_bytes_max, round_bytes_max, ways

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline

# Batches that waited are short pieces of longer ones: a task takes several.
_TASK_ROWS: Final = 65_536


class _Side(NamedTuple):
    """Batches of one side of a partition."""

    holder: BatchHolder | None
    entries: Sequence[Entry]

    @property
    def nbytes(self) -> int:
        return sum([entry.batch.nbytes for entry in self.entries])


_NOTHING: Final = _Side(None, ())


class _Pair(NamedTuple):
    """One partition of both sides; `cut_bytes` are the build bytes of what it was cut from, by `cuts` cuts."""

    postponed: Postponed
    partition: int
    partitions: int
    build: _Side
    stream: _Side
    cuts: int
    cut_bytes: int


class _Under:
    """A pair under way: `phases` gives the works of one phase after the other; a phase begins when none is out."""

    def __init__(self, phases: Iterator[list[RoundWork]], build_bytes: int) -> None:
        self.phases = phases
        self.build_bytes = build_bytes
        self.works: deque[RoundWork] = deque()
        self.out = 0

    def has_phase(self, soon: set[BatchId]) -> bool:
        """Goes on to the next phase if the last is over, whose batches are added to `soon`; False at the end."""
        while not self.works and not self.out:
            following = next(self.phases, None)
            if following is None:
                return False
            self.works.extend(following)
            soon.update([entry.batch.id for work in following for entry in work.entries])
        return True


class Rounds:
    """All rounds of one pipeline, from the time that its inputs are done."""

    def __init__(self, pipeline: LivePipeline) -> None:
        self._live = pipeline
        self._steps = deque(pipeline.stage.postponed())
        self._pairs: deque[_Pair] = deque()
        self._under: list[_Under] = []
        self._numbers = count(1)
        self._sequences = count(pipeline.next_input + 1)
        # What was taken from asides and is in no task yet.
        self._held: dict[BatchId, tuple[BatchHolder, Entry]] = {}
        self._out: dict[TaskId, _Under] = {}
        # What works of phases that have begun will take.
        self._soon: set[BatchId] = set()

    def __repr__(self) -> str:
        return f"<Rounds of {self._live!r}: {len(self._under)} under way, {len(self._pairs)} wait>"

    def wants(self, entry: Entry) -> bool:
        """Whether a pair under way has the entry, and no task yet."""
        return entry.batch.id in self._soon

    def upcoming(self, most: int) -> list[tuple[BatchHolder, Entry]]:
        """The batches that the next tasks will take, each with the aside where it lies."""
        works = (work for under in self._under for work in under.works)
        return [*islice((self._held[entry.batch.id] for work in works for entry in work.entries), most)]

    # ------------------------------------------------------------------------------------- tasks

    def has_work(self) -> bool:
        return any(under.works for under in self._under)

    def next_task(self) -> Task:
        live = self._live
        under = next(each for each in self._under if each.works)
        work = under.works.popleft()
        under.out += 1
        task = Task(live, live.stage, live.graph.next_task_id(), TaskKind.ROUND, next(self._sequences))
        task.round = work
        task.holder, task.entries = work.holder, work.entries
        task.rows_in = sum([entry.batch.rows for entry in work.entries])
        task.bytes_in = task.basis = sum([entry.batch.nbytes for entry in work.entries])
        for entry in work.entries:
            del self._held[entry.batch.id]
            self._soon.discard(entry.batch.id)
        self._out[task.id] = under
        return task

    def done(self, task: Task) -> None:
        """A task of a round has delivered."""
        self._out.pop(task.id).out -= 1

    def discard(self) -> None:
        """Nothing more is wanted."""
        for holder, entry in self._held.values():
            holder.consume(entry)
        self._held.clear()
        self._soon.clear()
        self._steps.clear()
        self._pairs.clear()
        self._under.clear()

    # ------------------------------------------------------------------------------------- going on

    def advance(self) -> bool:
        """Begins what may begin now; False when there is nothing left to do."""
        self._under = [under for under in self._under if under.has_phase(self._soon)]
        while not self._under or self._may_begin():
            if not self._pairs:
                if self._under:
                    return True
                if not self._steps:
                    return False
                following = self._steps.popleft()
                self._live.graph.passed(self._live, following.step)
                self._pairs.extend(self._pairs_of(following))
                continue
            under = self._begun(self._pairs.popleft())
            if under.has_phase(self._soon):
                self._under.append(under)
        return True

    @property
    def _limit(self) -> int:
        return self._live.graph.ledger.limits[Tier.DEVICE]

    @property
    def _bytes_max(self) -> int:
        return round_bytes_max(self._limit)

    def _may_begin(self) -> bool:
        """Whether one more pair fits beside those under way."""
        if len(self._under) >= self._live.graph.slots or not self._pairs:
            return False
        held = sum([under.build_bytes for under in self._under])
        return held + self._pairs[0].build.nbytes <= self._bytes_max

    def _taken(self, aside: Aside | None, partition: int | None = None) -> _Side:
        """All batches of an aside, or of a partition of it."""
        live = self._live
        reading = None if aside is None else live.graph.asides.reading(aside, live.pipeline.id)
        if aside is None or reading is None:
            return _NOTHING
        parts = range(aside.partitions) if partition is None else (partition,)
        entries = [entry for part in parts for entry in reading.feed.pop_part(part)]
        self._held.update({entry.batch.id: (reading.holder, entry) for entry in entries})
        return _Side(reading.holder, entries)

    def _pairs_of(self, postponed: Postponed) -> list[_Pair]:
        count = postponed.stream.partitions
        sides = [(self._taken(postponed.build, part), self._taken(postponed.stream, part)) for part in range(count)]
        whole = sum([build.nbytes for build, _ in sides])
        return [
            _Pair(postponed, part, count, build, stream, 0, max(whole, 2 * build.nbytes))
            for part, (build, stream) in enumerate(sides)
            if build.entries or stream.entries
        ]

    def _begun(self, pair: _Pair) -> _Under:
        chosen = self._how(pair)
        live, bytes_max = self._live, self._bytes_max
        live.graph.recorder.record(
            RoundBegun(
                live.query, live.pipeline.id, pair.postponed.stream.name, pair.partition, pair.partitions,
                chosen.value, pair.build.nbytes, pair.stream.nbytes,
            )
        )  # fmt: skip
        phases = {
            How.SKIP: self._skipped, How.JOIN: self._joined, How.CUT: self._cut, How.LOOP: self._looped,
        }[chosen]  # fmt: skip
        return _Under(phases(pair), min(pair.build.nbytes, bytes_max))

    def _how(self, pair: _Pair) -> How:
        if not pair.stream.entries and not pair.postponed.is_tracked:
            return How.SKIP
        return how(
            build_bytes=pair.build.nbytes, cut_bytes=pair.cut_bytes, cuts=pair.cuts,
            can_cut=pair.postponed.can_cut, bytes_max=self._bytes_max,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------- phases

    def _skipped(self, pair: _Pair) -> Iterator[list[RoundWork]]:
        """No row of the stream is there, and nobody asks for build rows without one."""
        self._spare(pair.build)
        yield from ()

    def _spare(self, side: _Side) -> None:
        for entry in side.entries:
            if side.holder is not None and self._held.pop(entry.batch.id, None) is not None:
                side.holder.consume(entry)

    def _joined(self, pair: _Pair) -> Iterator[list[RoundWork]]:
        part = Round(next(self._numbers), pair.postponed, pair.partition, pair.partitions)
        if pair.postponed.build is None:
            yield list(self._resumes(part, pair.stream))
            return
        yield [RoundWork(RoundCall.LOAD, part, pair.build.holder, pair.build.entries)]
        yield list(self._resumes(part, pair.stream))
        yield [RoundWork(RoundCall.UNLOAD, part)]

    def _looped(self, pair: _Pair) -> Iterator[list[RoundWork]]:
        stream = pair.stream
        parts = blocks([entry.batch.nbytes for entry in pair.build.entries], self._bytes_max)
        for place, block in enumerate(parts):
            number = next(self._numbers)
            after: Aside | None = None
            if place + 1 < len(parts):
                after = Aside(f"{pair.postponed.stream.name}, after round {number}", 2, (self._live.pipeline.id,))
            part = Round(number, pair.postponed, pair.partition, pair.partitions, True, after)
            yield [RoundWork(RoundCall.LOAD, part, pair.build.holder, pair.build.entries[block])]
            yield list(self._resumes(part, stream, is_loop=place > 0))
            yield [RoundWork(RoundCall.UNLOAD, part)]
            stream = self._taken(after)
            if not stream.entries and not pair.postponed.is_tracked:
                self._spare(pair.build)
                return

    def _cut(self, pair: _Pair) -> Iterator[list[RoundWork]]:
        number, count = next(self._numbers), ways(pair.build.nbytes, self._bytes_max)
        name, readers = f"{pair.postponed.stream.name}, cut {number}", (self._live.pipeline.id,)
        cut = Cut(Aside(f"{name}: build rows", count, readers), Aside(f"{name}: rows", count, readers))
        part = Round(number, pair.postponed, pair.partition, pair.partitions, cut=cut)
        yield [
            *self._cuts(RoundCall.CUT_BUILD, part, pair.build),
            *self._cuts(RoundCall.CUT_STREAM, part, pair.stream),
        ]
        first, partitions = pair.partition * count, pair.partitions * count
        sides = [(self._taken(cut.build, place), self._taken(cut.stream, place)) for place in range(count)]
        self._pairs.extendleft(
            _Pair(pair.postponed, first + place, partitions, build, stream, pair.cuts + 1, pair.build.nbytes)
            for place, (build, stream) in enumerate(sides)
            if build.entries or stream.entries
        )

    def _cuts(self, call: RoundCall, part: Round, side: _Side) -> Iterator[RoundWork]:
        """Works over some batches each, so that what is cut off them is not short."""
        for some in blocks([entry.batch.nbytes for entry in side.entries], cut_bytes_max(self._limit)):
            if side.entries:
                yield RoundWork(call, part, side.holder, side.entries[some])

    def _resumes(self, part: Round, side: _Side, *, is_loop: bool = False) -> Iterator[RoundWork]:
        """Works over the rows of a stream, some batches each; of a block loop by what was seen of them."""
        batches: list[Entry] = []
        rows, nbytes, bytes_max = 0, 0, joined_bytes_max(self._limit)
        for entry in side.entries:
            rows, nbytes = rows + entry.batch.rows, nbytes + entry.batch.nbytes
            is_much = rows > _TASK_ROWS or nbytes > bytes_max
            if batches and (is_much or entry.partition != batches[0].partition):
                yield _resume(part, side, batches, is_loop)
                batches, rows, nbytes = [], entry.batch.rows, entry.batch.nbytes
            batches.append(entry)
        if batches:
            yield _resume(part, side, batches, is_loop)


def _resume(part: Round, side: _Side, entries: Iterable[Entry], is_loop: bool) -> RoundWork:
    batches = tuple(entries)
    return RoundWork(RoundCall.RESUME, part, side.holder, batches, is_loop and batches[0].partition == 1)
