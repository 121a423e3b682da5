"""Joining with a build side block by block, where one key has more rows than fit in memory.

The stream passes every block in turn. A row goes on to the next block only while a build row there may still matter to
it: for a semi join until it has matched, for an outer join always, but as one that has been seen to match. What has
been seen is told by the partition that a row travels in, so that nothing is added to rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.record import compact, record_batch, select
from bireme.data.schema import Schema
from bireme.errors import CardinalityFault
from bireme.operators.away import Away, is_plain_in
from bireme.operators.base import Aside, Emission
from bireme.operators.hash_join import HashJoin, PairFinder
from bireme.operators.null_aware import NullAwareMarks
from bireme.operators.partial_join import part_join, variant
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.physical import ProbeStep
from bireme.plan.relation import JoinKind

FRESH: Final = 0
SEEN: Final = 1


class BlockJoin:
    """A `ProbeStep` at work on one block of its build side; `after` is where rows go on, None at the last block."""

    def __init__(
        self, step: ProbeStep, built: BuiltTable, away: Away, after: Aside | None, stream: Schema, output: Schema,
        kernels: Kernels, states: QueryStates,
    ) -> None:  # fmt: skip
        self._step = step
        self._after = after
        self._names = output.names
        self._stream = stream
        self._kernels = kernels
        self._marks: NullAwareMarks | None = None
        if step.null_aware and not is_plain_in(away.sink):
            finder = PairFinder(built, step.keys, step.residual, stream, kernels, states)
            self._marks = NullAwareMarks(step, built, finder, stream, kernels, states)
            return
        width = len(stream)
        plain = variant(step, null_aware=False)
        matching = variant(plain, kind=JoinKind.SEMI, rows_of_width=width)
        lonely = variant(plain, kind=JoinKind.ANTI, rows_of_width=width)
        self._pairs = HashJoin(variant(plain, kind=JoinKind.INNER), built, stream, output, kernels, states)
        self._matching = HashJoin(matching, built, stream, stream, kernels, states)
        self._lonely = HashJoin(lonely, built, stream, stream, kernels, states)
        self._last = part_join(step, built, away, stream, output, kernels, states)

    def run(self, batch: pa.RecordBatch, seen: bool, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """Output of this block; rows that go on are added to `aside`."""
        match self._step.kind:
            case _ if self._marks is not None:
                yield from self._marked(self._marks, batch, seen, aside)
            case JoinKind.INNER | JoinKind.RIGHT:
                yield from self._pairs.run(batch, aside)
                self._go_on(batch, FRESH, aside)
            case JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK:
                yield from self._settled(batch, aside)
            case JoinKind.LEFT | JoinKind.FULL:
                yield from self._outer(batch, seen, aside)
            case JoinKind.SINGLE:
                yield from self._single(batch, seen, aside)

    def _settled(self, batch: pa.RecordBatch, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """A match settles a row at once, no match only at the last block."""
        if self._after is None:
            yield from self._last.run(batch, aside)
            return
        if self._step.kind is not JoinKind.ANTI:
            for found in self._matching.run(batch, aside):
                yield self._as_output(found, np.ones(found.num_rows, np.bool_), None)
        for rest in self._lonely.run(batch, aside):
            self._go_on(rest, FRESH, aside)

    def _outer(self, batch: pa.RecordBatch, seen: bool, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        if seen:
            yield from self._pairs.run(batch, aside)
            self._go_on(batch, SEEN, aside)
        elif self._after is None:
            yield from self._last.run(batch, aside)
        else:
            yield from self._pairs.run(batch, aside)
            self._part(batch, aside)

    def _single(self, batch: pa.RecordBatch, seen: bool, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        if seen:
            if any(found.num_rows for found in self._matching.run(batch, aside)):
                raise CardinalityFault(
                    "a scalar subquery gave more than one row; add LIMIT 1 or an aggregate such as max()"
                )
            self._go_on(batch, SEEN, aside)
        elif self._after is None:
            yield from self._last.run(batch, aside)
        else:
            for found in self._matching.run(batch, aside):
                yield from self._last.run(found, aside)
            self._part(batch, aside)

    def _part(self, batch: pa.RecordBatch, aside: list[Emission]) -> None:
        """Rows that match go on as seen, the others as they are."""
        for found in self._matching.run(batch, aside):
            self._go_on(found, SEEN, aside)
        for rest in self._lonely.run(batch, aside):
            self._go_on(rest, FRESH, aside)

    def _marked(
        self, marks: NullAwareMarks, batch: pa.RecordBatch, seen: bool, aside: list[Emission]
    ) -> Iterator[pa.RecordBatch]:
        """Rows that are seen have met a comparison that is NULL."""
        mark = marks.of(batch)
        true = arrays.is_true(mark)
        unknown = ~true if seen else ~arrays.is_valid(mark)
        is_anti = self._step.kind is JoinKind.ANTI
        if self._after is not None:
            self._go_on(self._chosen(batch, ~true & unknown), SEEN, aside)
            self._go_on(self._chosen(batch, ~true & ~unknown), FRESH, aside)
            done = np.zeros_like(true) if is_anti else true
        else:
            done = ~true & ~unknown if is_anti else np.ones_like(true)
        yield self._as_output(self._chosen(batch, done), true[done], unknown[done])

    def _chosen(self, batch: pa.RecordBatch, flags: arrays.Flags) -> pa.RecordBatch:
        return self._kernels.take(batch, arrays.from_numpy(np.flatnonzero(flags)))

    def _as_output(self, batch: pa.RecordBatch, true: arrays.Flags, unknown: arrays.Flags | None) -> pa.RecordBatch:
        columns = [batch.column(index) for index in self._step.left_output]
        if self._step.kind is JoinKind.MARK and self._step.right_output:
            columns.append(arrays.from_numpy(true, missing=unknown))
        return record_batch(columns, self._names, batch.num_rows)

    def _go_on(self, batch: pa.RecordBatch, partition: int, aside: list[Emission]) -> None:
        if self._after is not None and batch.num_rows:
            named = select(batch, range(batch.num_columns), self._stream.names)
            aside.append(Emission(self._after, partition, compact(named)))
