"""Native join tables, their builds and probes: thin Python over C++, which does everything per row.

What the results mean is in `backends.base`; how they are made, in native/kernels/join_*. What native tables lack (keys
of intervals or nested types, nested columns in the output, residuals without kernels) is said by giving None or by
another backend's table, so that the caller goes the plain way through pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa

from bireme.backends.base import JoinTable, ProbePlan
from bireme.backends.native import _kernels
from bireme.backends.native.program import predicate_kernels
from bireme.backends.native.rows import with_entries
from bireme.data.record import concat, record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType, to_arrow
from bireme.plan.relation import JoinKind

# Kinds by what becomes of the stream's rows; unmatched build rows come from elsewhere.
_NATIVE_KINDS: Final = {
    JoinKind.INNER: "inner", JoinKind.RIGHT: "inner", JoinKind.LEFT: "left", JoinKind.FULL: "left",
    JoinKind.SINGLE: "single", JoinKind.SEMI: "semi", JoinKind.ANTI: "anti", JoinKind.MARK: "mark",
}  # fmt: skip


class _Tables(Protocol):
    """What takes over where a key's type has no native table: the same call of another backend."""

    def join_table(self, keys: pa.RecordBatch, *, null_equal_count: int) -> JoinTable: ...


class NativeJoinTable:
    """A `JoinTable`. It can be probed natively once it has the build side's columns."""

    fallbacks: tuple[str, ...] = ()

    def __init__(self, kernels: _kernels.JoinTable) -> None:
        self.kernels = kernels
        self.columns: pa.RecordBatch | None = None

    @classmethod
    def of_keys(cls, keys: pa.RecordBatch, *, null_equal_count: int) -> NativeJoinTable:
        return cls(_kernels.join_table(keys, null_equal_count))

    def take_rows(self, rows: pa.RecordBatch) -> None:
        """The rows of the build side, for probers, unless there are columns that they cannot read."""
        if all(_is_flat(field.type) for field in rows.schema):
            self.kernels.set_payload(rows)
            self.columns = rows

    @property
    def rows(self) -> int:
        return self.kernels.rows

    @property
    def nbytes(self) -> int:
        return self.kernels.nbytes

    @property
    def has_null_key(self) -> bool:
        return self.kernels.has_null_key

    @property
    def is_unique(self) -> bool:
        return self.kernels.is_unique

    @property
    def form(self) -> str:
        return self.kernels.form

    def match(self, keys: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        probe, build = self.kernels.match(keys)
        return pa.array(probe), pa.array(build)

    def contains(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        return pa.array(self.kernels.contains(keys))

    def key_filter(self) -> _kernels.KeyFilter | None:
        return self.kernels.key_filter()

    @property
    def has_ranges(self) -> bool:
        return self.kernels.has_ranges

    def index_ranges(self, keys: pa.RecordBatch, ranges: pa.RecordBatch, *, is_bounded_above: bool) -> None:
        if all(has_order(field.type) for field in ranges.schema):
            self.kernels.index_ranges(keys, ranges, is_bounded_above)


class NativeJoinBuild:
    """A `JoinBuild`: chunks are kept as they come, and put together by as many threads as ask for work."""

    def __init__(self, schema: Schema, null_equal_count: int) -> None:
        self._schema = schema
        self._null_equal_count = null_equal_count
        self._kernels = _kernels.JoinBuild(null_equal_count)
        self._chunks: list[tuple[int, pa.RecordBatch]] = []
        # What is left to do when all units of work are done; again, by one thread, where that ran out of memory.
        self._lock = threading.Lock()
        self._is_unended = False
        self._table: _kernels.JoinTable | None = None

    def add(self, sequence: int, keys: Sequence[pa.RecordBatch], columns: Sequence[pa.RecordBatch]) -> None:
        chunks = [(sequence, batch) for batch in columns]
        self._kernels.add(sequence, keys, columns)
        self._chunks += chunks

    def give_back(self) -> list[tuple[int, pa.RecordBatch]]:
        chunks, self._chunks = self._chunks, []
        self._kernels = _kernels.JoinBuild(self._null_equal_count)
        return chunks

    def start(self, threads: int) -> int:
        return self._kernels.start(threads)

    def work(self) -> tuple[JoinTable, pa.RecordBatch] | None:
        with self._lock:
            is_unended, self._is_unended = self._is_unended, False
        if not (is_unended or self._kernels.work()):
            return None
        try:
            return self._ended()
        except BaseException:
            self._is_unended = True
            raise

    def _ended(self) -> tuple[JoinTable, pa.RecordBatch]:
        if self._table is None:
            self._table = self._kernels.take_table()
        table, columns = NativeJoinTable(self._table), self._columns()
        table.take_rows(columns)
        self._chunks.clear()
        return table, columns

    def _columns(self) -> pa.RecordBatch:
        """All rows in one batch, in the order of their sequence."""
        payload = self._kernels.take_payload()
        if payload is None:
            chunks = sorted(self._chunks, key=lambda chunk: chunk[0])
            return concat([batch for _, batch in chunks], self._schema)
        return with_entries(*payload, self._schema.names)


class NativeProber:
    """A `Prober`."""

    def __init__(self, plan: ProbePlan, table: NativeJoinTable, residual: _kernels.Program | None) -> None:
        self._left = plan.left_output
        self._names = plan.names
        assert table.columns is not None
        # A mark has no dictionary.
        built = [None if plan.kind is JoinKind.MARK else table.columns.column(index) for index in plan.right_output]
        self._dictionaries = [
            column.dictionary if column is not None and _is_encoded(column) else None for column in built
        ]
        self._kernels = _kernels.prober(
            table.kernels, _NATIVE_KINDS[plan.kind], plan.left_output, plan.right_output, plan.null_aware, residual,
            len(plan.stream), plan.matched, [(bound.key, bound.comparison) for bound in plan.bounds],
        )  # fmt: skip

    def run(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        run = self._kernels.run(stream, keys)
        while (piece := run.next()) is not None:
            rows, _, left, right = piece
            if not rows:
                continue
            arrays = [stream.column(index) for index in self._left]
            if left is not None:
                dictionaries = [column.dictionary if _is_encoded(column) else None for column in arrays]
                arrays = _encoded(pa.record_batch(left), dictionaries)
            if right is not None:
                arrays += _encoded(pa.record_batch(right), self._dictionaries)
            yield record_batch(arrays, self._names, rows)

    def mark_matches(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> None:
        self._kernels.mark_matches(stream, keys)


def join_table(
    keys: pa.RecordBatch, null_equal_count: int, rows: pa.RecordBatch | None, fallback: Callable[[], _Tables]
) -> JoinTable:
    """A native table, or where a key's type has none, one of `fallback`."""
    if not all(has_order(field.type) for field in keys.schema):
        table = fallback().join_table(keys, null_equal_count=null_equal_count)
        table.fallbacks = ("joining by keys of these types runs in the reference backend",)
        return table
    made = NativeJoinTable.of_keys(keys, null_equal_count=null_equal_count)
    if rows is not None:
        made.take_rows(rows)
    return made


def join_build(key_types: Sequence[DataType], schema: Schema, null_equal_count: int) -> NativeJoinBuild | None:
    """A build for keys of these types, or None where they have no native table."""
    if not all(has_order(to_arrow(kind)) for kind in key_types):
        return None
    return NativeJoinBuild(schema, null_equal_count)


def prober(plan: ProbePlan, table: JoinTable) -> NativeProber | None:
    """A prober, or None where the table is not native, or something that the plan asks for is not."""
    if not isinstance(table, NativeJoinTable) or table.columns is None:
        return None
    if plan.null_aware and (plan.key_count != 1 or plan.null_equal_count or plan.residual is not None):
        return None
    if not all(_is_flat(to_arrow(plan.stream[index].type)) for index in plan.left_output):
        return None
    residual = None
    if plan.residual is not None:
        residual = predicate_kernels(plan.stream.concat(plan.build), plan.residual)
        if residual is None:
            return None
    return NativeProber(plan, table, residual)


def has_order(kind: pa.DataType) -> bool:
    """Whether native kernels compare values of this layout: all but nested ones, and intervals, equal in many ways."""
    return _is_flat(kind) and kind != pa.month_day_nano_interval()


def _is_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _is_encoded(column: pa.Array) -> bool:
    return isinstance(column, pa.DictionaryArray)


def _encoded(batch: pa.RecordBatch, dictionaries: Sequence[pa.Array | None]) -> list[pa.Array]:
    """The columns, with codes that left the kernels as plain integers put to the dictionaries they belong to."""
    return [
        column if dictionary is None else pa.DictionaryArray.from_arrays(column, dictionary, safe=False)
        for column, dictionary in zip(batch.columns, dictionaries, strict=True)
    ]
