"""Programs of the backends, made and run; expressions nested deeper than they can walk are the query's fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels, Program
from bireme.data.schema import Schema
from bireme.errors import Unsupported
from bireme.plan.expr import Expr

_TOO_DEEP: Final = (
    "an expression is nested too deeply to be computed at once; compute a part of it in a subquery or with_columns()"
)


def compiled(
    kernels: Kernels, schema: Schema, *, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]
) -> Program:
    """The program for a predicate and expressions. Raises Unsupported where they are nested too deeply."""
    try:
        return kernels.program(schema, predicate=predicate, exprs=exprs, names=names)
    except RecursionError:
        raise Unsupported(_TOO_DEEP) from None


def run(program: Program, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The outputs of a program for a batch."""
    try:
        return program.run(batch)
    except RecursionError:
        raise Unsupported(_TOO_DEEP) from None
