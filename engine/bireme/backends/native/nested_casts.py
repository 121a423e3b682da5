"""Casts in which the reference backend takes nested values apart, and kernels cast the parts.

Rule: what a column becomes is the same; only elements and fields that have kernels are cast by them, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from bireme.backends import base
from bireme.backends.native.formats import format_of
from bireme.backends.native.program import NativeProgram
from bireme.backends.reference import ReferenceKernels
from bireme.backends.reference.casts import cast_array
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType, Field, Kind
from bireme.plan.expr import Cast, Column, Expr


def cast_column(array: pa.Array, source: DataType, target: DataType, safe: bool) -> pa.Array:
    """As `reference.casts.cast_array`."""
    if source is target or not (_has_kernels(source) and _has_kernels(target)):
        return cast_array(array, source, target, safe, cast_column)
    return _program(source, target, safe).run(record_batch([array], [""], len(array))).column(0)


def _has_kernels(kind: DataType) -> bool:
    return format_of(kind) is not None and kind.kind is not Kind.NULL


@lru_cache(maxsize=256)
def _program(source: DataType, target: DataType, safe: bool) -> base.Program:
    """Any number of threads may run it."""
    schema = Schema((Field("", source),))
    exprs = [Cast(Column(0, source), target, safe)]
    return NativeProgram(schema, predicate=None, exprs=exprs, names=("",), reference=_reference)


def _reference(schema: Schema, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]) -> base.Program:
    return ReferenceKernels().program(schema, predicate=predicate, exprs=exprs, names=names)
