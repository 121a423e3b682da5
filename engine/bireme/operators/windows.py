"""Windows over a partition: all of it at once, or, where it is larger than memory, after a cut, or in its order.

A cut spreads a partition's batches over finer ranges of the hash of what all windows are partitioned by. What no cut
makes smaller is mostly one window: its rows are cut by its order instead, each part is brought into order, and batches
then come one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels, WindowStream
from bireme.data import arrays
from bireme.data.hash_range import HASH_PARTS_MAX, HashRange, partitions_of
from bireme.data.record import empty, longer, record_batch, select, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.operators.base import ordered_parts
from bireme.operators.key_ranges import KeyOrder
from bireme.operators.order import Order
from bireme.operators.parts import gathered
from bireme.operators.states import QueryStates
from bireme.plan.expr import Aggregation, Column, SortKey, WindowCall
from bireme.plan.physical import WindowStep
from bireme.plan.window_order import by_order, keys_of

# Places and frames of rows take more than most rows themselves.
_PIECE_ROWS_MAX: Final = 32_768


def resolved_call(call: WindowCall, states: QueryStates) -> WindowCall:
    """The call with the scalars of finished pipelines in place of their names."""
    resolve = states.resolve
    inner = call.call
    aggregation = Aggregation(
        inner.function,
        tuple([resolve(arg) for arg in inner.args]),
        inner.type,
        inner.distinct,
        None if inner.filter is None else resolve(inner.filter),
        tuple([SortKey(resolve(key.expr), key.descending, key.nulls_first) for key in inner.order]),
    )
    order = tuple([SortKey(resolve(key.expr), key.descending, key.nulls_first) for key in call.order])
    partition = tuple([resolve(expr) for expr in call.partition])
    return WindowCall(aggregation, partition, order, call.frame, call.ignore_nulls)


class Windows:
    """A `WindowStep` at work, with its calls as they are once scalars are known."""

    def __init__(
        self, step: WindowStep, calls: Sequence[WindowCall], schema: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        self._step = step
        self._calls = calls
        self._schema = schema
        self._kernels = kernels
        self._states = states
        self._names = (*schema.names, *step.names)
        self._ordered: OrderedWindows | None = None
        self._is_ordered_known = False

    @property
    def can_cut(self) -> bool:
        return bool(self._step.keys)

    @property
    def ordered(self) -> OrderedWindows | None:
        """What takes partitions in their order, a batch at a time, where that can be done. The loop asks first, before
        a task can need it.
        """
        if not self._is_ordered_known:
            self._ordered = self._in_order()
            self._is_ordered_known = True
        return self._ordered

    @property
    def nbytes(self) -> int:
        return 0 if self._ordered is None else self._ordered.nbytes

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A whole partition."""
        found = list(batches)
        batch = self._kernels.joined(found) if found else empty(self._schema)
        added = self._kernels.window(batch, self._schema, self._calls)
        yield record_batch([*batch.columns, *added], self._names, batch.num_rows)

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a partition, each with the part of its range that it belongs to."""
        return gathered(self._pieces(batches, within, into), self._kernels)

    def _pieces(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in map(with_own_dictionaries, batches):
            self._states.check()
            yield from enumerate(self._kernels.partition(batch, self._step.keys, into, within))

    def _in_order(self) -> OrderedWindows | None:
        if self._step.sample is None:
            return None
        stream = self._kernels.window_stream(self._schema, self._calls)
        if stream is None:
            return None
        return OrderedWindows(self._step, self._calls, stream, self._schema, self._kernels, self._states)


class OrderedWindows:
    """A partition in the order of its windows: cutting it into parts of that order, and taking those one by one.

    Parts are numbered as they follow each other; every other one has equal keys in all its rows, so is in order as it
    is. Rows with equal keys stay in the order in which they came.
    """

    def __init__(
        self,
        step: WindowStep,
        calls: Sequence[WindowCall],
        stream: WindowStream,
        schema: Schema,
        kernels: Kernels,
        states: QueryStates,
    ) -> None:
        assert step.sample is not None
        (order,) = by_order(calls)
        keys = keys_of(order)
        self._kernels = kernels
        self._states = states
        self._names = (*schema.names, *step.names)
        self._stream = stream
        self._has_keys = bool(keys)
        self._keys = KeyOrder(keys, schema, kernels, states)
        self._order = Order(keys, schema, kernels, states)
        self._hashed = [order[0].index(Column(key, schema[key].type)) for key in step.keys]
        self._sample = states.sample(step.sample)
        self._lock = threading.Lock()
        self._sampled: dict[HashRange, pa.RecordBatch] = {}
        self._splitters: dict[tuple[HashRange, int], _Splitters] = {}
        self._surveys: dict[int, list[Any]] = {}
        self._is_streaming = False

    @property
    def nbytes(self) -> int:
        return self._stream.nbytes

    # --------------------------------------------------------------------------------------------- cutting

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a part, each with the part of it that they belong to."""
        splitters = self._known_splitters(within, into)
        return gathered(self._pieces(batches, splitters), self._kernels)

    def _pieces(self, batches: Sequence[pa.RecordBatch], splitters: _Splitters) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in map(with_own_dictionaries, batches):
            self._states.check()
            yield from self._parted(batch, self._keys.keys_of(batch), splitters)

    def _parted(
        self, batch: pa.RecordBatch, keys: pa.RecordBatch, splitters: _Splitters
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        if splitters.keys is None:
            yield 0 if keys.num_columns else 1, batch
            return
        if not any(splitters.is_common):
            for number, piece in enumerate(self._keys.cut(batch, keys, splitters.keys)):
                yield 2 * number, piece
            return
        # Keys go with the rows, since some ranges are looked at again.
        both = record_batch([*batch.columns, *keys.columns], [*batch.schema.names, *keys.schema.names], batch.num_rows)
        width = batch.num_columns
        for number, piece in enumerate(self._keys.cut(both, keys, splitters.keys)):
            rows = select(piece, range(width), batch.schema.names)
            if number == 0 or not splitters.is_common[number - 1]:
                yield 2 * number, rows
                continue
            own = select(piece, range(width, piece.num_columns), keys.schema.names)
            further, equal = self._keys.cut(rows, own, splitters.keys.slice(number - 1, 1), is_reversed=True)
            yield 2 * number - 1, equal
            yield 2 * number, further

    def _known_splitters(self, within: HashRange, into: int) -> _Splitters:
        with self._lock:
            found = self._splitters.get((within, into))
            if found is None:
                sampled = self._sample_of(within)
                found = self._splitters_of(sampled, into)
                parts = {} if sampled is None else dict(self._parted(sampled, sampled, found))
                # Changes only now: what found no memory so far is done again.
                self._splitters[within, into] = found
                self._sampled.pop(within, None)
                total = ordered_parts(into)
                self._sampled.update({within.part(at, total): part for at, part in parts.items()})
            return found

    def _sample_of(self, within: HashRange) -> pa.RecordBatch | None:
        """The keys that were noted of a part, which is cut now, or of a partition."""
        found = self._sampled.get(within)
        if found is not None:
            return found
        keys = self._noted()
        if keys is None or within.total == 1:
            return keys
        if within.total > HASH_PARTS_MAX:
            return None  # no range of hashes, but of an order that nothing was noted of
        hashes = arrays.to_numpy(self._kernels.hash_rows(keys, self._hashed))
        rows = np.flatnonzero(partitions_of(hashes, within.total) == within.number)
        return self._kernels.take(keys, arrays.from_numpy(rows.astype(np.int64, copy=False)))

    def _noted(self) -> pa.RecordBatch | None:
        """All keys that were noted, in one batch from the first time on."""
        with self._sample.lock:
            noted = self._sample.keys
            if len(noted) > 1:
                noted[:] = [self._kernels.joined(noted)]
            return noted[0] if noted else None

    def _splitters_of(self, sampled: pa.RecordBatch | None, into: int) -> _Splitters:
        """Keys that cut what was sampled into parts of about equal size, and which of them are those of many rows."""
        if sampled is None or sampled.num_rows < 2 or not sampled.num_columns:
            return _Splitters(None, ())
        found = self._keys.splitters(sampled, into)
        if found is None:
            return _Splitters(None, ())
        distinct = [0]
        counts = [1]
        for place in range(1, found.num_rows):
            if self._are_equal(found, place - 1):
                counts[-1] += 1
            else:
                distinct.append(place)
                counts.append(1)
        rows = arrays.from_numpy(np.array(distinct, np.int64))
        return _Splitters(self._kernels.take(found, rows), tuple([count > 1 for count in counts]))

    def _are_equal(self, keys: pa.RecordBatch, place: int) -> bool:
        """Whether a row of keys, which come in order, equals the next one."""
        before, _ = self._keys.cut(keys.slice(place, 1), keys.slice(place, 1), keys.slice(place + 1, 1))
        return not before.num_rows

    # --------------------------------------------------------------------------------------------- in order

    def arrange(self, batches: Sequence[pa.RecordBatch], number: int, *, are_alike: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a part in order, in pieces; `number` counts these calls as their parts follow each other. With
        `are_alike` all have equal keys.
        """
        surveys: list[Any] = []
        ordered = batches if are_alike or not self._has_keys else self._order.in_pieces(batches, None, 0)
        # Short batches that a task gives become longer ones, and surveys are of batches as they come back.
        for piece in longer(piece for batch in ordered for piece in slices(batch, _PIECE_ROWS_MAX)):
            self._states.check()
            if self._stream.needs_surveys:
                surveys.append(self._stream.survey(piece))
            yield piece
        self._surveys[number] = surveys

    def mark(self) -> Any:
        """Where the partition is, for `reset`; begins with it if it was not begun."""
        if not self._is_streaming:
            found = [survey for number in sorted(self._surveys) for survey in self._surveys[number]]
            self._stream.restart(found)
            self._surveys.clear()
            self._sampled.clear()
            self._splitters.clear()
            self._is_streaming = True
        return self._stream.mark()

    def reset(self, mark: Any) -> None:
        """Goes back, after a call that failed."""
        self._stream.reset(mark)
        self._is_streaming = True

    def add(self, batches: Sequence[pa.RecordBatch], *, is_last: bool) -> Iterator[pa.RecordBatch]:
        """The next pieces of a partition; `is_last` tells that these are all that were left."""
        for place, batch in enumerate(batches):
            self._states.check()
            rows, values = self._stream.add(batch, is_last=is_last and place == len(batches) - 1)
            yield record_batch([*rows.columns, *values], self._names, rows.num_rows)
        self._is_streaming = not is_last


class _Splitters:
    """Keys to cut at, None for none, and which of them are those of so many rows that they get a part of their own."""

    def __init__(self, keys: pa.RecordBatch | None, is_common: tuple[bool, ...]) -> None:
        self.keys = keys
        self.is_common = is_common
