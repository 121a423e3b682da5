"""Keeping rows and computing columns: one compiled program a step."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bireme.backends.base import Kernels, Program
from bireme.data.record import select
from bireme.data.schema import Schema
from bireme.operators import programs
from bireme.operators.states import QueryStates
from bireme.plan.expr import Column, Expr
from bireme.plan.physical import ProgramStep


class FilterProject:
    """A `ProgramStep` at work. Steps that only choose columns copy nothing and need no program."""

    def __init__(self, step: ProgramStep, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._names = step.names
        self._columns = _plain_columns(step.exprs) if step.predicate is None else None
        self._program: Program | None = None
        if self._columns is None:
            predicate = None if step.predicate is None else states.resolve(step.predicate)
            exprs = [states.resolve(expr) for expr in step.exprs]
            self._program = programs.compiled(kernels, schema, predicate=predicate, exprs=exprs, names=step.names)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        return () if self._program is None else self._program.fallbacks

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._program is None:
            assert self._columns is not None
            return select(batch, self._columns, self._names)
        return programs.run(self._program, batch)


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
