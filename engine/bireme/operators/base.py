"""What a pipeline does, as the runtime sees it: plain synchronous work over inputs, no waiting, no memory decisions.

The runtime's graph decides when; `stage` implements this for real pipelines; tests have small fakes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from bireme.backends.base import ScanCounts
from bireme.data.hash_range import HashRange
from bireme.data.ids import EdgeId, PipelineId
from bireme.errors import EngineBug
from bireme.plan.physical import Pipeline
from bireme.storage.base import Split


class Aside(NamedTuple):
    """An edge that no plan has: it comes to be with the first batch for it, when rows must wait that a plan with enough
    memory would not let wait. `name` is unique in a query; each of `readers` reads every batch, by partition, when its
    other inputs are over.
    """

    name: str
    partitions: int
    readers: tuple[PipelineId, ...]


@dataclass(frozen=True, slots=True)
class Emission:
    """A batch for an edge, in a partition of it."""

    edge: EdgeId | Aside
    partition: int
    batch: pa.RecordBatch


@dataclass(slots=True)
class Output:
    """What a task made: batches in order, and the bytes that the stage's own state (tables, group states) now holds
    in all. `notes` are things the task did on its own (a kernel that fell back, say), for the event record; `scanned`
    is what a scan of the backend's own did.
    """

    emissions: list[Emission] = field(default_factory=list)
    state_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    scanned: ScanCounts | None = None


class Relievable(NamedTuple):
    """What a stage could give up of its state: bytes in all, and bytes that the largest call for it needs beside."""

    nbytes: int
    step_bytes: int


NOTHING: Final = Relievable(0, 0)


class Unrelieved:
    """What has no state to give up: a base for stages and sinks."""

    def relievable(self) -> Relievable:
        return NOTHING

    def relief_parts(self) -> int:
        return 0

    def relieve(self, part: int) -> list[Emission]:
        raise EngineBug(f"{type(self).__name__} has nothing to give up")


class Postponed(NamedTuple):
    """Rows that go on from step `step` of their pipeline in rounds, a partition each, when all its inputs are over.

    A round has the rows of `stream`, and those of `build` in its join table; without `build` it needs no table. With
    `is_tracked`, rows of `build` are also wanted where no row of the stream is in their partition. `can_cut` tells
    whether a partition has a finer partition.
    """

    step: int
    stream: Aside
    build: Aside | None = None
    is_tracked: bool = False
    can_cut: bool = True


class RoundCall(Enum):
    """What a call for a round does: makes the table of the build rows that it gets; takes rows of the stream on from
    their step; gives the table up; or cuts rows of either side into finer partitions.
    """

    LOAD = "load"
    RESUME = "resume"
    UNLOAD = "unload"
    CUT_BUILD = "cut the build side"
    CUT_STREAM = "cut the stream"


class Cut(NamedTuple):
    """Where the rows of one partition go that is cut into as many as the asides have partitions."""

    build: Aside
    stream: Aside


class Round(NamedTuple):
    """One partition, number `partition` of `partitions`, of postponed rows; `number` is unique in its pipeline.

    In a block loop, where the table holds a part of the build rows of the partition only, stream rows go on to the next
    round by `after` (None: this is the last): in its partition 0 while no build row has settled anything about them,
    else in partition 1. `is_loop` tells that there are several rounds. `cut` is for the calls that cut.
    """

    number: int
    postponed: Postponed
    partition: int
    partitions: int
    is_loop: bool = False
    after: Aside | None = None
    cut: Cut | None = None


def ordered_parts(into: int) -> int:
    """How many parts a cut into so many ranges of an order has: each is followed by a part for the key at which the
    next one begins, where many rows have it. So ranges are even, also where the parts of several orders follow each
    other.
    """
    return 2 * into


class RankedStage(Protocol):
    """A partition of which a stage wants only rows at some places of an order.

    `cut_first` cuts it into `parts`. `rank` comes without batches when all is cut and no other call runs; from then on
    it `wants` those parts of which `pick` gets all rows, unless `cut` cuts them before; at last `end` comes, without
    batches, and gives the output. A call that raises has changed nothing.
    """

    def groups_expected(self, within: HashRange, rows: int) -> float:
        """About how many groups so many rows of a partition have. On the loop."""
        ...

    def parts(self, into: int) -> int:
        """How many parts `cut_first` has, odd ones with equal rows, if it cuts each order into so many ranges."""
        ...

    def cut_first(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, number: int, slot: int
    ) -> Output:
        """As `Stage.cut`, by order; `number` counts these calls. Many at once."""
        ...

    def cut(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        """As `Stage.cut_in_order`, of a part."""
        ...

    def rank(self, batches: Sequence[pa.RecordBatch], slot: int) -> Output: ...

    def wants(self, first: int, rows: int) -> bool:
        """Whether it wants something of the part that has so many rows, with `first` rows in the parts before. On the
        loop.
        """
        ...

    def pick(self, batches: Sequence[pa.RecordBatch], first: int, rows: int, are_alike: bool, slot: int) -> Output:
        """Of a part with equal rows some are enough. Many at once."""
        ...

    def end(self, batches: Sequence[pa.RecordBatch], sequence: int, slot: int) -> Output: ...


class Stage(Protocol):
    """One live pipeline. `slot` is the compute slot that runs the call: no two calls run in one slot at once, so
    per-slot state needs no lock. Slots 0 to `slots` - 1 are those of threads; slot `slots` is the loop's, for short
    calls.

    Calls come in this order: `open` once, on the loop, when all pipelines in `after` are done; then `run_split` or
    `run_batches` once per input, on compute threads, many at once (one at a time for SERIAL sources); when all inputs
    are done (or `enough` is true), `finish` once for each part 0 to `finish_parts() - 1`, many at once; then `close`.
    A call that raises MemoryError or OutOfRoom may be made again where the pipeline keeps nothing between calls (its
    sink emits, builds a table or marks matches, and it has no LimitStep): for a STREAM source also in pieces, each with
    a part of the rows, in order, under the same `sequence`.
    Between inputs, while no other call runs, memory may be wanted back: `relieve` then comes once for each part 0 to
    `relief_parts() - 1`, many at once, and inputs go on afterwards. It emits what the rest of the query needs of the
    state, and keeps nothing of it. One that raises MemoryError or OutOfRoom has lost nothing and is made again, and so
    has one of `finish`, and every call for a round but a RESUME.
    A partition that is larger than fits may be cut first, where `can_cut`: `cut` then takes its batches, a few at a
    time, and emits their rows to parts of the same partition, which become partitions themselves. Or it comes to
    `run_bit` a few batches at a time, one call after the other; the last one gives the output.
    Or, where it `can_order`, `cut_in_order` cuts it into `ordered_parts`, recursively, of which odd ones have equal
    keys in all rows; `arrange` brings the batches of a part into order, or a few of those of an odd one, and emits them
    to the edge they are of; and all come to `run_bit`, in order, each call giving output. Of these, one that raises
    has changed nothing.
    Or it comes to a `RankedStage`.
    Rows that were emitted to an `Aside` which the pipeline itself reads come back in rounds, when all inputs are done:
    those of `postponed()`, one after the other, each round as a LOAD (where it has a table), RESUMEs, many at once, and
    an UNLOAD; before them, it may be cut. Then comes `finish`.
    In place of rounds and `finish` may come `end`, directly after the last input, where that has run alone.
    `close` also comes after failure and cancellation, once, when no call is running; it frees all state that later
    pipelines do not need (join tables are freed by `StageSet.free_table`).
    """

    @property
    def pipeline(self) -> Pipeline: ...

    def open(self, slots: int) -> None: ...

    def rows_out_max(self, rows: int) -> int | None:
        """How many rows a call over `rows` rows may have to handle at worst; None where a row may take very long."""
        ...

    def passes_over(self, sequence: int) -> bool:
        """Whether nothing of split number `sequence` is wanted, so that it runs without its bytes. Once true it stays
        so. On the loop and on any thread, after `open`.
        """
        ...

    def run_split(self, split: Split, buffers: Sequence[pa.Buffer], sequence: int, slot: int) -> Output: ...

    def run_batches(self, batches: Sequence[pa.RecordBatch], sequence: int, slot: int) -> Output:
        """One batch, or a few short ones that follow each other, for STREAM and SERIAL sources (`sequence` is the place
        of the first in the edge); all batches of partition `sequence` for PARTITION sources; none, with sequence 0, for
        ValuesSource and UnmatchedSource (one task each).
        """
        ...

    def can_cut(self) -> bool:
        """Whether `cut` may be called, for a PARTITION source. On the loop, after `open`."""
        ...

    def can_take_bits(self) -> bool:
        """Whether `run_bit` may be called, for a PARTITION source that can be cut. On the loop, after `open`."""
        ...

    def cut(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        """Emits to the edge that is its source, where partition `p` now stands for part `p` of `into` of `within`,
        the hashes of the partition that the batches are of. Many at once; one that raises has changed nothing.
        """
        ...

    def run_bit(self, batches: Sequence[pa.RecordBatch], sequence: int, is_last: bool, slot: int) -> Output: ...

    def can_order(self) -> bool:
        """Whether `cut_in_order` and `arrange` may be called, for a PARTITION source. On the loop, after `open`."""
        ...

    def cut_in_order(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        """As `cut`, by order: `within` is the partition, or part number `p` of the `ordered_parts` of what it is of."""
        ...

    def arrange(self, batches: Sequence[pa.RecordBatch], number: int, are_alike: bool, slot: int) -> Output:
        """`number` counts these calls as their rows follow each other; with `are_alike` all have equal keys. Many at
        once, repeatable.
        """
        ...

    def ranked(self) -> RankedStage | None:
        """Calls by which it takes a large partition otherwise, for a PARTITION source. On the loop, after `open`."""
        ...

    def enough(self) -> bool:
        """Whether more input cannot change the output (a limit is reached). Asked on the loop after each task."""
        ...

    def relievable(self) -> Relievable:
        """What `relieve` could give back now. Asked on the loop after each task, while others may run."""
        ...

    def relief_parts(self) -> int: ...

    def relieve(self, part: int, slot: int) -> Output: ...
    def postponed(self) -> Sequence[Postponed]:
        """What waits for rounds, in the order of steps: rows that go on from one may wait again at a later one. Asked
        once, on the loop, when all inputs are done.
        """
        ...

    def leave(self, step: int) -> None:
        """From now on rows go on from `step` only, in rounds: what it and those before it keep may go. On the loop."""
        ...

    def run_round(
        self, call: RoundCall, part: Round, batches: Sequence[pa.RecordBatch], sequence: int, slot: int, *, seen: bool
    ) -> Output:
        """A call for a round. Batches are all build rows of the round for a LOAD, none for an UNLOAD, one or a few
        else; `seen` tells that they were in partition 1 of the aside of a block loop. `sequence` is beyond those of
        all inputs.
        """
        ...

    def finish_parts(self) -> int: ...

    def finish(self, part: int, slot: int) -> Output: ...

    def end(self, bytes_max: int, slot: int) -> Output | None:
        """All parts of `finish` in one call, where the stage keeps at most `bytes_max` bytes and nothing waits for
        rounds; else None, and it goes on as if this had not been called. Called again after a MemoryError or OutOfRoom
        it goes on with the part that raised it.
        """
        ...

    def close(self) -> None: ...


class StageSet(Protocol):
    """The stages of one query and the states they share."""

    def stage(self, pipeline: Pipeline) -> Stage: ...

    def are_splits_quick(self, pipeline: Pipeline) -> bool:
        """Whether `splits` neither blocks nor takes long, so that it may be called on the loop."""
        ...

    def splits(self, pipeline: Pipeline) -> Sequence[Split]:
        """The splits of a ScanSource, after pruning; called once, on any thread, when the pipeline may start."""
        ...

    def is_kept(self, table: str) -> bool:
        """Whether what is decoded of a table's column chunks should outlive the query."""
        ...

    def free_table(self, table: str) -> None:
        """Every pipeline that reads the join table has ended."""
        ...

    def stop(self) -> None:
        """Asks calls that run to end soon, with Cancelled, because nobody wants their output any more."""
        ...

    def close(self) -> None:
        """Frees all shared states; idempotent."""
        ...
