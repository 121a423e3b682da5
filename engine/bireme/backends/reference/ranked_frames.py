"""What stands at a place of each frame, in an order of the frame's own: quantiles, and functions with ORDER BY inside.

All frames go down the bits of the rows' ranks together (a wavelet matrix, of which one level at a time is in memory),
so the work is that of as many passes over rows and frames as ranks have bits, however long the frames are. Lists in an
order of their own, and the mode, go through all rows of the frames instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import collected
from bireme.backends.reference.frame_rows import argument, kept_of, portions, spelt_out, valued
from bireme.backends.reference.frames import Ordered, frame_parts
from bireme.backends.reference.keys import Rows, group_rows, sort_rows
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import Bools, integers, nulls_of
from bireme.data import arrays
from bireme.data.record import plain
from bireme.plan.expr import Literal, WindowCall
from bireme.plan.physical import AggregateStep
from bireme.plan.quantile_places import quantile_places
from bireme.plan.states import COLLECTING, HOLISTIC

# Ranges of rows (low, high), ends exclusive, one of each frame.
Part = tuple[Rows, Rows]


def by_rank(ordered: Ordered, call: WindowCall) -> pa.Array | None:
    """The values of a function that goes by ranks, in window order; None for other functions."""
    function = call.call.function
    if function == "mode":
        return _mode(ordered, call)
    if function in HOLISTIC:
        return _selected(ordered, call, lambda sizes: quantile_places(_quantile(call), sizes))
    if not call.call.order:
        return None
    if function in COLLECTING:
        return _listed(ordered, call)
    return _selected(ordered, call, _NUMBERS[function](ordered, call))


# ---------------------------------------------------------------------------------------- at one place


def _selected(ordered: Ordered, call: WindowCall, place_of: Callable[[Rows], Rows]) -> pa.Array:
    """The value of each frame at the place that is meant, of so many rows as are given; NULL outside of the frame."""
    values = plain(argument(ordered, call, 0))
    rows = np.flatnonzero(_counted(ordered, call, values))
    parts = [
        (np.searchsorted(rows, low), np.searchsorted(rows, high))
        for low, high in frame_parts(ordered, call.frame, call.order)
    ]
    sizes = np.sum([high - low for low, high in parts], axis=0)
    places = place_of(sizes)
    inside = (places >= 0) & (places < sizes)
    sequence = _sequence(ordered, call, values, rows)
    ranks = _ranks(sequence)
    found = np.full(len(ordered), -1, np.int64)
    chosen = [(low[inside], high[inside]) for low, high in parts]
    found[inside] = rows[sequence[at_places(ranks, chosen, places[inside])]]
    return picked(values, found)


def at_places(ranks: Rows, parts: list[Part], places: Rows) -> Rows:
    """The rank that stands at a place, from 0, in the order of those in each frame, which has so many. `ranks` are
    0, 1, … in any order.
    """
    found = np.zeros(len(places), np.int64)
    for bit in reversed(range(max(0, len(ranks) - 1).bit_length())):
        is_high = (ranks >> bit & 1).astype(np.bool_)
        lows_before = np.concatenate([[0], np.cumsum(~is_high)])
        lows = np.sum([lows_before[high] - lows_before[low] for low, high in parts], axis=0)
        goes_high = places >= lows
        places = np.where(goes_high, places - lows, places)
        parts = [(_moved(low, lows_before, goes_high), _moved(high, lows_before, goes_high)) for low, high in parts]
        found |= goes_high.astype(np.int64) << bit
        ranks = np.concatenate([ranks[~is_high], ranks[is_high]])
    return found


def _moved(edge: Rows, lows_before: Rows, goes_high: Bools) -> Rows:
    """Where an edge is when rows with a low bit come before those with a high one."""
    lows = lows_before[edge]
    return np.where(goes_high, lows_before[-1] + edge - lows, lows)


def _sequence(ordered: Ordered, call: WindowCall, values: pa.Array, rows: Rows) -> Rows:
    """The places among `rows` in the order of the frames; by the values themselves where the call has none."""
    taken = arrays.from_numpy(rows)
    if not call.call.order:
        return sort_rows([values.take(taken)], [False], [False], len(rows))
    columns = [ordered.sorted(ordered.scope.evaluate(key.expr)).take(taken) for key in call.call.order]
    descending = [key.descending for key in call.call.order]
    return sort_rows(columns, descending, [key.nulls_first for key in call.call.order], len(rows))


def _ranks(sequence: Rows) -> Rows:
    ranks = np.empty(len(sequence), np.int64)
    ranks[sequence] = np.arange(len(sequence))
    return ranks


def _counted(ordered: Ordered, call: WindowCall, values: pa.Array) -> Bools:
    """Which rows are among those that stand in order."""
    counted = kept_of(ordered, call) & valued(values, call)
    return counted & ~nulls_of(values) if call.call.function in _SKIP_NULLS else counted


_SKIP_NULLS: Final = HOLISTIC | {"mode", "collect", "any_value"}


def _quantile(call: WindowCall) -> AggregateStep:
    value, fraction = call.call.args
    assert isinstance(fraction, Literal)
    assert isinstance(fraction.value, float)
    return AggregateStep(call.call.function, 0, value.type, call.call.type, fraction.value)


def _given(ordered: Ordered, call: WindowCall) -> Callable[[Rows], Rows]:
    """nth_value: the place of the number that is given, from 1."""
    numbers = argument(ordered, call, 1)
    places = np.where(nulls_of(numbers), -1, integers(numbers) - 1)
    return lambda sizes: places


_NUMBERS: Final[dict[str, Callable[[Ordered, WindowCall], Callable[[Rows], Rows]]]] = {
    **dict.fromkeys(("first", "first_value", "any_value"), lambda ordered, call: np.zeros_like),
    **dict.fromkeys(("last", "last_value"), lambda ordered, call: lambda sizes: sizes - 1),
    "nth_value": _given,
}

# ------------------------------------------------------------------------------------ through all rows


def _listed(ordered: Ordered, call: WindowCall) -> pa.Array:
    """array_agg and collect with an order of their own."""
    values = plain(argument(ordered, call, 0))
    counted = _counted(ordered, call, values)
    ranks = _ranks(_sequence(ordered, call, values, np.arange(len(ordered))))
    step = AggregateStep(call.call.function, 0, call.call.args[0].type, call.call.type)

    def lists(ids: Rows, rows: Rows, count: int) -> pa.Array:
        order = np.argsort(ranks[rows], kind="stable")
        ids, taken = ids[order], values.take(arrays.from_numpy(rows[order]))
        if call.call.distinct:
            _, first = group_rows([arrays.from_numpy(ids), taken], len(ids))
            ids, taken = ids[first], taken.take(arrays.from_numpy(first))
        return collected.partial(step, taken, Groups(ids, count), 0)[0]

    return _through(ordered, call, counted, lists)


def _mode(ordered: Ordered, call: WindowCall) -> pa.Array:
    """The first of the values that most rows of the frame have."""
    values = plain(argument(ordered, call, 0))
    counted = _counted(ordered, call, values)
    own = np.arange(len(ordered))
    ranks = _ranks(_sequence(ordered, call, values, own)) if call.call.order else own

    def most(ids: Rows, rows: Rows, count: int) -> pa.Array:
        order = np.argsort(ranks[rows], kind="stable")
        ids, rows = ids[order], rows[order]
        taken = values.take(arrays.from_numpy(rows))
        groups, first = group_rows([arrays.from_numpy(ids), taken], len(rows))
        times = np.bincount(groups, minlength=len(first))
        # Groups are numbered by their first row.
        best = np.lexsort((np.arange(len(first)), -times, ids[first]))
        starts = np.flatnonzero(np.diff(ids[first][best], prepend=-1))
        found = np.full(count, -1, np.int64)
        found[ids[first][best][starts]] = rows[first[best[starts]]]
        return picked(values, found)

    return _through(ordered, call, counted, most)


def _through(
    ordered: Ordered, call: WindowCall, counted: Bools, found: Callable[[Rows, Rows, int], pa.Array]
) -> pa.Array:
    """What is found of the counted rows of each frame, given as numbers of frames and rows; equal frames share it."""
    parts = frame_parts(ordered, call.frame, call.order)
    ends = np.stack([end for part in parts for end in part], axis=1)
    frames, which = np.unique(ends, axis=0, return_inverse=True)
    each = []
    for some in portions(frames):
        ids, rows = spelt_out(some)
        chosen = counted[rows]
        each.append(found(ids[chosen], rows[chosen], len(some)))
    if not each:
        none = np.empty(0, np.int64)
        return found(none, none, 0)
    return collected.joined(each).take(arrays.from_numpy(which.reshape(-1)))
