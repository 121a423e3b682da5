"""Joins with a table that has some of the build rows only.

Rows of the stream whose partition is not in the table go to an aside and wait (`away.Router`); the others are joined.
What a NULL means to IN and NOT IN depends on all build rows, so that is decided by what is known of them as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.operators.away import Away, Router, is_plain_in
from bireme.operators.base import Aside, Emission
from bireme.operators.filter_project import KeyColumns
from bireme.operators.hash_join import HashJoin, Matcher
from bireme.operators.join_keys import StreamKeys
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.physical import MatchSink, ProbeStep
from bireme.plan.relation import JoinKind


class PartialJoin:
    """A `ProbeStep` at work while part of its build side is away."""

    def __init__(
        self, step: ProbeStep, built: BuiltTable, away: Away, waiting: Aside, stream: Schema, output: Schema,
        kernels: Kernels, states: QueryStates,
    ) -> None:  # fmt: skip
        self._keys = StreamKeys(step.keys, stream, built, kernels, states)
        self._router = Router(away, step.keys, waiting, kernels)
        self._join = part_join(step, built, away, stream, output, kernels, states)
        self.fan_out = self._join.fan_out

    def run(self, batch: pa.RecordBatch, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """Output for the rows that need not wait; the others are added to `aside`."""
        here = self._router.route(batch, self._keys.run(batch), aside)
        if here is not None:
            yield from self._join.run(here, aside)


class PartialMatch:
    """A `MatchSink` at work while part of its build side is away."""

    def __init__(
        self, sink: MatchSink, built: BuiltTable, away: Away, waiting: Aside, stream: Schema, kernels: Kernels,
        states: QueryStates,
    ) -> None:  # fmt: skip
        self._keys = StreamKeys(sink.keys, stream, built, kernels, states)
        self._router = Router(away, sink.keys, waiting, kernels)
        self._matcher = Matcher(sink, built, stream, kernels, states)
        self.fan_out = self._matcher.fan_out

    def run(self, batch: pa.RecordBatch, aside: list[Emission]) -> None:
        """Marks what the rows that need not wait match; the others are added to `aside`."""
        here = self._router.route(batch, self._keys.run(batch), aside)
        if here is not None:
            self._matcher.run(here, aside)


def part_join(
    step: ProbeStep, built: BuiltTable, away: Away, stream: Schema, output: Schema, kernels: Kernels,
    states: QueryStates,
) -> HashJoin | InPart:  # fmt: skip
    """The join of rows whose every match is in the table `built`, which is part of a build side."""
    if step.null_aware and is_plain_in(away.sink):
        return InPart(step, built, away, stream, output, kernels, states)
    return HashJoin(step, built, stream, output, kernels, states)


class InPart:
    """IN and NOT IN over one key: the mark is TRUE where the table has an equal row; else it is NULL for a NULL, and
    where any row of the whole build side is NULL.
    """

    def __init__(
        self, step: ProbeStep, built: BuiltTable, away: Away, stream: Schema, output: Schema, kernels: Kernels,
        states: QueryStates,
    ) -> None:  # fmt: skip
        self._is_anti = step.kind is JoinKind.ANTI
        self._has_null = away.has_null_key
        self._has_mark = bool(step.right_output)
        self._names = output.names
        self._kernels = kernels
        self._keys = KeyColumns(step.keys, stream, kernels, states)
        self._join = HashJoin(variant(step, null_aware=False), built, stream, output, kernels, states)
        self.fan_out = self._join.fan_out

    def run(self, batch: pa.RecordBatch, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """Output batches in the order of the stream's rows."""
        valid = arrays.is_valid(self._keys.run(batch).column(0))
        if not self._is_anti:
            yield from self._marked(batch, valid, aside)
        elif not self._has_null:
            if not valid.all():
                batch = self._kernels.take(batch, arrays.from_numpy(np.flatnonzero(valid)))
            yield from self._join.run(batch, aside)

    def _marked(self, batch: pa.RecordBatch, valid: arrays.Flags, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        start = 0
        for piece in self._join.run(batch, aside):
            end = start + piece.num_rows
            if not self._has_mark:
                yield piece
                continue
            true = arrays.is_true(piece.columns[-1])
            unknown = ~true if self._has_null else ~true & ~valid[start:end]
            mark = arrays.from_numpy(true, missing=unknown)
            yield record_batch([*piece.columns[:-1], mark], self._names, piece.num_rows)
            start = end


def variant(
    step: ProbeStep,
    *,
    kind: JoinKind | None = None,
    null_aware: bool | None = None,
    rows_of_width: int | None = None,
) -> ProbeStep:
    """The same look-ups for another kind of join; with `rows_of_width`, one that gives rows of the stream as they are,
    and marks nothing.
    """
    left, right, tracks = step.left_output, step.right_output, step.track_matches
    if rows_of_width is not None:
        left, right, tracks = tuple(range(rows_of_width)), (), False
    return ProbeStep(
        step.table,
        step.kind if kind is None else kind,
        step.keys,
        step.residual,
        step.null_equal_count,
        step.null_aware if null_aware is None else null_aware,
        tracks,
        left,
        right,
        step.bounds,
    )
