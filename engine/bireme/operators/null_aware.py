"""The marks of IN: TRUE where an equal row exists, NULL where one might, else FALSE.

Over the build rows that are selected for a stream row (their null-equal keys match, the residual is TRUE), the mark is
the three-valued OR of the comparisons of the remaining keys. One key and no selection is decided by the table alone;
for others the equal rows come first. What they leave open can only be NULL by a build row with NULL among the compared
keys, or, for a stream row that has one itself, by any: tables of just these rows are asked, and pairs are looked at
where more than one key is compared, or none selects.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import JoinTable, Kernels, ProbePlan, Prober, Program
from bireme.data import arrays
from bireme.data.record import record_batch, select
from bireme.data.schema import Schema
from bireme.data.types import BOOL, DataType, Field
from bireme.errors import EngineBug
from bireme.operators.pairs import Rows, StepRows, rows_against_all
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Call, Column
from bireme.plan.physical import ProbeStep
from bireme.plan.relation import JoinKind

if TYPE_CHECKING:
    from bireme.operators.hash_join import PairFinder

_SIDES: Final = ("left", "right")


class _Selection(NamedTuple):
    """Some build rows (`rows`; None: all), how many, and ways to find those that a stream row selects: a table of their
    selecting keys, if there are such keys, and a prober where no pair has to be looked at. `step` adapts to how many
    that are.
    """

    rows: Rows | None
    size: int
    table: JoinTable | None
    prober: Prober | None
    step: StepRows


class NullAwareMarks:
    """Computes the marks of a null-aware `ProbeStep`."""

    def __init__(
        self, step: ProbeStep, built: BuiltTable, finder: PairFinder, stream: Schema, kernels: Kernels,
        states: QueryStates,
    ) -> None:  # fmt: skip
        self._step = step
        self._built = built
        self._finder = finder
        self._kernels = kernels
        self._states = states
        self._selecting = step.null_equal_count
        compared = len(step.keys) - self._selecting
        self._alone = compared == 1 and self._selecting == 0 and step.residual is None
        self._comparers = [_comparer(key.type, kernels) for key in step.keys[self._selecting :]] if compared > 1 else []
        if built.keys is None:
            raise EngineBug("a null-aware join probes a table that was built without its keys")
        self._build_keys = built.keys
        self._residual = None if step.residual is None else states.resolve(step.residual)
        self._equal = None if self._alone else self._prober(built.table, len(step.keys), stream)
        self._stream = stream
        self._lock = threading.Lock()
        self._selections: dict[bool, _Selection] = {}

    def _prober(self, table: JoinTable, keys: int, stream: Schema) -> Prober | None:
        """Marks rows that meet a row of the table for which the residual is TRUE."""
        plan = ProbePlan(
            JoinKind.MARK, keys, self._selecting, False, self._residual, stream, self._built.schema, (), (0,),
            ("mark",), None,
        )  # fmt: skip
        return self._kernels.prober(plan, table)

    def of(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """One mark per row of the batch."""
        keys = self._finder.keys(batch)
        if self._built.batch.num_rows == 0:
            return arrays.from_numpy(np.zeros(batch.num_rows, dtype=np.bool_))
        if self._alone:
            return self._from_table(keys)
        true = self._true(batch, keys)
        has_null = self._has_null(keys)
        unknown = np.zeros(batch.num_rows, dtype=np.bool_)
        for is_ours in (False, True):
            open_rows = np.flatnonzero(~true & (has_null == is_ours)).astype(np.int64)
            if len(open_rows):
                unknown[open_rows] = self._unknown(batch, keys, open_rows, self._selection(is_ours))
        return arrays.from_numpy(true, missing=unknown & ~true)

    def _from_table(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        found = arrays.is_true(self._built.table.contains(keys))
        null = ~arrays.is_valid(keys.column(0))
        return arrays.from_numpy(found, missing=~found if self._built.table.has_null_key else null)

    def _true(self, batch: pa.RecordBatch, keys: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        if self._equal is not None:
            return _marks(self._equal, batch, keys)
        true = np.zeros(batch.num_rows, dtype=np.bool_)
        start = 0
        for piece, stream, _ in self._finder.pieces(batch):
            true[start + stream] = True
            start += piece.num_rows
        return true

    def _has_null(self, keys: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows have NULL among their compared keys."""
        found = np.zeros(keys.num_rows, dtype=np.bool_)
        for index in range(self._selecting, len(self._step.keys)):
            found |= ~arrays.is_valid(keys.column(index))
        return found

    def _selection(self, is_ours: bool) -> _Selection:
        """The build rows that a comparison can be NULL with: of a stream row without NULL, those that have one."""
        with self._lock:
            found = self._selections.get(is_ours)
            if found is None:
                found = self._selections[is_ours] = self._selected_of(is_ours)
            return found

    def _selected_of(self, is_ours: bool) -> _Selection:
        rows: Rows | None = None if is_ours else np.flatnonzero(self._has_null(self._build_keys)).astype(np.int64)
        count = self._built.batch.num_rows if rows is None else len(rows)
        if not count or not self._selecting:
            return _Selection(rows, count, None, None, StepRows())
        batch, keys = self._built.batch, self._build_keys
        if rows is not None:
            chosen = arrays.from_numpy(rows)
            batch, keys = self._kernels.take(batch, chosen), self._kernels.take(keys, chosen)
        names = keys.schema.names[: self._selecting]
        selecting = select(keys, range(self._selecting), names)
        table = self._kernels.join_table(selecting, null_equal_count=self._selecting, rows=batch)
        # With one compared key it is NULL in every pair.
        prober = None if self._comparers else self._prober(table, self._selecting, self._stream)
        return _Selection(rows, count, table, prober, StepRows())

    def _unknown(
        self, batch: pa.RecordBatch, keys: pa.RecordBatch, open_rows: Rows, selection: _Selection
    ) -> npt.NDArray[np.bool_]:
        """Which of the still open rows have a selected build row whose comparison is NULL."""
        if not selection.size:
            return np.zeros(len(open_rows), dtype=np.bool_)
        if selection.prober is not None:
            chosen = arrays.from_numpy(open_rows)
            selecting = select(keys, range(self._selecting), keys.schema.names[: self._selecting])
            return _marks(selection.prober, self._kernels.take(batch, chosen), self._kernels.take(selecting, chosen))
        unknown = np.zeros(batch.num_rows, dtype=np.bool_)
        start = 0
        while start < len(open_rows):
            self._states.check()
            step = rows_against_all(selection.size) if selection.table is None else selection.step.count
            rows = open_rows[start : start + step]
            start += len(rows)
            stream, build = self._selected(keys, rows, selection)
            selection.step.adapt(len(rows), len(stream))
            maybe = self._comparison_is_null(keys, stream, build)
            stream, build = stream[maybe], build[maybe]
            if len(stream):
                held = self._finder.residual_is_true(batch, stream, build)
                unknown[stream[held]] = True
        return unknown[open_rows]

    def _selected(self, keys: pa.RecordBatch, rows: Rows, selection: _Selection) -> tuple[Rows, Rows]:
        """Pairs of some rows of the stream and the build rows that are selected for them."""
        if selection.table is None:
            stream, build = np.repeat(rows, selection.size), np.tile(np.arange(selection.size), len(rows))
        else:
            names = keys.schema.names[: self._selecting]
            wanted = self._kernels.take(select(keys, range(self._selecting), names), arrays.from_numpy(rows))
            found = selection.table.match(wanted)
            stream, build = rows[arrays.to_numpy(found[0])], arrays.to_numpy(found[1])
        return stream, build if selection.rows is None else selection.rows[build]

    def _comparison_is_null(self, keys: pa.RecordBatch, stream: Rows, build: Rows) -> npt.NDArray[np.bool_]:
        """Whether the AND of the compared keys is NULL: some comparison is NULL and none is FALSE."""
        some_null = np.zeros(len(stream), dtype=np.bool_)
        none_false = np.ones(len(stream), dtype=np.bool_)
        left = self._kernels.take(keys, arrays.from_numpy(stream))
        right = self._kernels.take(self._build_keys, arrays.from_numpy(build))
        for index in range(self._selecting, len(self._step.keys)):
            ours, theirs = left.column(index), right.column(index)
            null = ~(arrays.is_valid(ours) & arrays.is_valid(theirs))
            some_null |= null
            if len(self._step.keys) - self._selecting > 1:
                none_false &= null | self._are_equal(index, ours, theirs)
        return some_null & none_false

    def _are_equal(self, key: int, ours: pa.Array, theirs: pa.Array) -> npt.NDArray[np.bool_]:
        equal = self._comparers[key - self._selecting].run(record_batch([ours, theirs], _SIDES, len(ours))).column(0)
        return arrays.is_true(equal)


def _marks(prober: Prober, batch: pa.RecordBatch, keys: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    found = [arrays.is_true(piece.column(0)) for piece in prober.run(batch, keys)]
    return np.concatenate(found) if found else np.zeros(batch.num_rows, dtype=np.bool_)


def _comparer(kind: DataType, kernels: Kernels) -> Program:
    schema = Schema(tuple([Field(name, kind) for name in _SIDES]))
    equal = Call("eq", (Column(0, kind), Column(1, kind)), BOOL)
    return kernels.program(schema, predicate=None, exprs=[equal], names=["equal"])
