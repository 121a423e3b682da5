"""Window functions over whole partitions; what rows they see is in `frames`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import frame_trees
from bireme.backends.reference.aggregates import check_supported, over_groups
from bireme.backends.reference.expressions import Scope
from bireme.backends.reference.frames import Ordered, frame_ranges
from bireme.backends.reference.keys import Rows, group_rows
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import Bools, Numbers, bools, nulls_of
from bireme.errors import DomainFault
from bireme.plan.expr import Aggregation, WindowCall
from bireme.plan.physical import AggregateStep

_EXPANDED_ROWS_MAX: Final = 1 << 21


def compute_window(batch: pa.RecordBatch, call: WindowCall) -> pa.Array:
    """The values of one window function, aligned with the rows of the batch."""
    scope = Scope(batch.columns, batch.num_rows)
    ordered = Ordered(scope, batch.num_rows, call)
    compute = _FUNCTIONS.get(call.call.function)
    if compute is None:
        check_supported(call.call.function)
        compute = _aggregate
    return ordered.unsorted(compute(ordered, call))


def _argument(ordered: Ordered, call: Aggregation, index: int) -> pa.Array:
    return ordered.sorted(ordered.scope.evaluate(call.args[index]))


# ------------------------------------------------------------------------------------------------ ranking


def _int64(values: Rows, missing: Bools | None = None) -> pa.Array:
    return pa.array(np.asarray(values, np.int64), pa.int64(), mask=missing)


def _row_number(ordered: Ordered, call: WindowCall) -> pa.Array:
    return _int64(np.arange(len(ordered)) - ordered.start + 1)


def _rank(ordered: Ordered, call: WindowCall) -> pa.Array:
    return _int64(ordered.peer_start - ordered.start + 1)


def _dense_rank(ordered: Ordered, call: WindowCall) -> pa.Array:
    return _int64(ordered.peer_number - ordered.peer_number[ordered.start] + 1)


def _percent_rank(ordered: Ordered, call: WindowCall) -> pa.Array:
    others = ordered.end - ordered.start - 1
    return pa.array((ordered.peer_start - ordered.start) / np.maximum(others, 1), pa.float64())


def _cume_dist(ordered: Ordered, call: WindowCall) -> pa.Array:
    return pa.array((ordered.peer_end - ordered.start) / (ordered.end - ordered.start), pa.float64())


def _ntile(ordered: Ordered, call: WindowCall) -> pa.Array:
    """The first buckets have one row more where the rows do not divide evenly."""
    buckets = _argument(ordered, call.call, 0).to_pylist()
    numbers = []
    for place, count in enumerate(buckets):
        if count is not None and count < 1:
            raise DomainFault(f"ntile needs a number of buckets greater than zero, not {count}")
        rows, row = int(ordered.end[place] - ordered.start[place]), place - int(ordered.start[place])
        numbers.append(None if count is None else _bucket(row, rows, min(count, rows)))
    return pa.array(numbers, pa.int64())


def _bucket(row: int, rows: int, buckets: int) -> int:
    size, larger = divmod(rows, buckets)
    if row < larger * (size + 1):
        return row // (size + 1) + 1
    return larger + (row - larger * (size + 1)) // size + 1


# ----------------------------------------------------------------------------------------- single values


def _shift(sign: int) -> Callable[[Ordered, WindowCall], pa.Array]:
    """lag and lead."""

    def compute(ordered: Ordered, call: WindowCall) -> pa.Array:
        values, offsets = _argument(ordered, call.call, 0), _argument(ordered, call.call, 1).to_pylist()
        valued = ~nulls_of(values) if call.ignore_nulls else np.ones(len(ordered), np.bool_)
        counts = np.cumsum(valued)
        places = np.flatnonzero(valued)
        source = [
            -1 if offset is None else _shifted(ordered, place, sign * offset, valued, counts, places)
            for place, offset in enumerate(offsets)
        ]
        found = np.array(source, np.int64).reshape(-1)
        defaults = _argument(ordered, call.call, 2)
        gone = np.array([offset is None for offset in offsets], np.bool_)
        rows = np.where(found >= 0, found, np.where(gone, -1, len(ordered) + np.arange(len(ordered))))
        return picked(pa.concat_arrays([values, defaults]), rows)

    return compute


def _shifted(ordered: Ordered, place: int, offset: int, valued: Bools, counts: Numbers, places: Rows) -> int:
    """The place so many valued places away, or -1."""
    before = int(counts[place]) - int(valued[place])
    if offset == 0:
        return place
    index = before - 1 + offset + 1 if offset < 0 else int(counts[place]) + offset - 1
    if not 0 <= index < len(places):
        return -1
    found = int(places[index])
    return found if ordered.start[place] <= found < ordered.end[place] else -1


def _nth(number: Callable[[Ordered, WindowCall], list[int | None]]) -> Callable[[Ordered, WindowCall], pa.Array]:
    """The frame's row of a number: from 1, or from -1 at its end."""

    def compute(ordered: Ordered, call: WindowCall) -> pa.Array:
        values = _argument(ordered, call.call, 0)
        low, high = frame_ranges(ordered, call.frame, call.order)
        kept = ~nulls_of(values) if call.ignore_nulls else np.ones(len(ordered), np.bool_)
        if call.call.filter is not None:
            kept &= bools(ordered.sorted(ordered.scope.evaluate(call.call.filter)))
        places = np.flatnonzero(kept)
        first, last = np.searchsorted(places, low), np.searchsorted(places, high)
        rows = np.full(len(ordered), -1, np.int64)
        for place, wanted in enumerate(number(ordered, call)):
            if wanted is None:
                continue
            index = first[place] + wanted - 1 if wanted > 0 else last[place] + wanted
            if wanted != 0 and first[place] <= index < last[place]:
                rows[place] = places[index]
        return picked(values, rows)

    return compute


def _given_number(ordered: Ordered, call: WindowCall) -> list[int | None]:
    numbers = _argument(ordered, call.call, 1).to_pylist()
    return [number if number is None or number > 0 else None for number in numbers]


# --------------------------------------------------------------------------------------------- aggregates


def _aggregate(ordered: Ordered, call: WindowCall) -> pa.Array:
    """An aggregate over the frame of each row; rows with the same frame share the work."""
    aggregation = call.call
    arg = _argument(ordered, aggregation, 0) if aggregation.args else None
    low, high = frame_ranges(ordered, call.frame, call.order)
    kept = np.ones(len(ordered), np.bool_)
    if aggregation.filter is not None:
        kept = bools(ordered.sorted(ordered.scope.evaluate(aggregation.filter)))
    step = AggregateStep(
        aggregation.function,
        None if arg is None else 0,
        None if arg is None else aggregation.args[0].type,
        aggregation.type,
    )
    frames, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    if not aggregation.distinct and frame_trees.is_worthwhile(step.function, frames):
        return frame_trees.over_frames(step, arg, frames, kept).take(pa.array(which.reshape(-1)))
    parts = [_over_frames(step, aggregation.distinct, arg, some, kept) for some in _portions(frames)] or [
        _over_frames(step, False, arg, frames, kept)
    ]
    return pa.concat_arrays(parts).take(pa.array(which.reshape(-1)))


def _portions(frames: Rows) -> Iterator[Rows]:
    """Frames in portions of not too many rows in all."""
    sizes = np.cumsum(frames[:, 1] - frames[:, 0])
    start = 0
    while start < len(frames):
        before = sizes[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(sizes, before + _EXPANDED_ROWS_MAX, "right")))
        yield frames[start:stop]
        start = stop


def _over_frames(step: AggregateStep, distinct: bool, arg: pa.Array | None, frames: Rows, kept: Bools) -> pa.Array:
    counts = frames[:, 1] - frames[:, 0]
    ids = np.repeat(np.arange(len(frames)), counts)
    places = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(frames[:, 0], counts)
    chosen = kept[places]
    ids, places = ids[chosen], places[chosen]
    values = None if arg is None else arg.take(pa.array(places))
    if distinct and values is not None:
        _, first = group_rows([pa.array(ids), values], len(ids))
        ids, values = ids[first], values.take(pa.array(first))
    return over_groups(step, values, Groups(ids, len(frames)))


_FUNCTIONS: Final[dict[str, Callable[[Ordered, WindowCall], pa.Array]]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shift(-1),
    "lead": _shift(1),
    "first_value": _nth(lambda ordered, call: [1] * len(ordered)),
    "last_value": _nth(lambda ordered, call: [-1] * len(ordered)),
    "nth_value": _nth(_given_number),
}
