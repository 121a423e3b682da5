"""Probing a join table: every kind of join, residual predicates, and NULL as IN and NOT IN see it.

Building is in `join_sinks`; which side is built is the plan's choice. Most joins run in one call of the backend a
batch. What it has no such call for works on pairs (stream row, build row): the table gives those with equal keys, the
residual drops some, and the kind decides what becomes of rows without one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import Kernels, ProbePlan, Program
from bireme.data import arrays
from bireme.data.record import record_batch, select
from bireme.data.schema import Schema
from bireme.data.types import BOOL
from bireme.errors import CardinalityFault
from bireme.operators import programs
from bireme.operators.base import Emission
from bireme.operators.join_keys import StreamKeys
from bireme.operators.null_aware import NullAwareMarks
from bireme.operators.pairs import Rows, StepRows, rows_against_all
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Expr
from bireme.plan.physical import MatchSink, ProbeStep
from bireme.plan.range_keys import RangeBound
from bireme.plan.relation import JoinKind


class PairFinder:
    """Pairs of stream and build rows with equal keys and a TRUE residual, in pieces of bounded size."""

    def __init__(
        self, built: BuiltTable, keys: tuple[Expr, ...], residual: Expr | None, stream: Schema, kernels: Kernels,
        states: QueryStates,
    ) -> None:  # fmt: skip
        self._built = built
        self._states = states
        self._kernels = kernels
        self._keys = StreamKeys(keys, stream, built, kernels, states) if keys else None
        self._residual: Program | None = None
        if residual is not None:
            both = stream.concat(built.schema)
            resolved = states.resolve(residual)
            self._residual = programs.compiled(kernels, both, predicate=None, exprs=[resolved], names=["residual"])
        self._step = StepRows()

    def keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._keys.run(batch) if self._keys is not None else record_batch([], [], batch.num_rows)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Rows, Rows]]:
        """Pieces of the batch, each with its pairs: positions in the piece and in the build side."""
        start = 0
        while start < batch.num_rows:
            self._states.check()
            length = min(self._step_rows_for(), batch.num_rows - start)
            piece = batch.slice(start, length)
            yield (piece, *self._pairs(piece))
            start += length

    def _step_rows_for(self) -> int:
        return rows_against_all(len(self._built.matched)) if self._keys is None else self._step.count

    def _pairs(self, piece: pa.RecordBatch) -> tuple[Rows, Rows]:
        if self._keys is None:
            stream, build = _all_pairs(piece.num_rows, self._built.batch.num_rows)
        else:
            found = self._built.table.match(self._keys.run(piece))
            stream, build = arrays.to_numpy(found[0]), arrays.to_numpy(found[1])
            self._step.adapt(piece.num_rows, len(stream))
        if self._residual is not None and len(stream):
            kept = self.residual_is_true(piece, stream, build)
            stream, build = stream[kept], build[kept]
        return stream, build

    def residual_is_true(self, piece: pa.RecordBatch, stream: Rows, build: Rows) -> npt.NDArray[np.bool_]:
        """For each pair whether the residual is TRUE."""
        if self._residual is None:
            return np.ones(len(stream), dtype=np.bool_)
        left = self._kernels.take(piece, arrays.from_numpy(stream))
        right = self._kernels.take(self._built.batch, arrays.from_numpy(build))
        names = [*left.schema.names, *right.schema.names]
        both = record_batch([*left.columns, *right.columns], names, len(stream))
        return _true_values(programs.run(self._residual, both).column(0))


def _fan_out(built: BuiltTable, kind: JoinKind, residual: Expr | None) -> int:
    """How many pairs a row may be part of at worst."""
    one_is_enough = residual is None and kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
    return 1 if one_is_enough or built.table.is_unique else max(1, built.batch.num_rows)


def _tested(
    step: ProbeStep | MatchSink, built: BuiltTable, states: QueryStates
) -> tuple[Expr | None, tuple[RangeBound, ...]]:
    """What is tested of the pairs that the table finds, and the bounds within which it finds them."""
    residual = step.residual
    bounds: tuple[RangeBound, ...] = ()
    if step.bounds is not None and built.table.has_ranges:
        residual, bounds = step.bounds.rest, step.bounds.bounds
    return None if residual is None else states.resolve(residual), bounds


def _looked_up(step: ProbeStep | MatchSink, bounds: tuple[RangeBound, ...]) -> tuple[Expr, ...]:
    """What a prober gets of each row of the stream."""
    return (*step.keys, *[bound.value for bound in bounds])


class HashJoin:
    """A `ProbeStep` at work: by the backend's own prober where it has one, else by pairs. A row gives `fan_out` pairs
    at the most.
    """

    def __init__(
        self, step: ProbeStep, built: BuiltTable, stream: Schema, output: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        residual, bounds = _tested(step, built, states)
        plan = ProbePlan(
            step.kind, len(step.keys), step.null_equal_count, step.null_aware, residual, stream, built.schema,
            step.left_output, step.right_output, output.names, built.matched if step.track_matches else None, bounds,
        )  # fmt: skip
        self.fan_out = _fan_out(built, step.kind, step.residual)
        self._states = states
        self._keys = StreamKeys(_looked_up(step, bounds), stream, built, kernels, states)
        self._prober = kernels.prober(plan, built.table)
        self._pairs: PairJoin | None = None
        if self._prober is None:
            self._pairs = PairJoin(step, built, stream, output, kernels, states)

    def run(self, batch: pa.RecordBatch, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """Output batches in the order of the stream's rows; no row has to wait aside."""
        if self._prober is None:
            assert self._pairs is not None
            yield from self._pairs.run(batch)
            return
        for piece in self._prober.run(batch, self._keys.run(batch)):
            self._states.check()
            yield piece


class Matcher:
    """A `MatchSink` at work: sets the marks of build rows that the stream matches."""

    def __init__(
        self, sink: MatchSink, built: BuiltTable, stream: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        residual, bounds = _tested(sink, built, states)
        plan = ProbePlan(
            JoinKind.SEMI, len(sink.keys), sink.null_equal_count, False, residual, stream, built.schema, (), (), (),
            built.matched, bounds,
        )  # fmt: skip
        self.fan_out = _fan_out(built, JoinKind.SEMI, sink.residual)
        self._built = built
        self._keys = StreamKeys(_looked_up(sink, bounds), stream, built, kernels, states)
        self._prober = kernels.prober(plan, built.table)
        self._finder: PairFinder | None = None
        if self._prober is None:
            self._finder = PairFinder(built, sink.keys, sink.residual, stream, kernels, states)

    def run(self, batch: pa.RecordBatch, aside: list[Emission]) -> None:
        """Marks the build rows that the batch matches; no row has to wait aside."""
        if self._prober is not None:
            self._prober.mark_matches(batch, self._keys.run(batch))
            return
        assert self._finder is not None
        for _, _, build in self._finder.pieces(batch):
            self._built.matched[build] = True


class PairJoin:
    """A `ProbeStep` at work on pairs (stream row, build row)."""

    def __init__(
        self, step: ProbeStep, built: BuiltTable, stream: Schema, output: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        self._step = step
        self._built = built
        self._kernels = kernels
        self._names = output.names
        self._finder = PairFinder(self._built, step.keys, step.residual, stream, kernels, states)
        self._simple = step.residual is None and bool(step.keys)
        self._marks: NullAwareMarks | None = None
        if step.null_aware:
            self._marks = NullAwareMarks(step, built, self._finder, stream, kernels, states)

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Output batches in the order of the stream's rows."""
        match self._step.kind:
            case JoinKind.SEMI:
                yield self._filtered(batch, arrays.is_true(self._has_match(batch)))
            case JoinKind.ANTI:
                yield self._filtered(batch, self._has_no_match(batch))
            case JoinKind.MARK:
                yield self._marked(batch)
            case _:
                yield from self._joined(batch)

    def _has_match(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        if self._simple:
            return self._built.table.contains(self._finder.keys(batch))
        found = np.zeros(batch.num_rows, dtype=np.bool_)
        start = 0
        for piece, stream, _ in self._finder.pieces(batch):
            found[start + stream] = True
            start += piece.num_rows
        return arrays.from_numpy(found)

    def _has_no_match(self, batch: pa.RecordBatch) -> arrays.Flags:
        if self._marks is not None:
            return arrays.is_false(self._marks.of(batch))
        return ~arrays.is_true(self._has_match(batch))

    def _filtered(self, batch: pa.RecordBatch, kept: arrays.Flags) -> pa.RecordBatch:
        chosen = select(batch, self._step.left_output, self._names)
        return chosen if kept.all() else self._kernels.take(chosen, arrays.from_numpy(np.flatnonzero(kept)))

    def _marked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(index) for index in self._step.left_output]
        if self._step.right_output:
            columns.append(self._marks.of(batch) if self._marks is not None else self._has_match(batch))
        return record_batch(columns, self._names, batch.num_rows)

    def _joined(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for piece, stream, build in self._finder.pieces(batch):
            if self._step.track_matches:
                self._built.matched[build] = True
            if self._step.kind is JoinKind.SINGLE:
                _check_single(stream)
            if self._step.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE):
                yield self._padded(piece, stream, build)
            else:
                yield self._gathered(piece, arrays.from_numpy(stream), arrays.from_numpy(build))

    def _padded(self, piece: pa.RecordBatch, stream: Rows, build: Rows) -> pa.RecordBatch:
        """The pairs, and the stream rows without one padded with NULLs, in the order of the stream."""
        lonely = np.flatnonzero(np.bincount(stream, minlength=piece.num_rows) == 0)
        if not len(lonely):
            return self._gathered(piece, arrays.from_numpy(stream), arrays.from_numpy(build))
        rows = np.concatenate([stream, lonely])
        order = np.argsort(rows, kind="stable")
        partners = np.concatenate([build, np.zeros(len(lonely), dtype=np.int64)])[order]
        missing = (np.arange(len(rows)) >= len(stream))[order]
        return self._gathered(piece, arrays.from_numpy(rows[order]), arrays.from_numpy(partners, missing=missing))

    def _gathered(self, piece: pa.RecordBatch, stream: pa.Array, build: pa.Array) -> pa.RecordBatch:
        left = self._kernels.take(
            select(piece, self._step.left_output, self._names[: len(self._step.left_output)]), stream
        )
        names = self._names[len(self._step.left_output) :]
        right = self._kernels.take(select(self._built.batch, self._step.right_output, names), build)
        return record_batch([*left.columns, *right.columns], self._names, len(stream))


def _check_single(stream: Rows) -> None:
    # Pairs come in the order of stream rows, so equal neighbours are two matches of one row.
    if len(stream) > 1 and bool((stream[1:] == stream[:-1]).any()):
        raise CardinalityFault("a scalar subquery gave more than one row; add LIMIT 1 or an aggregate such as max()")


def _all_pairs(left: int, right: int) -> tuple[Rows, Rows]:
    stream = np.repeat(np.arange(left, dtype=np.int64), right)
    return stream, np.tile(np.arange(right, dtype=np.int64), left)


def _true_values(array: pa.Array) -> npt.NDArray[np.bool_]:
    assert array.type == pa.bool_(), f"a residual of type {array.type}, not {BOOL}"
    return arrays.is_true(array)
