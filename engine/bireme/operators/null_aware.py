"""The marks of IN: TRUE where an equal row exists, NULL where one might, else FALSE.

Over the build rows that are selected for a stream row (their null-equal keys match, the residual is TRUE), the mark is
the three-valued OR of the comparisons of the remaining keys. One key and no selection is decided by the table alone;
everything else looks at pairs, but only for stream rows that no equal row has settled already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import JoinTable, Kernels, Program
from bireme.data import arrays
from bireme.data.record import record_batch, select
from bireme.data.schema import Schema
from bireme.data.types import BOOL, DataType, Field
from bireme.errors import EngineBug
from bireme.operators.states import BuiltTable
from bireme.plan.expr import Call, Column
from bireme.plan.physical import ProbeStep

if TYPE_CHECKING:
    from bireme.operators.hash_join import PairFinder, Rows

_PAIRS_MAX: Final = 1_048_576
_SIDES: Final = ("left", "right")


class NullAwareMarks:
    """Computes the marks of a null-aware `ProbeStep`."""

    def __init__(self, step: ProbeStep, built: BuiltTable, finder: PairFinder, kernels: Kernels) -> None:
        self._step = step
        self._built = built
        self._finder = finder
        self._kernels = kernels
        self._selecting = step.null_equal_count
        compared = len(step.keys) - self._selecting
        self._alone = compared == 1 and self._selecting == 0 and step.residual is None
        self._comparers = [_comparer(key.type, kernels) for key in step.keys[self._selecting :]] if compared > 1 else []
        self._selector: JoinTable | None = None
        if built.keys is None:
            raise EngineBug("a null-aware join probes a table that was built without its keys")
        self._build_keys = built.keys
        if self._selecting:
            names = built.keys.schema.names[: self._selecting]
            columns = select(built.keys, range(self._selecting), names)
            self._selector = kernels.join_table(columns, null_equal_count=self._selecting)

    def of(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """One mark per row of the batch."""
        keys = self._finder.keys(batch)
        if self._built.batch.num_rows == 0:
            return arrays.from_numpy(np.zeros(batch.num_rows, dtype=np.bool_))
        if self._alone:
            return self._from_table(keys)
        true = self._true(batch)
        unknown = self._unknown(batch, keys, np.flatnonzero(~true).astype(np.int64))
        return arrays.from_numpy(true, missing=unknown & ~true)

    def _from_table(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        found = arrays.is_true(self._built.table.contains(keys))
        null = ~arrays.is_valid(keys.column(0))
        return arrays.from_numpy(found, missing=~found if self._built.table.has_null_key else null)

    def _true(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        true = np.zeros(batch.num_rows, dtype=np.bool_)
        start = 0
        for piece, stream, _ in self._finder.pieces(batch):
            true[start + stream] = True
            start += piece.num_rows
        return true

    def _unknown(self, batch: pa.RecordBatch, keys: pa.RecordBatch, open_rows: Rows) -> npt.NDArray[np.bool_]:
        """Which of the still open rows have a selected build row whose comparison is NULL."""
        unknown = np.zeros(batch.num_rows, dtype=np.bool_)
        build_rows = self._built.batch.num_rows
        step = len(open_rows) if self._selector is not None else max(1, _PAIRS_MAX // build_rows)
        for start in range(0, len(open_rows), max(1, step)):
            rows = open_rows[start : start + step]
            stream, build = self._selected(keys, rows)
            maybe = self._comparison_is_null(keys, stream, build)
            stream, build = stream[maybe], build[maybe]
            if len(stream):
                held = self._finder.residual_is_true(batch, stream, build)
                unknown[stream[held]] = True
        return unknown

    def _selected(self, keys: pa.RecordBatch, rows: Rows) -> tuple[Rows, Rows]:
        if self._selector is None:
            count = self._built.batch.num_rows
            return np.repeat(rows, count), np.tile(np.arange(count, dtype=np.int64), len(rows))
        names = keys.schema.names[: self._selecting]
        wanted = self._kernels.take(select(keys, range(self._selecting), names), arrays.from_numpy(rows))
        found = self._selector.match(wanted)
        return rows[arrays.to_numpy(found[0])], arrays.to_numpy(found[1])

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
                none_false &= null | self._equal(index, ours, theirs)
        return some_null & none_false

    def _equal(self, key: int, ours: pa.Array, theirs: pa.Array) -> npt.NDArray[np.bool_]:
        equal = self._comparers[key - self._selecting].run(record_batch([ours, theirs], _SIDES, len(ours))).column(0)
        return arrays.is_true(equal)


def _comparer(kind: DataType, kernels: Kernels) -> Program:
    schema = Schema(tuple([Field(name, kind) for name in _SIDES]))
    equal = Call("eq", (Column(0, kind), Column(1, kind)), BOOL)
    return kernels.program(schema, predicate=None, exprs=[equal], names=["equal"])
