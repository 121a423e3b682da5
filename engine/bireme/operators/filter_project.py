"""Keeping rows and computing columns: one compiled program a step.

Where what is computed of the rows of a batch would take more memory than there is, the batch is taken in halves, and
these again, down to single rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels, Program
from bireme.data.record import halves, select
from bireme.data.schema import Schema
from bireme.errors import TooMuchAtOnce
from bireme.operators import programs
from bireme.operators.states import QueryStates
from bireme.plan.expr import Column, Expr
from bireme.plan.physical import ProgramStep

IN_HALVES: Final = "what is computed of a batch takes much memory, and was computed of fewer rows at once"


class FilterProject:
    """A `ProgramStep` at work. Steps that only choose columns copy nothing and need no program."""

    def __init__(self, step: ProgramStep, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._names = step.names
        self._columns = _plain_columns(step.exprs) if step.predicate is None else None
        self._program: Program | None = None
        self._notes: tuple[str, ...] = ()
        if self._columns is None:
            predicate = None if step.predicate is None else states.resolve(step.predicate)
            exprs = [states.resolve(expr) for expr in step.exprs]
            self._program = programs.compiled(kernels, schema, predicate=predicate, exprs=exprs, names=step.names)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        return self._notes if self._program is None else (*self._notes, *self._program.fallbacks)

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._program is None:
            assert self._columns is not None
            return select(batch, self._columns, self._names)
        return programs.run(self._program, batch)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """As `run`, in several batches where one would take too much memory."""
        try:
            made = self.run(batch)
        except TooMuchAtOnce:
            if batch.num_rows < 2:
                raise
            made = None
        if made is not None:
            yield made
            return
        self._notes = (IN_HALVES,)
        for half in halves(batch):
            yield from self.pieces(half)


class KeyColumns:
    """Computes key columns from batches."""

    def __init__(self, keys: Sequence[Expr], schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        names = tuple([f"k{index}" for index in range(len(keys))])
        self._step = FilterProject(ProgramStep(None, tuple(keys), names), schema, kernels, states)

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._step.run(batch)


def _plain_columns(exprs: Sequence[Expr]) -> list[int] | None:
    columns = [expr.index for expr in exprs if isinstance(expr, Column)]
    return columns if len(columns) == len(exprs) else None
