"""Aggregates over long frames: states of runs of rows, and of runs of runs, of which a frame takes a few of each level.

So a frame costs as many states as the logarithm of its rows, where they are not few, instead of every row of it. For
aggregates whose states do not tell where their rows stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.aggregates import AGGREGATES
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import Groups
from bireme.backends.reference.vectors import Bools
from bireme.data import arrays
from bireme.plan.physical import AggregateStep

# How many states of a level make one of the next.
_RUN: Final = 8
# Frames that are worked on at once; each takes fewer than twice a run of every level.
_FRAMES_MAX: Final = 1 << 16
MERGEABLE: Final = frozenset(
    {
        "count_star", "count", "sum", "min", "max", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop",
        "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor",
    }
)  # fmt: skip

States = list[pa.Array]


def is_worthwhile(function: str, frames: Rows) -> bool:
    """Whether frames have so many rows on average that a tree costs less than going through them."""
    rows = int((frames[:, 1] - frames[:, 0]).sum())
    return function in MERGEABLE and function in AGGREGATES and rows > 4 * _RUN * len(frames)


def over_frames(step: AggregateStep, arg: pa.Array | None, frames: Rows, kept: Bools) -> States:
    """The states of the kept rows of each frame."""
    levels = _levels(step, arg, kept)
    parts = [
        _over_some(step, arg, frames[start : start + _FRAMES_MAX], kept, levels)
        for start in range(0, len(frames), _FRAMES_MAX)
    ]
    return [pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)]


def _levels(step: AggregateStep, arg: pa.Array | None, kept: Bools) -> list[States]:
    """The states of runs of rows, of runs of these, and so on, down to a level of one run."""
    partial, merge, _ = AGGREGATES[step.function]
    count = -(-len(kept) // _RUN)
    places = np.flatnonzero(kept)
    levels = [partial(step, _taken(arg, places), Groups(places // _RUN, count), 0)]
    while count > _RUN:
        ids = np.arange(count) // _RUN
        count = -(-count // _RUN)
        levels.append(merge(step, levels[-1], Groups(ids, count)))
    return levels


def _over_some(step: AggregateStep, arg: pa.Array | None, frames: Rows, kept: Bools, levels: list[States]) -> States:
    partial, merge, _ = AGGREGATES[step.function]
    ends = _ragged_ends(frames, len(levels) + 1)
    ids, places = next(ends)
    chosen = kept[places]
    ids, places = ids[chosen], places[chosen]
    count = len(frames)
    found = [partial(step, _taken(arg, places), Groups(ids, count), 0)]
    for states, (ids, places) in zip(levels, ends, strict=True):
        rows = arrays.from_numpy(places)
        found.append(merge(step, [state.take(rows) for state in states], Groups(ids, count)))
    together = [pa.concat_arrays(list(each)) for each in zip(*found, strict=True)]
    return merge(step, together, Groups(np.tile(np.arange(count), len(found)), count))


def _taken(arg: pa.Array | None, places: Rows) -> pa.Array | None:
    return None if arg is None else arg.take(arrays.from_numpy(places))


def _ragged_ends(frames: Rows, levels: int) -> Iterator[tuple[Rows, Rows]]:
    """For each level, what of it the frames take that no run of it covers: numbers of frames, and places there."""
    low, high = frames[:, 0], frames[:, 1]
    for level in range(levels):
        inner_low, inner_high = -(-low // _RUN), high // _RUN
        # On the last level, and where no whole run is inside, all of it.
        is_whole = (inner_low >= inner_high) | (level == levels - 1)
        head_end = np.where(is_whole, high, inner_low * _RUN)
        tail_start = np.where(is_whole, high, inner_high * _RUN)
        heads, tails = _expanded(low, head_end), _expanded(tail_start, high)
        yield np.concatenate([heads[0], tails[0]]), np.concatenate([heads[1], tails[1]])
        low = np.where(is_whole, 0, inner_low)
        high = np.where(is_whole, 0, inner_high)


def _expanded(starts: Rows, ends: Rows) -> tuple[Rows, Rows]:
    """Which range each place of some ranges is in, and the place."""
    counts = ends - starts
    ids = np.repeat(np.arange(len(starts)), counts)
    return ids, np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
