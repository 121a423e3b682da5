"""Native group tables, sort and take: thin Python over C++, which does everything per row.

What the results mean is in `backends.base`; how they are made, in native/kernels. Types without native keys or
aggregates (intervals, nested ones) go to the reference backend whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from bireme.backends.base import GroupTable, Settled
from bireme.backends.native import _kernels
from bireme.backends.native.joins import has_order
from bireme.data.key_range import KeyRange
from bireme.data.record import record_batch
from bireme.data.types import DataType, to_arrow
from bireme.errors import EngineBug, Unsupported
from bireme.plan.physical import GroupSpec
from bireme.plan.top_per_key import TopPerKey


class _Tables(Protocol):
    """What takes over where native tables lack a type: the same calls of another backend."""

    def group_table(self, spec: GroupSpec, *, is_lean: bool = False) -> GroupTable: ...

    def merge_groups(
        self, spec: GroupSpec, batches: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]: ...

    def sort_rows(
        self, keys: pa.RecordBatch, *, descending: Sequence[bool], nulls_first: Sequence[bool], limit: int | None
    ) -> pa.Int64Array: ...


class NativeGroupTable:
    """A `GroupTable`. An error in the middle of a batch leaves half of it counted, so the table refuses further use."""

    fallbacks: tuple[str, ...] = ()

    def __init__(self, spec: GroupSpec, *, is_lean: bool = False) -> None:
        self._table = _kernels.group_table(*_parts_of(spec), is_lean)
        self._failed = False

    @property
    def groups(self) -> int:
        return int(self._table.groups)

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)

    def bytes_to_add(self, groups: int) -> int:
        return int(self._table.bytes_to_add(groups))

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        self._run(self._table.update, batch, position)

    def merge(self, states: pa.RecordBatch) -> None:
        self._run(self._table.merge, states)

    def states(self, partitions: int) -> list[pa.RecordBatch]:
        self._must_be_whole()
        return [_named(states, "s") for states in self._table.states(partitions)]

    def settle(self, key: int, stated: KeyRange, final: KeyRange) -> Settled:
        finals, states, outside = self._run(self._table.settle, key, stated, final)
        return Settled(_named(finals, "c"), _named(states, "s"), outside)

    def finish(self) -> pa.RecordBatch:
        return _named(self._run(self._table.finish), "c")

    def _must_be_whole(self) -> None:
        if self._failed:
            raise EngineBug("a group table was used after it had failed")

    def _run(self, call: Any, *args: object) -> Any:
        self._must_be_whole()
        try:
            return call(*args)
        except BaseException:
            self._failed = True
            raise


def group_table(spec: GroupSpec, fallback: Callable[[], _Tables], *, is_lean: bool) -> GroupTable:
    """A native table, or where a type of `spec` has none, one of `fallback`."""
    try:
        return NativeGroupTable(spec, is_lean=is_lean)
    except Unsupported as error:
        table = fallback().group_table(spec)
        table.fallbacks = (f"grouping runs in the reference backend: {error.message}",)
        return table


def merge_groups(
    spec: GroupSpec,
    batches: Sequence[pa.RecordBatch],
    rows: Sequence[pa.RecordBatch],
    fallback: Callable[[], _Tables],
) -> Iterator[pa.RecordBatch]:
    """The groups of a partition, a part at a time; where a type of `spec` has no native table, by `fallback`."""
    try:
        merge = _kernels.group_merge(*_parts_of(spec))
    except Unsupported:
        yield from fallback().merge_groups(spec, batches, rows)
        return
    for batch in batches:
        merge.add_states(batch)
    for batch in rows:
        merge.add_rows(batch)
    while (groups := merge.next()) is not None:
        yield _named(groups, "c")


class NativeFirstValues:
    """A `base.FirstValues`."""

    def __init__(self, top: TopPerKey) -> None:
        kinds = [*(key.type for key in top.keys), top.order.expr.type]
        order = top.order
        self._top = _kernels.top_per_key(_types(kinds), order.descending, order.nulls_first, top.limit, top.is_dense)

    @property
    def keys(self) -> int:
        return self._top.keys

    @property
    def nbytes(self) -> int:
        return self._top.nbytes

    def keep(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array(self._top.keep(batch))


def top_per_key(top: TopPerKey) -> NativeFirstValues | None:
    """What remembers the first values of keys, or None where a type has no native words."""
    try:
        return NativeFirstValues(top)
    except Unsupported:
        return None


def _parts_of(spec: GroupSpec) -> tuple[pa.Schema, list[tuple[str, int, float]], pa.Schema, pa.Schema]:
    steps = spec.aggregates
    calls = [(step.function, -1 if step.arg is None else step.arg, step.fraction) for step in steps]
    arguments = _types([step.type if step.arg_type is None else step.arg_type for step in steps])
    return _types(spec.key_types), calls, arguments, _types([step.type for step in steps])


def sort_rows(
    keys: pa.RecordBatch,
    descending: Sequence[bool],
    nulls_first: Sequence[bool],
    limit: int | None,
    fallback: Callable[[], _Tables],
) -> pa.Int64Array:
    """The order of rows, natively, or where a key's type has no native order, by `fallback`."""
    if not all(has_order(field.type) for field in keys.schema):
        return fallback().sort_rows(keys, descending=descending, nulls_first=nulls_first, limit=limit)
    return pa.array(_kernels.sort_rows(keys, list(descending), list(nulls_first), -1 if limit is None else limit))


def take(batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
    """The rows at the given positions. Dictionaries are shared with `batch`; nested columns go through pyarrow."""
    if rows.type not in (pa.int64(), pa.int32()):
        rows = rows.cast(pa.int64())
    native = [index for index, field in enumerate(batch.schema) if not pa.types.is_nested(field.type)]
    taken = iter(pa.record_batch(_kernels.take(batch, native, rows)).columns)
    arrays = []
    for column in batch.columns:
        if pa.types.is_nested(column.type):
            arrays.append(column.take(rows))
        elif isinstance(column, pa.DictionaryArray):
            arrays.append(pa.DictionaryArray.from_arrays(next(taken), column.dictionary, safe=False))
        else:
            arrays.append(next(taken))
    return record_batch(arrays, batch.schema.names, len(rows))


def _named(exported: Any, prefix: str) -> pa.RecordBatch:
    batch = pa.record_batch(exported)
    return record_batch(batch.columns, [f"{prefix}{index}" for index in range(batch.num_columns)], batch.num_rows)


def _types(kinds: Sequence[DataType]) -> pa.Schema:
    return pa.schema([pa.field("", to_arrow(kind)) for kind in kinds])
