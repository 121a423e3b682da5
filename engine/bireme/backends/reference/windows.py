"""Window functions over whole partitions; what rows they see is in `frames`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.reference import frame_trees, ranked_frames
from bireme.backends.reference.aggregates import AGGREGATES, States, check_supported
from bireme.backends.reference.expressions import Scope
from bireme.backends.reference.frame_rows import argument, kept_of, portions, spelt_out, valued
from bireme.backends.reference.frames import Ordered, frame_parts
from bireme.backends.reference.keys import Rows, group_rows
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import Bools, integers, nulls_of
from bireme.data import arrays
from bireme.data.record import plain
from bireme.errors import DomainFault
from bireme.plan.expr import Aggregation, WindowCall
from bireme.plan.physical import AggregateStep

# Farther than any row, and added to the place of one still a whole number of 64 bits.
_FAR: Final = 1 << 60


def compute_window(batch: pa.RecordBatch, call: WindowCall) -> pa.Array:
    """The values of one window function, aligned with the rows of the batch."""
    scope = Scope(batch.columns, batch.num_rows)
    ordered = Ordered(scope, batch.num_rows, call)
    values = ranked_frames.by_rank(ordered, call)
    if values is None:
        values = FUNCTIONS.get(call.call.function, _aggregate)(ordered, call)
    return ordered.unsorted(values)


# ------------------------------------------------------------------------------------------------ ranking


def _int64(values: Rows, missing: Bools | None = None) -> pa.Array:
    return arrays.from_numpy(np.asarray(values, np.int64), missing=missing)


class Places(NamedTuple):
    """Where each row is in its partition, and where its peers are; from 0, ends are exclusive."""

    row: Rows
    rows: Rows  # that the partition has
    first_peer: Rows
    end_of_peers: Rows
    group: Rows  # of peers


def places_of(ordered: Ordered) -> Places:
    start = ordered.start
    return Places(
        np.arange(len(ordered)) - start,
        ordered.end - start,
        ordered.peer_start - start,
        ordered.peer_end - start,
        ordered.peer_number - ordered.peer_number[start],
    )


def _ranked(ordered: Ordered, call: WindowCall) -> pa.Array:
    arguments = [argument(ordered, call, index) for index in range(len(call.call.args))]
    return RANKS[call.call.function](places_of(ordered), arguments)


def _ntile(places: Places, arguments: Sequence[pa.Array]) -> pa.Array:
    """The first buckets have one row more where the rows do not divide evenly."""
    (buckets,) = arguments
    missing = nulls_of(buckets)
    count = np.where(missing, 1, integers(buckets))
    if (count < 1).any():
        raise DomainFault(f"ntile needs a number of buckets greater than zero, not {count[count < 1][0]}")
    row, rows = places.row, places.rows
    count = np.minimum(count, rows)
    size, larger = rows // count, rows % count
    in_larger = larger * (size + 1)
    number = np.where(row < in_larger, row // (size + 1), larger + (row - in_larger) // size)
    return _int64(number + 1, missing)


RANKS: Final[dict[str, Callable[[Places, Sequence[pa.Array]], pa.Array]]] = {
    "row_number": lambda places, _: _int64(places.row + 1),
    "rank": lambda places, _: _int64(places.first_peer + 1),
    "dense_rank": lambda places, _: _int64(places.group + 1),
    "percent_rank": lambda places, _: arrays.from_numpy(places.first_peer / np.maximum(places.rows - 1, 1)),
    "cume_dist": lambda places, _: arrays.from_numpy(places.end_of_peers / places.rows),
    "ntile": _ntile,
}


# ----------------------------------------------------------------------------------------- single values


def _shift(sign: int) -> Callable[[Ordered, WindowCall], pa.Array]:
    """lag and lead."""

    def compute(ordered: Ordered, call: WindowCall) -> pa.Array:
        values, defaults = argument(ordered, call, 0), argument(ordered, call, 2)
        offsets = argument(ordered, call, 1)
        unknown = nulls_of(offsets)
        moves = sign * np.clip(np.where(unknown, 0, integers(offsets)), -_FAR, _FAR)
        found = shifted(ordered, moves, valued(values, call))
        own = np.arange(len(ordered))
        rows = np.where(unknown, -1, np.where(found >= 0, found, len(ordered) + own))
        return picked(pa.concat_arrays([plain(values), plain(defaults)]), rows)

    return compute


def shifted(ordered: Ordered, moves: Rows, counted: Bools) -> Rows:
    """The place so many counted places away, in the same partition, or -1."""
    own = np.arange(len(ordered))
    up_to = np.cumsum(counted)
    places = np.flatnonzero(counted)
    index = np.where(moves < 0, up_to - counted + moves, up_to + moves - 1)
    inside = (index >= 0) & (index < len(places))
    found = at(places, index, inside)
    found[(found < ordered.start) | (found >= ordered.end)] = -1
    return np.where(moves == 0, own, found)


def _nth(number: Callable[[Ordered, WindowCall], tuple[Rows, Bools]]) -> Callable[[Ordered, WindowCall], pa.Array]:
    """The frame's row of a number: from 1, or from -1 at its end."""

    def compute(ordered: Ordered, call: WindowCall) -> pa.Array:
        values = argument(ordered, call, 0)
        places = np.flatnonzero(kept_of(ordered, call) & valued(values, call))
        parts = [np.searchsorted(places, part) for part in frame_parts(ordered, call.frame, call.order)]
        wanted, missing = number(ordered, call)
        wanted = np.clip(wanted, -_FAR, _FAR)
        # How many of the frame's rows are to be passed over; negative behind the one that is wanted.
        over = np.where(wanted > 0, wanted - 1, sum(part[1] - part[0] for part in parts) + wanted)
        found = np.full(len(ordered), -1, np.int64)
        for first, last in parts:
            inside = ~missing & (over >= 0) & (over < last - first)
            found[inside] = places[(first + over)[inside]]
            over = over - (last - first)
        return picked(values, found)

    return compute


def at(places: Rows, index: Rows, inside: Bools) -> Rows:
    """The places of some numbers; -1 for those that are not `inside`."""
    rows = np.full(len(index), -1, np.int64)
    rows[inside] = places[index[inside]]
    return rows


def _always(number: int) -> Callable[[Ordered, WindowCall], tuple[Rows, Bools]]:
    return lambda ordered, call: (np.full(len(ordered), number, np.int64), np.zeros(len(ordered), np.bool_))


def _given_number(ordered: Ordered, call: WindowCall) -> tuple[Rows, Bools]:
    numbers = argument(ordered, call, 1)
    missing = nulls_of(numbers)
    wanted = np.where(missing, 0, integers(numbers))
    return wanted, missing | (wanted <= 0)


# --------------------------------------------------------------------------------------------- aggregates


def _aggregate(ordered: Ordered, call: WindowCall) -> pa.Array:
    """An aggregate over the frame of each row; rows with the same frame share the work."""
    check_supported(call.call.function)
    step, arg = aggregate_step(call.call), argument_of(ordered, call)
    parts = frame_parts(ordered, call.frame, call.order)
    ends = np.stack([end for part in parts for end in part], axis=1)
    frames, which = np.unique(ends, axis=0, return_inverse=True)
    states = _states_of_parts(step, call.call.distinct, arg, frames, kept_of(ordered, call))
    _, _, final = AGGREGATES[step.function]
    return final(step, states).take(arrays.from_numpy(which.reshape(-1)))


def _states_of_parts(step: AggregateStep, distinct: bool, arg: pa.Array | None, frames: Rows, kept: Bools) -> States:
    """The states of frames of one or more parts (low, high, low, high, …)."""
    count = frames.shape[1] // 2
    each = [states_over(step, distinct, arg, frames[:, 2 * part : 2 * part + 2], kept) for part in range(count)]
    if count == 1:
        return each[0]
    together = [pa.concat_arrays(list(states)) for states in zip(*each, strict=True)]
    return AGGREGATES[step.function][1](step, together, Groups(np.tile(np.arange(len(frames)), count), len(frames)))


def aggregate_step(aggregation: Aggregation) -> AggregateStep:
    """The aggregate, over an input that is its argument."""
    if not aggregation.args:
        return AggregateStep(aggregation.function, None, None, aggregation.type)
    return AggregateStep(aggregation.function, 0, aggregation.args[0].type, aggregation.type)


def argument_of(ordered: Ordered, call: WindowCall) -> pa.Array | None:
    """The argument of an aggregate, if it has one."""
    return argument(ordered, call, 0) if call.call.args else None


def states_over(step: AggregateStep, distinct: bool, arg: pa.Array | None, frames: Rows, kept: Bools) -> States:
    """The states of the kept rows of each frame (low, high)."""
    if not distinct and frame_trees.is_worthwhile(step.function, frames):
        return frame_trees.over_frames(step, arg, frames, kept)
    parts = [_over_frames(step, distinct, arg, some, kept) for some in portions(frames)] or [
        _over_frames(step, False, arg, frames, kept)
    ]
    return [pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)]


def _over_frames(step: AggregateStep, distinct: bool, arg: pa.Array | None, frames: Rows, kept: Bools) -> States:
    ids, places = spelt_out(frames)
    chosen = kept[places]
    ids, places = ids[chosen], places[chosen]
    values = None if arg is None else arg.take(arrays.from_numpy(places))
    if distinct and values is not None:
        _, first = group_rows([arrays.from_numpy(ids), values], len(ids))
        ids, values = ids[first], values.take(arrays.from_numpy(first))
    partial, _, _ = AGGREGATES[step.function]
    return partial(step, values, Groups(ids, len(frames)), 0)


FUNCTIONS: Final[dict[str, Callable[[Ordered, WindowCall], pa.Array]]] = {
    **dict.fromkeys(RANKS, _ranked),
    "lag": _shift(-1),
    "lead": _shift(1),
    "first_value": _nth(_always(1)),
    "last_value": _nth(_always(-1)),
    "nth_value": _nth(_given_number),
}
