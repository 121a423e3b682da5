"""Windows over a partition: all of it at once, or, where it is larger than memory, after a cut, or in its order.

A cut spreads a partition's batches over finer ranges of the hash of what all windows are partitioned by. What no cut
makes smaller is mostly one window: its rows are cut by its order instead, each part is brought into order, and batches
then come one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from bireme.backends.base import Kernels, WindowStream
from bireme.data.hash_range import HashRange
from bireme.data.record import empty, longer, record_batch, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.operators.key_ranges import KeyOrder
from bireme.operators.order import Order
from bireme.operators.order_parts import NotedOfPartitions, OrderParts
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

    Rows with equal keys stay in the order in which they came.
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
        self._order = Order(keys, schema, kernels, states)
        hashed = [order[0].index(Column(key, schema[key].type)) for key in step.keys]
        noted = NotedOfPartitions(states.sample(step.sample), hashed, kernels)
        self._parts = OrderParts(KeyOrder(keys, schema, kernels, states), noted.of, kernels, states)
        self._surveys: dict[int, list[Any]] = {}
        self._is_streaming = False

    @property
    def nbytes(self) -> int:
        return self._stream.nbytes

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a part, each with the part of it that they belong to."""
        return self._parts.cut(batches, within, into)

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
            self._parts.clear()
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
