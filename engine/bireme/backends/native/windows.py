"""Window functions in C++: those that need only the place of a row in its window; others are in `window_frames`.

What neither has runs in the reference backend.

Rule: calls with one partition and order share one sort, and a count of whole partitions takes any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.native import _kernels, window_frames
from bireme.backends.native.joins import has_order
from bireme.data import arrays
from bireme.data.types import to_arrow
from bireme.plan.expr import UP_TO_PEERS, WHOLE_PARTITION, Expr, WindowCall
from bireme.plan.window_order import WindowOrder, keys_of

# The places that make the value of a function, and how.
_RANKINGS: Final = {
    "row_number": ("number",),
    "rank": ("rank",),
    "dense_rank": ("dense_rank",),
    "percent_rank": ("rank", "partition_rows"),
    "cume_dist": ("rows_up_to_peers", "partition_rows"),
}
_COUNTS: Final = {WHOLE_PARTITION: ("partition_rows",), UP_TO_PEERS: ("rows_up_to_peers",)}

Evaluate = window_frames.Evaluate
Beginnings = Callable[[pa.RecordBatch], tuple[arrays.Flags, arrays.Flags]]


def is_native(call: WindowCall) -> bool:
    """Whether the call can be made of places; the window needs keys whose values have a native order."""
    keys = [*call.partition, *(key.expr for key in call.order)]
    return bool(_places(call)) and bool(keys) and all(has_order(to_arrow(key.type)) for key in keys)


def _places(call: WindowCall) -> tuple[str, ...]:
    inner = call.call
    if inner.function == "count_star":
        return () if inner.distinct or inner.filter is not None else _COUNTS.get(call.frame, ())
    return _RANKINGS.get(inner.function, ())


def fallbacks(calls: Sequence[WindowCall]) -> tuple[str, ...]:
    """Which functions of a step are left to the reference backend: one line, or none."""
    names = sorted({call.call.function for call in calls if not is_native(call) and not window_frames.is_native(call)})
    return (f"window functions in the reference backend: {', '.join(names)}",) if names else ()


def native_values(calls: Sequence[WindowCall], evaluate: Evaluate) -> dict[WindowCall, pa.Array]:
    """The values of the calls that kernels compute, in the order of the rows; `evaluate` computes what they take."""
    placed = [call for call in calls if is_native(call)]
    framed = [call for call in calls if not is_native(call) and window_frames.is_native(call)]
    found = dict(zip(placed, places_of_windows(placed, evaluate), strict=True))
    return found | window_frames.values_of_frames(framed, evaluate)


def places_of_windows(calls: Sequence[WindowCall], evaluate: Evaluate) -> list[pa.Array]:
    """The values of native calls, in the order of the rows; `evaluate` computes keys over them."""
    shared = _shared_orders(calls)
    wanted: dict[WindowOrder, dict[str, pa.Array]] = {order: {} for order in shared}
    for call, order in zip(calls, shared, strict=True):
        wanted[order].update(dict.fromkeys(_places(call)))
    found = {order: _computed(order, list(places), evaluate) for order, places in wanted.items()}
    return [_value(call, found[order]) for call, order in zip(calls, shared, strict=True)]


def _computed(order: WindowOrder, places: list[str], evaluate: Evaluate) -> dict[str, pa.Array]:
    """The places of all rows, by name."""
    columns = evaluate([key.expr for key in keys_of(order)])
    return dict(zip(places, _places_of(columns, order, places, are_in_order=False), strict=True))


def _places_of(columns: pa.RecordBatch, order: WindowOrder, places: list[str], *, are_in_order: bool) -> list[pa.Array]:
    """The places of rows with these keys of the order."""
    keys = keys_of(order)
    descending = [key.descending for key in keys]
    nulls_first = [key.nulls_first for key in keys]
    exported = _kernels.window_places(columns, descending, nulls_first, len(order[0]), places, are_in_order)
    found: list[pa.Array] = pa.record_batch(exported).columns
    return found


def beginnings(order: WindowOrder, evaluate: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Beginnings | None:
    """Where partitions and peers begin, of rows that come in order; None for keys without a native order.

    `evaluate` computes the keys.
    """
    keys = keys_of(order)
    if not keys or not all(has_order(to_arrow(key.expr.type)) for key in keys):
        return None

    def found(batch: pa.RecordBatch) -> tuple[arrays.Flags, arrays.Flags]:
        places = _places_of(evaluate(batch), order, ["number", "rank"], are_in_order=True)
        number, rank = map(arrays.to_numpy, places)
        return number == 1, number == rank

    return found


def _shared_orders(calls: Sequence[WindowCall]) -> list[WindowOrder]:
    """The window each call is computed in: its own, but counts of whole partitions join another of that partition."""
    orders: dict[tuple[Expr, ...], WindowOrder] = {}
    for call in calls:
        if _places(call) != _COUNTS[WHOLE_PARTITION]:
            orders.setdefault(call.partition, (call.partition, call.order))
    return [
        orders.get(call.partition, (call.partition, ()))
        if _places(call) == _COUNTS[WHOLE_PARTITION]
        else (call.partition, call.order)
        for call in calls
    ]


def _value(call: WindowCall, places: dict[str, pa.Array]) -> pa.Array:
    function = call.call.function
    if function in ("percent_rank", "cume_dist"):
        return _share_of_partition(function, places)
    (place,) = _places(call)
    return places[place]


def _share_of_partition(function: str, places: dict[str, pa.Array]) -> pa.Array:
    rows = arrays.to_numpy(places["partition_rows"])
    if function == "cume_dist":
        return arrays.from_numpy(arrays.to_numpy(places["rows_up_to_peers"]) / rows)
    return arrays.from_numpy((arrays.to_numpy(places["rank"]) - 1) / np.maximum(rows - 1, 1))
