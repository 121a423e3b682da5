"""The native backend: C++ kernels, every CPU's default.

What has no native kernel runs in the reference backend, visibly: objects list it in `fallbacks`. Expressions are in
`program` and `lowering`; groups, sort and take in `tables`; joins in `joins`; the C++ itself, in native/.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

from bireme.backends import base
from bireme.backends.native import _kernels, joins, rows, tables, windows
from bireme.backends.native.program import NativeProgram
from bireme.backends.native.scan import NativeScan
from bireme.data.hash_range import ALL_HASHES, HashRange
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.errors import Unsupported
from bireme.plan.expr import Expr, WindowCall
from bireme.plan.physical import GroupSpec
from bireme.plan.top_per_key import TopPerKey
from bireme.plan.window_order import by_order, keys_of
from bireme.units import MIB

# What may be taken of pyarrow's pool before a thread has it give back what it keeps, which takes up to a millisecond.
_LENT_BYTES_MAX: Final = MIB


class NativeKernels:
    """`base.Kernels` in C++. It has no state, so one object serves any number of threads."""

    name = "native"
    decodes = True

    def _reference(self) -> base.Kernels:
        """Made when it is first needed: most queries need none of it."""
        from bireme.backends.native.nested_casts import cast_column
        from bireme.backends.reference import ReferenceKernels

        return ReferenceKernels(cast_column)

    def program(
        self, schema: Schema, *, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]
    ) -> base.Program:
        return NativeProgram(schema, predicate=predicate, exprs=exprs, names=names, reference=self._reference_program)

    def _reference_program(
        self, schema: Schema, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]
    ) -> base.Program:
        return self._reference().program(schema, predicate=predicate, exprs=exprs, names=names)

    def scan(
        self,
        schema: Schema,
        *,
        predicate: Expr | None,
        exprs: Sequence[Expr],
        names: Sequence[str],
        filters: Sequence[base.RowFilter],
        is_late: bool,
        has_row_numbers: bool = False,
        bound_columns: Sequence[int] = (),
    ) -> base.Scan:
        return NativeScan(
            schema,
            predicate=predicate,
            exprs=exprs,
            names=names,
            filters=filters,
            is_late=is_late,
            has_row_numbers=has_row_numbers,
            bound_columns=bound_columns,
            reference=self._reference_program,
        )

    def group_table(self, spec: GroupSpec, *, is_lean: bool = False) -> base.GroupTable:
        return tables.group_table(spec, self._reference, is_lean=is_lean)

    def merge_groups(
        self, spec: GroupSpec, batches: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return tables.merge_groups(spec, batches, rows, self._reference)

    def join_table(
        self, keys: pa.RecordBatch, *, null_equal_count: int, rows: pa.RecordBatch | None = None
    ) -> base.JoinTable:
        return joins.join_table(keys, null_equal_count, rows, self._reference)

    def join_build(
        self, key_types: Sequence[DataType], schema: Schema, *, null_equal_count: int
    ) -> base.JoinBuild | None:
        return joins.join_build(key_types, schema, null_equal_count)

    def top_per_key(self, top: TopPerKey) -> base.FirstValues | None:
        return tables.top_per_key(top)

    def key_filter_build(self, nbytes: int) -> base.KeyFilterBuild | None:
        return _kernels.KeyFilterBuild(nbytes)

    def prober(self, plan: base.ProbePlan, table: base.JoinTable) -> base.Prober | None:
        return joins.prober(plan, table)

    def hash_rows(self, batch: pa.RecordBatch, columns: Sequence[int]) -> pa.UInt64Array:
        return pa.array(_kernels.hash_rows(batch, list(columns)))

    def partition(
        self,
        batch: pa.RecordBatch,
        columns: Sequence[int],
        partitions: int,
        within: HashRange = ALL_HASHES,
    ) -> list[pa.RecordBatch]:
        if partitions == 1:
            return [batch]
        try:
            parts = _kernels.partition(batch, list(columns), partitions, *within)
        except Unsupported:
            return self._partition_by_take(batch, columns, partitions, within)
        return _like(batch, parts)

    def split_by_ranges(
        self,
        batch: pa.RecordBatch,
        keys: pa.RecordBatch,
        splitters: pa.RecordBatch,
        *,
        descending: Sequence[bool],
        nulls_first: Sequence[bool],
    ) -> list[pa.RecordBatch]:
        try:
            return _like(batch, _kernels.split_by_ranges(batch, keys, splitters, descending, nulls_first))
        except Unsupported:
            return self._reference().split_by_ranges(
                batch, keys, splitters, descending=descending, nulls_first=nulls_first
            )

    def _partition_by_take(
        self, batch: pa.RecordBatch, columns: Sequence[int], partitions: int, within: HashRange
    ) -> list[pa.RecordBatch]:
        """For batches with columns that C++ does not copy (nested ones)."""
        exported, offsets = _kernels.partition_positions(batch, list(columns), partitions, *within)
        positions = pa.array(exported)
        return [tables.take(batch, positions.slice(start, end - start)) for start, end in pairwise(offsets)]

    def joined(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return rows.joined(batches)

    def take(self, batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
        return tables.take(batch, rows)

    def sort_rows(
        self, keys: pa.RecordBatch, *, descending: Sequence[bool], nulls_first: Sequence[bool], limit: int | None
    ) -> pa.Int64Array:
        return tables.sort_rows(keys, descending, nulls_first, limit, self._reference)

    def window_fallbacks(self, calls: Sequence[WindowCall]) -> tuple[str, ...]:
        return windows.fallbacks(calls)

    def window(self, batch: pa.RecordBatch, schema: Schema, calls: Sequence[WindowCall]) -> list[pa.Array]:
        def evaluate(exprs: Sequence[Expr]) -> pa.RecordBatch:
            names = [f"k{index}" for index in range(len(exprs))]
            return self.program(schema, predicate=None, exprs=exprs, names=names).run(batch)

        values = windows.native_values(calls, evaluate)
        others = [call for call in calls if call not in values]
        if others:
            values |= zip(others, self._reference().window(batch, schema, others), strict=True)
        return [values[call] for call in calls]

    def window_stream(self, schema: Schema, calls: Sequence[WindowCall]) -> base.WindowStream | None:
        orders = list(by_order(calls))
        if len(orders) != 1:
            return None
        exprs = [key.expr for key in keys_of(orders[0])]
        keys = self.program(schema, predicate=None, exprs=exprs, names=[f"k{index}" for index in range(len(exprs))])
        # It loads much of the reference backend, which few queries need.
        from bireme.backends.reference.window_stream import window_stream

        return window_stream(calls, windows.beginnings(orders[0], keys.run))


def pool_quota() -> _kernels.PoolQuota:
    """How much of memory that nobody needs the kernels may keep for reuse, for one who counts it."""
    return _kernels.PoolQuota()


def use_small_pages() -> None:
    """Has pyarrow's allocator do without huge pages: with them it holds 2 MiB for each size of block on each thread."""
    _kernels.use_small_pages(pa.allocate_buffer(1).address)


class BufferMeter:
    """What the kernels take in buffers, on the thread that asks. Where memory `is_short`, a thread that took much of
    pyarrow's pool has the pool give back at once what it keeps for it.
    """

    def __init__(self, *, is_short: bool = False) -> None:
        self._is_short = is_short
        self._pool = pa.default_memory_pool()
        self._lent = threading.local()

    def start(self) -> None:
        _kernels.start_meter()

    def peak(self) -> int:
        return _kernels.metered_peak()

    def rest(self) -> None:
        # Always asked: it also has malloc give back what it keeps.
        is_due = _kernels.tidy_is_due()
        lent = self._pool.total_bytes_allocated()
        if is_due or (self._is_short and lent - getattr(self._lent, "before", 0) > _LENT_BYTES_MAX):
            self._lent.before = lent
            self._pool.release_unused()


def _is_encoded(column: pa.Array) -> bool:
    return isinstance(column, pa.DictionaryArray)


def _like(batch: pa.RecordBatch, parts: Sequence[_kernels.Exported]) -> list[pa.RecordBatch]:
    """Exported parts of a batch, with its names and its dictionaries."""
    dictionaries = [column.dictionary if _is_encoded(column) else None for column in batch.columns]
    if all(dictionary is None for dictionary in dictionaries):
        return [_renamed(pa.record_batch(part), batch) for part in parts]
    return [_with_dictionaries(pa.record_batch(part), batch, dictionaries) for part in parts]


def _renamed(part: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
    return record_batch(part.columns, batch.schema.names, part.num_rows)


def _with_dictionaries(
    part: pa.RecordBatch, batch: pa.RecordBatch, dictionaries: Sequence[pa.Array | None]
) -> pa.RecordBatch:
    """Codes that left the kernels as plain integers, with the dictionaries they belong to."""
    arrays = [
        column if dictionary is None else pa.DictionaryArray.from_arrays(column, dictionary, safe=False)
        for column, dictionary in zip(part.columns, dictionaries, strict=True)
    ]
    return record_batch(arrays, batch.schema.names, part.num_rows)


__all__ = ["BufferMeter", "NativeKernels", "pool_quota", "use_small_pages"]
