"""Expressions evaluated by a backend, row by row where the batch as a whole fails, and compared with an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data.record import plain
from bireme.data.schema import Schema
from bireme.data.types import to_arrow
from bireme.errors import DataError
from bireme.plan.expr import Column, Expr
from support.duck import RELATIVE_ERROR_MAX, Duck, difference, values_of


@dataclass(frozen=True)
class Outcome:
    """What an expression gave: values of the rows in `good`; the rows in `bad` raised a DataError."""

    good: list[int]
    values: list[Any]
    bad: list[int]


def columns_of(schema: Schema) -> list[Column]:
    return [Column(index, kind) for index, kind in enumerate(schema.types)]


def evaluate(backend: Kernels, expr: Expr, batch: pa.RecordBatch) -> Outcome:
    """The outcome of one expression over a batch."""
    program = backend.program(Schema.from_arrow(batch.schema), predicate=None, exprs=[expr], names=["x"])
    good: list[int] = []
    values: list[Any] = []
    bad: list[int] = []

    def run(start: int, stop: int) -> None:
        """Evaluates some rows at once, or each half of them where that fails."""
        try:
            values.extend(_values(program.run(batch.slice(start, stop - start)), expr))
            good.extend(range(start, stop))
        except DataError:
            if stop - start == 1:
                bad.append(start)
                return
            failures = len(bad)
            run(start, (start + stop) // 2)
            run((start + stop) // 2, stop)
            assert len(bad) > failures, "the rows fail together, but none of them alone"

    run(0, batch.num_rows)
    return Outcome(good, values, bad)


def _values(answer: pa.RecordBatch, expr: Expr) -> list[Any]:
    array = plain(answer.column(0))
    assert array.type == to_arrow(expr.type), f"{array.type} for {expr.type}"
    array.validate(full=True)
    return values_of(array)


def check_against_duck(
    backend: Kernels,
    duck: Duck,
    expr: Expr,
    sql: str,
    batch: pa.RecordBatch,
    *,
    among: Sequence[str] = (),
    error_max: float = RELATIVE_ERROR_MAX,
) -> None:
    """Asserts that values, NULLs and errors are those of DuckDB, which is asked for all expressions `among` at once."""
    outcome = evaluate(backend, expr, batch)
    wanted = duck.tried(among or [sql], batch)[sql]
    found = difference(outcome.values, [wanted[row] for row in outcome.good], error_max)
    assert not found, f"{sql}: {found}, {_where(found, batch.take(pa.array(outcome.good, pa.int64())))}"
    fine = [row for row in outcome.bad if wanted[row] is not None]
    assert not fine, f"{sql}: an error here, but none for {batch.slice(fine[0], 1).to_pylist()}"
    # A NULL where no argument is NULL may be an error there.
    doubtful = [row for row, value in zip(outcome.good, outcome.values, strict=True) if value is None]
    inputs = batch.to_pylist() if doubtful else []
    doubtful = [row for row in doubtful if None not in inputs[row].values()]
    if doubtful:
        rows = batch.take(pa.array(doubtful, pa.int64()))
        try:
            duck.column(sql, rows)
        except duckdb.Error as error:
            raise AssertionError(f"{sql}: no error here for {_failing(duck, sql, rows)}, but: {error}") from None


def _failing(duck: Duck, sql: str, batch: pa.RecordBatch) -> Any:
    for row in range(batch.num_rows):
        try:
            duck.column(sql, batch.slice(row, 1))
        except duckdb.Error:
            return batch.slice(row, 1).to_pylist()
    return "any row alone"


def _where(found: str, batch: pa.RecordBatch) -> Any:
    if not found.startswith("row "):
        return ""
    return batch.slice(int(found.split()[1].rstrip(":")), 1).to_pylist()


def check_against_backend(backend: Kernels, reference: Kernels, expr: Expr, batch: pa.RecordBatch) -> None:
    """Asserts that values, NULLs and errors are those of the reference backend."""
    got, wanted = evaluate(backend, expr, batch), evaluate(reference, expr, batch)
    assert got.bad == wanted.bad, f"{expr}: errors in rows {got.bad}, not {wanted.bad}"
    found = difference(got.values, wanted.values)
    assert not found, f"{expr}: {found}, {_where(found, batch.take(pa.array(got.good, pa.int64())))}"
