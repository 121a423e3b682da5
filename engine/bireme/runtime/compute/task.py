"""A task: one pipeline over one input, or over a few short batches, and what running it gave. The last input of a
pipeline that keeps little may end it in the same task.

`Task.run` is what a compute thread executes; it touches no runtime state. A task that ran out of memory keeps what
it has finished and can run again, in smaller pieces of its input where its pipeline takes single batches in any
order. A call that was made is never made again: what it gave is kept until it is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import pyarrow as pa

from bireme.backends.base import ScanCounts
from bireme.clock import Clock
from bireme.data.batch import measure
from bireme.data.ids import EdgeId, PipelineId, QueryId, TaskId
from bireme.data.record import joined, longer
from bireme.errors import OutOfRoom, ValueTooLarge
from bireme.observe.event import Event, Noted, SplitScanned, TaskEnded
from bireme.operators.base import Aside, Emission, Output, Round, RoundCall, Stage
from bireme.plan.physical import Pipeline
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.column_cache import Lease
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.storage.base import Split

# Gives the bytes of a split, from memory, or by reading what the operating system has in memory.
Fetch = Callable[[], Sequence[pa.Buffer]]


def no_bytes() -> Sequence[pa.Buffer]:
    """Of a split that needs none, or no longer."""
    return ()


class SplitInput:
    """A split on its way to a task, its bytes, and what these take: room, and a lease of what is decoded already."""

    __slots__ = ("fetch", "lease", "room", "split")

    def __init__(self, split: Split, room: Reservation, lease: Lease | None) -> None:
        self.split = split
        self.room = room
        self.lease = lease
        self.fetch: Fetch = no_bytes

    def release(self) -> None:
        """Gives everything back; idempotent."""
        self.fetch = no_bytes
        if self.lease is not None:
            self.lease.release()
        self.room.release()


class RoundWork(NamedTuple):
    """A call for a round of a join, and the batches for it."""

    call: RoundCall
    part: Round
    holder: BatchHolder | None = None
    entries: Sequence[Entry] = ()
    seen: bool = False


class TaskKind(Enum):
    """What a task runs over: splits of a table, batches of an edge, of a partition that is cut or taken bit by bit, or
    of a round, or nothing, to finish a part of a pipeline, or to give up a part of what it keeps.
    """

    SPLIT = "split"
    BATCHES = "batches"
    CUT = "cut"
    BIT = "bit"
    FINISH = "finish"
    RELIEVE = "relieve"
    ROUND = "round"


class Made:
    """One batch that a task made, measured on the thread that made it."""

    __slots__ = ("content", "edge", "nbytes", "partition")

    def __init__(self, edge: EdgeId | Aside, partition: int, content: pa.RecordBatch, nbytes: int) -> None:
        self.edge = edge
        self.partition = partition
        self.content = content
        self.nbytes = nbytes


class Result:
    """What running a task gave: all of its output, or `shortage`, the memory error that stopped it."""

    __slots__ = (
        "has_ended", "made", "nbytes", "notes", "on_loop", "peak_bytes", "rows", "scanned", "seconds", "shortage",
        "slot", "started", "state_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.has_ended = False
        self.rows = 0
        self.nbytes = 0
        self.peak_bytes = 0
        self.notes: list[str] = []
        self.scanned: ScanCounts | None = None
        self.state_bytes = 0
        self.slot = 0
        self.on_loop = False
        self.started = 0.0
        self.seconds = 0.0
        self.shortage: BaseException | None = None

    def add(self, output: Output) -> None:
        """Takes what a call gave; short batches become longer ones."""
        emissions = [emission for emission in output.emissions if emission.batch.num_rows]
        shared: set[int] | None = None
        if len(emissions) > 1:
            emissions, shared = list(_longer(emissions)), set()
        made = [
            Made(emission.edge, emission.partition, emission.batch, measure(emission.batch, shared))
            for emission in emissions
        ]
        # Only now: all of it or nothing is taken.
        self.made += made
        self.rows += sum([emission.batch.num_rows for emission in emissions])
        self.nbytes += sum([one.nbytes for one in made])
        self.notes += output.notes
        self.state_bytes = output.state_bytes


def _longer(emissions: Sequence[Emission]) -> Iterator[Emission]:
    """The same rows in the same order for every edge and partition, in fewer batches."""
    by_place: dict[tuple[EdgeId | Aside, int], list[pa.RecordBatch]] = {}
    for emission in emissions:
        by_place.setdefault((emission.edge, emission.partition), []).append(emission.batch)
    for (edge, partition), batches in by_place.items():
        for batch in longer(batches):
            yield Emission(edge, partition, batch)


class Task:
    """One unit of compute. `sequence` numbers its first input, `place` the task itself among those of its pipeline, for
    ordered edges (-1: it puts nothing on them). `call` is what it runs, where its kind does not say. `rows_in` and
    `bytes_in` are of its input; its need, unless it is known, is estimated from `basis`. It also ends its stage where
    that keeps at most `end_bytes_max` bytes then. `is_repeatable`: a call that failed may be made again, where its
    pipeline allows that.
    """

    __slots__ = (
        "_done", "_has_taken_all", "_output", "_pieces", "alone", "attempt", "basis", "bytes_in", "call",
        "end_bytes_max", "entries", "given", "grant_bytes", "holder", "id", "is_repeatable", "kind", "known_need",
        "need_bytes", "place", "ready_at", "round", "rows_in", "sequence", "split", "stage", "supplier",
    )  # fmt: skip

    def __init__(self, supplier: Supplier, stage: Stage, identity: TaskId, kind: TaskKind, sequence: int) -> None:
        self.supplier = supplier
        self.stage = stage
        self.id = identity
        self.kind = kind
        self.sequence = sequence
        self.place = sequence
        self.holder: BatchHolder | None = None
        self.entries: Sequence[Entry] = ()
        self.split: Split | None = None
        self.given: SplitInput | None = None
        self.round: RoundWork | None = None
        self.rows_in = 0
        self.bytes_in = 0
        self.basis = 0
        self.ready_at = 0.0
        self.attempt = 0
        self.alone = False
        self.need_bytes = 0
        self.grant_bytes = 0
        self.call: Callable[..., Output] | None = None
        self.known_need: int | None = None
        self.end_bytes_max = 0
        # Bits go into what their stage keeps.
        self.is_repeatable = kind is not TaskKind.BIT
        self._done = Result()
        # What the last call gave, until it is in the result.
        self._output: Output | None = None
        self._has_taken_all = False
        self._pieces: deque[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<Task {self.id}: {self.supplier!r} {self.kind.value} {self.sequence}, attempt {self.attempt}>"

    @property
    def pieces(self) -> int:
        """In how many pieces the rest of the input will run."""
        return 1 if self._pieces is None else len(self._pieces)

    def run(self, slot: int, contents: Sequence[pa.RecordBatch], clock: Clock) -> Result:
        """Runs in compute slot number `slot`. Memory errors are part of the result; others are raised."""
        result = self._done
        result.started = clock.now()
        result.slot = slot
        result.shortage = None
        try:
            if self._pieces is not None:
                self._run_pieces(joined(contents), slot)
            elif not self._has_taken_all:
                self._take(contents, slot)
                self._has_taken_all = True
            if self.end_bytes_max and self._pieces is None:
                self._end(slot)
        except ValueTooLarge:
            raise
        except (MemoryError, OutOfRoom) as error:
            result.shortage = error
        result.seconds = clock.now() - result.started
        return result

    def events(self, result: Result, pipeline: PipelineId) -> Iterator[Event]:
        """What is to be recorded of it once it has run."""
        query = self.supplier.query
        yield TaskEnded(
            query, pipeline, self.id, self.kind.value, result.slot, self.sequence, self.rows_in, self.bytes_in,
            result.rows, result.nbytes, result.state_bytes, self.grant_bytes, result.started,
            result.started - self.ready_at, result.seconds, result.on_loop,
        )  # fmt: skip
        if result.scanned is not None:
            yield SplitScanned(query, pipeline, self.sequence, *result.scanned[:6])
        for text in result.notes:
            yield Noted(query, pipeline, text)

    def halve(self) -> bool:
        """Cuts the piece that did not fit into two. False where the input cannot be cut any more."""
        if self._pieces is None:
            self._pieces = deque([(0, self.rows_in)])
        start, rows = self._pieces[0]
        if rows < 2:
            return False
        self._pieces[0] = (start, rows // 2)
        self._pieces.insert(1, (start + rows // 2, rows - rows // 2))
        return True

    def take_split(self, split: Split, given: SplitInput | None) -> None:
        """What it reads, with the bytes of it where these had to be fetched."""
        self.split, self.given = split, given
        self.rows_in, self.basis = split.rows, split.decoded_bytes
        if given is not None:
            self.bytes_in = given.room.nbytes

    def take_batches(self, holder: BatchHolder, entries: Sequence[Entry]) -> None:
        """It runs over these batches of `holder`."""
        self.holder = holder
        self.entries = entries
        self.rows_in = sum([entry.batch.rows for entry in entries])
        self.bytes_in = self.basis = sum([entry.batch.nbytes for entry in entries])

    @property
    def changes_nothing(self) -> bool:
        """Whether a run of it that failed has lost nothing, whatever its pipeline keeps."""
        if self.round is not None:
            return self.round.call is not RoundCall.RESUME
        return self.kind in (TaskKind.RELIEVE, TaskKind.CUT, TaskKind.FINISH)

    @property
    def has_called(self) -> bool:
        """Whether its last call was made, so that only what comes after it is left, which can be done again."""
        return self._output is not None or self._has_taken_all

    def _run_pieces(self, batch: pa.RecordBatch, slot: int) -> None:
        assert self._pieces is not None
        while self._pieces:
            start, rows = self._pieces[0]
            self._take((batch.slice(start, rows),), slot)
            self._pieces.popleft()

    def _take(self, contents: Sequence[pa.RecordBatch], slot: int) -> None:
        if self._output is None:
            self._output = self._call(contents, slot)
        self._done.add(self._output)
        self._output = None

    def _end(self, slot: int) -> None:
        ending = self.stage.end(self.end_bytes_max, slot)
        if ending is not None:
            self._done.add(ending)
            self._done.has_ended = True

    def _call(self, contents: Sequence[pa.RecordBatch], slot: int) -> Output:
        if self.split is not None:
            is_unwanted = self.given is None or self.stage.passes_over(self.sequence)
            buffers = () if is_unwanted or self.given is None else self.given.fetch()
            output = self.stage.run_split(self.split, buffers, self.sequence, slot)
            self._done.scanned = output.scanned
            return output
        if self.call is not None:
            return self.call(contents, slot=slot)
        if self.kind is TaskKind.BATCHES:
            return self.stage.run_batches(contents, self.sequence, slot)
        if self.round is not None:
            work = self.round
            return self.stage.run_round(work.call, work.part, contents, self.sequence, slot, seen=work.seen)
        if self.kind is TaskKind.RELIEVE:
            return self.stage.relieve(self.sequence, slot)
        return self.stage.finish(self.sequence, slot)


class Supplier(Protocol):
    """Who gives tasks: a live pipeline, as Compute sees it.

    `rank` orders suppliers, smallest first, and never changes. Every task from `next_task` comes back exactly once: by
    `deliver`, `put_back` or `fail`.
    """

    rank: tuple[int, ...]
    listed: bool

    @property
    def query(self) -> QueryId: ...

    @property
    def pipeline(self) -> Pipeline: ...

    @property
    def repeatable(self) -> bool:
        """Whether a task that ran out of memory may run again."""
        ...

    @property
    def splittable(self) -> bool:
        """Whether a task's input may be cut by rows."""
        ...

    def has_work(self) -> bool: ...

    def relief_due(self) -> bool:
        """Whether its next task gives memory back, and so goes before all others."""
        ...

    def next_task(self) -> Task: ...

    def estimate(self, task: Task) -> int:
        """Bytes that running `task` will need beside its inputs."""
        ...

    def is_brief(self, task: Task) -> bool:
        """Whether `task` is so short that it may run on the loop."""
        ...

    def deliver(self, task: Task, result: Result, grant: Reservation) -> None: ...

    def put_back(self, task: Task) -> None: ...

    def retry(self, task: Task, reason: BaseException) -> None:
        """Like `put_back`, after a task ran out of memory."""
        ...

    def fail(self, task: Task | None, error: BaseException) -> None: ...
