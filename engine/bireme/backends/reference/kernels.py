"""The reference backend: the meaning of every kernel, plainly, in pyarrow and numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bireme.backends.base import GroupTable, JoinTable, ProbePlan, Program, RowFilter, WindowStream
from bireme.backends.hash import hash_rows
from bireme.backends.reference.casts import CastColumn
from bireme.backends.reference.expressions import Scope, check_supported, kept_rows
from bireme.backends.reference.groups import ReferenceGroupTable
from bireme.backends.reference.joins import ReferenceJoinTable
from bireme.backends.reference.keys import sort_rows
from bireme.backends.reference.rows import split, take_rows
from bireme.backends.reference.vectors import nulls_of
from bireme.backends.reference.window_stream import window_stream
from bireme.backends.reference.windows import compute_window
from bireme.data.hash_range import ALL_HASHES, HashRange
from bireme.data.record import joined, record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.plan.expr import Column, Expr, WindowCall
from bireme.plan.physical import GroupSpec
from bireme.plan.top_per_key import TopPerKey


class ReferenceProgram:
    """A filter and projection, interpreted."""

    def __init__(
        self, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str], cast: CastColumn | None
    ) -> None:
        self._cast = cast
        self._predicate = predicate
        self._exprs = tuple(exprs)
        self._names = tuple(names)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        return ()

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows where the predicate is TRUE, with the expressions computed for them."""
        columns: list[pa.Array] = batch.columns
        rows = batch.num_rows
        if self._predicate is not None:
            kept = kept_rows(self._predicate, columns, rows, self._cast)
            if len(kept) < rows:
                used = take_rows(batch, kept)
                columns, rows = used.columns, len(kept)
        scope = Scope(columns, rows, cast=self._cast)
        # A column that is only passed on keeps its dictionary.
        arrays = [columns[e.index] if isinstance(e, Column) else scope.evaluate(e) for e in self._exprs]
        return record_batch(arrays, self._names, rows)


class ReferenceKernels:
    """Slow but plain kernels; see `backends.base.Kernels` for what each one means. Where casts take nested values
    apart, `cast` casts the parts, if it is given.
    """

    def __init__(self, cast: CastColumn | None = None) -> None:
        self._cast = cast

    @property
    def name(self) -> str:
        return "reference"

    @property
    def decodes(self) -> bool:
        return False

    def window_fallbacks(self, calls: Sequence[WindowCall]) -> tuple[str, ...]:
        return ()

    def program(
        self, schema: Schema, *, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]
    ) -> Program:
        for expr in exprs:
            check_supported(expr)
        if predicate is not None:
            check_supported(predicate)
        return ReferenceProgram(predicate, exprs, names, self._cast)

    def scan(
        self,
        schema: Schema,
        *,
        predicate: Expr | None,
        exprs: Sequence[Expr],
        names: Sequence[str],
        filters: Sequence[RowFilter],
        is_late: bool,
        has_row_numbers: bool = False,
        bound_columns: Sequence[int] = (),
    ) -> None:
        """pyarrow decodes; programs do the rest."""

    def group_table(self, spec: GroupSpec, *, is_lean: bool = False) -> GroupTable:
        return ReferenceGroupTable(spec)

    def merge_groups(
        self, spec: GroupSpec, batches: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        table = ReferenceGroupTable(spec)
        for batch in batches:
            table.merge(batch)
        for batch in rows:
            table.update(batch, 0)
        yield table.finish()

    def join_table(
        self, keys: pa.RecordBatch, *, null_equal_count: int, rows: pa.RecordBatch | None = None
    ) -> JoinTable:
        return ReferenceJoinTable(keys, null_equal_count)

    def top_per_key(self, top: TopPerKey) -> None:
        """Windows take all rows."""

    def join_build(self, key_types: Sequence[DataType], schema: Schema, *, null_equal_count: int) -> None:
        """Tables are built from all keys at once."""

    def key_filter_build(self, nbytes: int) -> None:
        """Scans go without."""

    def prober(self, plan: ProbePlan, table: JoinTable) -> None:
        """Joins go through pairs."""

    def hash_rows(self, batch: pa.RecordBatch, columns: Sequence[int]) -> pa.UInt64Array:
        return pa.array(hash_rows([batch.column(index) for index in columns], batch.num_rows), pa.uint64())

    def partition(
        self, batch: pa.RecordBatch, columns: Sequence[int], partitions: int, within: HashRange = ALL_HASHES
    ) -> list[pa.RecordBatch]:
        hashes = hash_rows([batch.column(index) for index in columns], batch.num_rows)
        return split(batch, hashes, partitions, within)

    def split_by_ranges(
        self,
        batch: pa.RecordBatch,
        keys: pa.RecordBatch,
        splitters: pa.RecordBatch,
        *,
        descending: Sequence[bool],
        nulls_first: Sequence[bool],
    ) -> list[pa.RecordBatch]:
        columns = joined([splitters, keys]).columns
        order = np.asarray(sort_rows(columns, descending, nulls_first, splitters.num_rows + keys.num_rows))
        is_row = order >= splitters.num_rows
        ranges = np.empty(keys.num_rows, np.int64)
        # Splitters come first among equal ones, since sorting is stable.
        ranges[order[is_row] - splitters.num_rows] = np.cumsum(~is_row)[is_row]
        parts = [np.flatnonzero(ranges == part) for part in range(splitters.num_rows + 1)]
        return [self.take(batch, pa.array(rows)) for rows in parts]

    def joined(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return joined(batches)

    def take(self, batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
        missing = nulls_of(rows)
        positions = np.asarray(rows.cast(pa.int64()).fill_null(0), np.int64)
        return take_rows(batch, positions, missing)

    def sort_rows(
        self, keys: pa.RecordBatch, *, descending: Sequence[bool], nulls_first: Sequence[bool], limit: int | None
    ) -> pa.Int64Array:
        order = sort_rows(keys.columns, descending, nulls_first, keys.num_rows)
        return pa.array(order[:limit], pa.int64())

    def window(self, batch: pa.RecordBatch, schema: Schema, calls: Sequence[WindowCall]) -> list[pa.Array]:
        return [compute_window(batch, call) for call in calls]

    def window_stream(self, schema: Schema, calls: Sequence[WindowCall]) -> WindowStream | None:
        return window_stream(calls)
