"""What a pipeline does, as the runtime sees it: plain synchronous work over inputs, no waiting, no memory decisions.

The runtime's graph decides when; `stage` implements this for real pipelines; tests have small fakes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from bireme.backends.base import ScanCounts
from bireme.data.ids import EdgeId
from bireme.errors import EngineBug
from bireme.plan.physical import Pipeline
from bireme.storage.base import Split


@dataclass(frozen=True, slots=True)
class Emission:
    """A batch for an edge, in a partition of it."""

    edge: EdgeId
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
    state, and keeps nothing of it. One that raises MemoryError or OutOfRoom has lost nothing and is made again.
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

    def enough(self) -> bool:
        """Whether more input cannot change the output (a limit is reached). Asked on the loop after each task."""
        ...

    def relievable(self) -> Relievable:
        """What `relieve` could give back now. Asked on the loop after each task, while others may run."""
        ...

    def relief_parts(self) -> int: ...

    def relieve(self, part: int, slot: int) -> Output: ...

    def finish_parts(self) -> int: ...

    def finish(self, part: int, slot: int) -> Output: ...

    def close(self) -> None: ...


class StageSet(Protocol):
    """The stages of one query and the states they share."""

    def stage(self, pipeline: Pipeline) -> Stage: ...

    def splits(self, pipeline: Pipeline) -> Sequence[Split]:
        """The splits of a ScanSource, after pruning; called on the loop when the pipeline may start."""
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
