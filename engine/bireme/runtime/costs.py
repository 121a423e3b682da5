"""What the tasks of one live pipeline cost: bytes and time learnt from those that ended, and the room of kept state.

Changes only on the loop. What follows from it is decided in `compute.policy` and `compute.estimate`.
"""

from __future__ import annotations

from typing import Final

from bireme.data.tier import Tier
from bireme.operators.base import NOTHING
from bireme.plan.file_result import NESTED_COPIES, nested_bytes_max
from bireme.plan.physical import BuildSink, EmitSink, EncodeStep, MergeGroupsStep, Pipeline, RangeSink, SortStep, Step
from bireme.runtime.compute.estimate import History
from bireme.runtime.compute.policy import is_brief, seconds_per_row
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.memory.ledger import Ledger, Reservation, Use
from bireme.storage.split_run import kept_parts
from bireme.units import MIB

# What such tasks need follows from what they are over.
_NOT_LEARNT_FROM: Final = (TaskKind.RELIEVE, TaskKind.CUT, TaskKind.BIT)
# How often steps have their inputs in memory beside what is measured of them: in another order, or in an encoder, which
# takes its memory elsewhere.
_COPIES_OF_INPUT: Final[dict[type[Step], int]] = {MergeGroupsStep: 1, EncodeStep: 1}
# What steps take elsewhere however small their input is: an allocator keeps some memory for each thread and size.
_BYTES_ELSEWHERE: Final[dict[type[Step], int]] = {EncodeStep: 8 * MIB}
# And of the widest values, of which a few copies are on their way through such a step at once.
_COPIES_OF_ROW: Final[dict[type[Step], int]] = {EncodeStep: 5}
# Bytes for each of basis until a task has told; pages of a split are there beside what they decode to.
_FIRST_GUESSES: Final = {TaskKind.SPLIT: 2.25}
# More, where the task brings its rows into order: they are copied, and keys and places are there beside them.
_ORDER_GUESS: Final = 0.75


def _cuts_rows(pipeline: Pipeline) -> bool:
    """Whether its tasks cut what they make into parts: then rows are there twice."""
    sink = pipeline.sink
    return isinstance(sink, RangeSink) or (isinstance(sink, EmitSink) and bool(sink.partition_keys))


def _nested_bytes_max(pipeline: Pipeline, memory_bytes: int) -> int:
    """How many bytes of nested values its tasks encode at once; 0 for none."""
    nested = [step for step in pipeline.steps if isinstance(step, EncodeStep) and _has_nested(step)]
    return nested_bytes_max(memory_bytes) if nested else 0


def _has_nested(step: EncodeStep) -> bool:
    return any(field.type.is_nested for field in step.schema)


class Costs:
    """`row_seconds` is what a row took in the task that ended last, `relievable` what the stage could give up."""

    def __init__(self, ledger: Ledger, pipeline: Pipeline) -> None:
        self._copies_made = 1.0 if _cuts_rows(pipeline) else 0.0
        if any(isinstance(step, SortStep) for step in pipeline.steps):
            self._copies_made += _ORDER_GUESS
        self._histories: dict[TaskKind, History] = {}
        self.row_seconds = 0.0
        self._ledger = ledger
        self._is_build = isinstance(pipeline.sink, BuildSink)
        self._input_copies = sum([_COPIES_OF_INPUT.get(type(step), 0) for step in pipeline.steps])
        self._nested_bytes_max = _nested_bytes_max(pipeline, ledger.limits[Tier.DEVICE])
        self._row_copies = sum([_COPIES_OF_ROW.get(type(step), 0) for step in pipeline.steps])
        self._bytes_elsewhere = sum([_BYTES_ELSEWHERE.get(type(step), 0) for step in pipeline.steps])
        self.relievable = NOTHING
        self._state_room: Reservation | None = None

    @property
    def state_bytes(self) -> int:
        """Bytes that the stage keeps between tasks."""
        return 0 if self._state_room is None else self._state_room.nbytes

    def account(self, task: Task, result: Result) -> None:
        """Learns from a task that ended, and takes room for what the stage keeps now."""
        before = self.state_bytes
        if result.state_bytes != before:
            if self._state_room is None:
                self._state_room = self._ledger.take(Tier.DEVICE, result.state_bytes, Use.STATE)
            else:
                self._state_room.resize(result.state_bytes)
        if task.kind in _NOT_LEARNT_FROM:
            return  # it tells nothing of what inputs cost
        # What a scan decodes may be more than what it gives; columns that it gives as they are count in both.
        made = result.nbytes if result.scanned is None else max(result.nbytes, result.scanned.bytes_held_max)
        kept = sum([part.fresh_bytes for part in kept_parts(task.split)])
        if task.kind is not TaskKind.FINISH:
            self.row_seconds = seconds_per_row(result.seconds, task.rows_in)
        needed = made + kept + max(0, result.state_bytes - before)
        self._history(task.kind).learn(task.basis, max(needed, result.peak_bytes))

    def suffered(self, task: Task) -> None:
        """`task` ran out of memory."""
        self._history(task.kind).suffered(task.basis, task.grant_bytes)

    def need(self, task: Task) -> int:
        """Bytes that running `task` will need beside its inputs."""
        if task.kind is TaskKind.RELIEVE:
            return self.relievable.step_bytes
        if task.known_need is not None:
            return task.known_need
        if task.kind is TaskKind.CUT:
            return 2 * task.basis  # its rows by parts, and those that are joined once more
        if task.kind is TaskKind.BIT:
            # Its table, which leaves as groups in the end, and at worst doubles where it grows.
            return task.basis + self.state_bytes
        if task.kind is TaskKind.FINISH and self._is_build:
            return 0  # the state of a build counts what its end needs
        widest = self._row_copies * (task.basis // max(1, task.rows_in))
        nested = NESTED_COPIES * min(task.basis, self._nested_bytes_max)
        return self._need_of(task.kind, task.basis) + widest + nested

    def need_of_batches(self, basis: int) -> int:
        """Bytes that a task over batches of so many bytes needs beside them."""
        return self._need_of(TaskKind.BATCHES, basis)

    def _need_of(self, kind: TaskKind, basis: int) -> int:
        return self._history(kind).estimate(basis) + self._input_copies * basis + self._bytes_elsewhere

    def _history(self, kind: TaskKind) -> History:
        found = self._histories.get(kind)
        if found is None:
            found = self._histories[kind] = History(_FIRST_GUESSES.get(kind, 1.0) + self._copies_made)
        return found

    def leave(self) -> None:
        """From here on the stage hands over what it keeps, and keeps nothing more."""
        if self._state_room is not None:
            with self._state_room as before:
                self._state_room = before.carve(before.nbytes, Use.LEAVING)

    def is_brief(self, task: Task, rows_out_max: int | None) -> bool:
        """Whether `task` may run on the loop; one that is short of memory, or gives some back, may not."""
        if task.attempt or task.kind is TaskKind.ROUND or task.kind in _NOT_LEARNT_FROM:
            return False
        rows, nbytes = task.rows_in, task.basis
        return is_brief(rows=rows, nbytes=nbytes, rows_out_max=rows_out_max, row_seconds=self.row_seconds)

    def release_state(self) -> None:
        """The stage keeps nothing any more; idempotent."""
        if self._state_room is not None:
            self._state_room.release()
            self._state_room = None
