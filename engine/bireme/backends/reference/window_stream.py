"""Window functions over rows that come in window order, a batch at a time, in the memory of a frame and a batch.

Rule: of the rows that were, those that a frame may still see are held; the others are folded into a state for each
function. What is yet to come of a partition is known from a survey of all batches, made before. So a partition may have
any number of rows. `window_calls` has what each function does with that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.reference import frames
from bireme.backends.reference.expressions import Scope
from bireme.backends.reference.frames import InOrder
from bireme.backends.reference.vectors import Bools
from bireme.backends.reference.window_calls import Around, Counted, StreamedCall, streamed
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.record import joined, record_batch
from bireme.plan.expr import SortKey, WindowCall
from bireme.plan.window_order import WindowOrder, by_order

# Where partitions, and where groups of peers begin, of rows in order.
Beginnings = Callable[[pa.RecordBatch], tuple[Bools, Bools]]

# What is kept of a row beside its values: where its partition, its peers and its frames begin and end.
_ROW_BYTES: Final = 64


class Survey(NamedTuple):
    """What later batches tell those before them: the partition, and the peers, that a batch begins with."""

    first: pa.RecordBatch
    last: pa.RecordBatch
    partition: Counted
    peers: Counted
    is_one_partition: bool
    is_one_group: bool


class Stream:
    """Calls that share an order, over all batches of some partitions in that order."""

    def __init__(self, calls: Sequence[StreamedCall], order: tuple[SortKey, ...], beginnings: Beginnings) -> None:
        self._calls = calls
        self._order = order
        self._beginnings = beginnings
        self._needs_before = [call.needs_before for call in calls]
        self._needs_after = [call.needs_after for call in calls]
        self.needs_surveys = any(self._needs_after)
        self._none = Counted(0, 0, tuple([None] * len(calls)))
        self._nothing = Around(self._none, self._none)
        self.restart([])

    def restart(self, surveys: Sequence[Survey]) -> None:
        """New partitions begin; with the surveys of all their batches, where those are needed."""
        self._after = self._all_after(surveys)
        self._held: pa.RecordBatch | None = None
        self._given = 0  # held rows whose values are out
        self._before = self._nothing
        self._batches = 0

    @property
    def nbytes(self) -> int:
        return 0 if self._held is None else measure(self._held) + _ROW_BYTES * self._held.num_rows

    def mark(self) -> tuple[pa.RecordBatch | None, int, Around, int]:
        return self._held, self._given, self._before, self._batches

    def reset(self, mark: tuple[pa.RecordBatch | None, int, Around, int]) -> None:
        self._held, self._given, self._before, self._batches = mark

    # ------------------------------------------------------------------------------------------- surveys

    def survey(self, batch: pa.RecordBatch) -> Survey:
        """Of a batch with rows. Any thread."""
        ordered = self._ordered(batch)
        partition, peers = int(ordered.end[0]), int(ordered.peer_end[0])
        rows = batch.num_rows
        return Survey(
            _row(batch, 0),
            _row(batch, rows - 1),
            self._counted(ordered, 0, partition, self._needs_after),
            self._counted(ordered, 0, peers, self._needs_after),
            partition == rows,
            peers == rows,
        )

    def _all_after(self, surveys: Sequence[Survey]) -> list[Around]:
        """By batch, what follows it of the partition and the peers that it ends with."""
        found: list[Around] = []
        after = self._nothing
        for this, following in zip(reversed(surveys[:-1]), reversed(surveys[1:]), strict=True):
            found.append(after)
            after = self._from(following, after, *self._are_one(this.last, following.first))
        found.append(after)
        return found[::-1]

    def _from(self, survey: Survey, after: Around, same_partition: bool, same_group: bool) -> Around:
        """What follows a batch, when what follows the next one is known."""
        partition = peers = self._none
        if same_partition:
            partition = self._merged(survey.partition, after.partition if survey.is_one_partition else self._none)
        if same_group:
            peers = self._merged(survey.peers, after.peers if survey.is_one_group else self._none)
        return Around(partition, peers)

    def _are_one(self, last: pa.RecordBatch, first: pa.RecordBatch) -> tuple[bool, bool]:
        new, peers = self._beginnings(joined([last, first]))
        return not new[1], not peers[1]

    def _counted(self, ordered: InOrder, low: int, high: int, needed: Sequence[bool]) -> Counted:
        """Rows `low` to `high` of one partition, with the states that are needed. Groups are those that begin there."""
        calls = zip(self._calls, needed, strict=True)
        states = tuple([call.fold(ordered, low, high) if is_needed else None for call, is_needed in calls])
        groups = 0 if low >= high else int(ordered.peer_number[high - 1] - ordered.peer_number[low]) + 1
        return Counted(high - low, groups, states)

    def _merged(self, before: Counted, after: Counted) -> Counted:
        if not before.rows or not after.rows:
            return before if before.rows else after
        pairs = zip(self._calls, before.states, after.states, strict=True)
        states = tuple([None if one is None else call.merged(one, other) for call, one, other in pairs])
        return Counted(before.rows + after.rows, before.groups + after.groups, states)

    # ----------------------------------------------------------------------------------------------- rows

    def add(self, batch: pa.RecordBatch, *, is_last: bool) -> tuple[pa.RecordBatch, list[pa.Array]]:
        """The next batch: rows whose values are known now, with the values. A call that fails changes nothing."""
        whole = batch if self._held is None else joined([self._held, batch])
        ordered = self._ordered(whole)
        rows = whole.num_rows
        after = self._nothing
        if not is_last and self.needs_surveys:
            after = self._after[self._batches]
        known = rows if is_last else min([rows, *[call.open_from(ordered) for call in self._calls]])
        known = max(known, self._given)
        chosen = slice(self._given, known)
        values = [call.values(ordered, chosen, self._before, after) for call in self._calls]
        given = whole.slice(self._given, known - self._given)
        self._go_on(whole, ordered, known, is_last)
        return given, values

    def _go_on(self, whole: pa.RecordBatch, ordered: InOrder, known: int, is_last: bool) -> None:
        rows = whole.num_rows
        if is_last or not rows:
            self._held = None if is_last else self._held
            self._batches += 1
            return
        # One row stays at least, to tell whether its partition goes on.
        row = min(known, rows - 1)
        start = max(0, min([row, *[call.needed_from(ordered, row) for call in self._calls]]))
        before = Around(
            self._left(ordered, start, int(ordered.start[start]), self._before.partition),
            self._left(ordered, start, int(ordered.peer_start[start]), self._before.peers),
        )
        held = _copied(whole, start)
        self._before, self._held, self._given = before, held, known - start
        self._batches += 1

    def _left(self, ordered: InOrder, end: int, start: int, earlier: Counted) -> Counted:
        """What leaves of the rows before `end` that are in one partition, or group, with it, which began at `start`."""
        leaving = self._counted(ordered, start, end, self._needs_before) if start < end else self._none
        if start < end and ordered.peer_number[end] == ordered.peer_number[end - 1]:
            # The last group goes on and is counted when it ends.
            leaving = leaving._replace(groups=leaving.groups - 1)
        return self._merged(earlier, leaving) if start == 0 else leaving

    def _ordered(self, batch: pa.RecordBatch) -> InOrder:
        return InOrder(Scope(batch.columns, batch.num_rows), self._order, self._beginnings(batch))


def window_stream(calls: Sequence[WindowCall], beginnings: Beginnings | None = None) -> Stream | None:
    """The calls over batches in order; None where their orders differ, or one has to see all rows of a partition.
    Another backend may find where partitions and peers begin.
    """
    orders = by_order(calls)
    known = [streamed(call, index) for index, call in enumerate(calls)]
    possible = [call for call in known if call is not None]
    if len(orders) != 1 or len(possible) < len(known):
        return None
    (order,) = orders
    return Stream(possible, order[1], beginnings or partial(_beginnings, order))


def _beginnings(order: WindowOrder, batch: pa.RecordBatch) -> tuple[Bools, Bools]:
    return frames.beginnings(Scope(batch.columns, batch.num_rows), batch.num_rows, *order)


def _row(batch: pa.RecordBatch, place: int) -> pa.RecordBatch:
    """A row with memory of its own."""
    return batch.take(arrays.from_numpy(np.array([place], np.int64)))


def _copied(batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """The rows from `start` on, with memory of their own where they are few of many."""
    rows = batch.num_rows - start
    if 2 * rows > batch.num_rows:
        return batch.slice(start)
    columns = [
        column.take(arrays.from_numpy(np.arange(start, batch.num_rows, dtype=np.int64))) for column in batch.columns
    ]
    return record_batch(columns, batch.schema.names, rows)
