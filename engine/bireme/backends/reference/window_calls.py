"""Window functions over a stretch of the rows in window order: what they need of the rows before and after it.

A frame is what there is of it in the stretch, between a state of the rows that came before and a state of those that
are yet to come. One class for each kind of function; `window_stream` has the stretches follow each other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from bireme.backends.reference import frame_trees, windows
from bireme.backends.reference.aggregates import AGGREGATES, States
from bireme.backends.reference.frame_rows import kept_of, valued
from bireme.backends.reference.frames import InOrder
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import Bools
from bireme.data import arrays
from bireme.data.record import plain
from bireme.plan.expr import BoundKind, Exclusion, Expr, FrameUnit, Literal, WindowCall
from bireme.plan.states import HOLISTIC

_OFFSETS: Final = (BoundKind.PRECEDING, BoundKind.FOLLOWING)
# Aggregates whose states merge, in the order of the rows, whatever rows they are of.
_CARRIED: Final = frame_trees.MERGEABLE | {"any_value", "product"}
# So many first values of a partition are remembered for nth_value.
_REMEMBERED_MAX: Final = 4_096


class Counted(NamedTuple):
    """Rows, and groups of peers, of a part of a partition, and what each call keeps of them: None for no need."""

    rows: int
    groups: int
    states: tuple[Any, ...]


class Around(NamedTuple):
    """What is on one side of a stretch: of the partition, and of the peers, of its outermost row there."""

    partition: Counted
    peers: Counted


class StreamedCall(Protocol):
    """A window function over stretches. Of several calls, number `index` keeps the states of that number."""

    index: int
    # Whether values depend on rows that were and are not held any more.
    needs_before: bool
    # Whether values depend on rows that are yet to come, so that those have to be counted first.
    needs_after: bool

    def fold(self, ordered: InOrder, low: int, high: int) -> Any:
        """What it keeps of a run of rows of one partition."""
        ...

    def merged(self, before: Any, after: Any) -> Any: ...

    def open_from(self, ordered: InOrder) -> int:
        """The first row whose frame may go on in rows to come, other than those that `after` tells of."""
        ...

    def needed_from(self, ordered: InOrder, row: int) -> int:
        """The first row that this one, and those that follow it, have to see."""
        ...

    def values(self, ordered: InOrder, chosen: slice, before: Around, after: Around) -> pa.Array: ...


def streamed(call: WindowCall, index: int) -> StreamedCall | None:
    """The call over stretches; None for what needs all rows of a partition at once."""
    function = call.call.function
    if function in windows.RANKS:
        return Ranked(call, index)
    if function in ("lag", "lead"):
        offset = _constant(call.call.args[1])
        return None if offset is None else Shifted(call, index, offset)
    if call.frame.exclusion is not Exclusion.NOTHING or call.call.order or function in HOLISTIC:
        return None
    number = _number(call)
    if number is not None:
        return Picked(call, index, number)
    is_carried = _opens(call, at_start=True) or _opens(call, at_start=False)
    if function not in AGGREGATES:
        return None
    if is_carried and (function not in _CARRIED or call.call.distinct):
        return None
    return Aggregated(call, index)


def _constant(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Literal) and isinstance(expr.value, int) else None


def _number(call: WindowCall) -> int | None:
    match call.call.function:
        case "first_value":
            return 1
        case "last_value":
            return -1
        case "nth_value":
            given = _constant(call.call.args[1])
            return given if given is not None and 0 < given <= _REMEMBERED_MAX else None
    return None


def _opens(call: WindowCall, *, at_start: bool) -> bool:
    """Whether frames reach an end of their partition or of their peers, however far that is."""
    bound = call.frame.start if at_start else call.frame.end
    is_of_peers = bound.kind is BoundKind.CURRENT_ROW and call.frame.unit is not FrameUnit.ROWS
    return is_of_peers or bound.kind in (BoundKind.UNBOUNDED_PRECEDING, BoundKind.UNBOUNDED_FOLLOWING)


# ---------------------------------------------------------------------------------------------- ranks


class Ranked:
    """row_number and the like: by counts alone."""

    needs_before = True

    def __init__(self, call: WindowCall, index: int) -> None:
        self._call = call
        self.index = index
        self.needs_after = call.call.function in ("percent_rank", "cume_dist", "ntile")

    def fold(self, ordered: InOrder, low: int, high: int) -> None:
        """The counts of all calls are enough."""

    def merged(self, before: None, after: None) -> None:
        """The counts of all calls are enough."""

    def open_from(self, ordered: InOrder) -> int:
        return len(ordered)

    def needed_from(self, ordered: InOrder, row: int) -> int:
        return row

    def values(self, ordered: InOrder, chosen: slice, before: Around, after: Around) -> pa.Array:
        arguments = [ordered.scope.evaluate(arg)[chosen] for arg in self._call.call.args]
        return windows.RANKS[self._call.call.function](_places(ordered, chosen, before, after), arguments)


def _places(ordered: InOrder, chosen: slice, before: Around, after: Around) -> windows.Places:
    """Places of the chosen rows in their whole partition."""
    inside = windows.Places(*[each[chosen] for each in windows.places_of(ordered)])
    is_first = ordered.start[chosen] == 0
    is_last = ordered.end[chosen] == len(ordered)
    earlier = np.where(is_first, before.partition.rows, 0)
    earlier_peers = np.where(ordered.peer_start[chosen] == 0, before.peers.rows, 0)
    later_peers = np.where(ordered.peer_end[chosen] == len(ordered), after.peers.rows, 0)
    return windows.Places(
        inside.row + earlier,
        inside.rows + earlier + np.where(is_last, after.partition.rows, 0),
        inside.first_peer + earlier - earlier_peers,
        inside.end_of_peers + earlier + later_peers,
        inside.group + np.where(is_first, before.partition.groups, 0),
    )


# --------------------------------------------------------------------------------------- other rows' values


class Shifted:
    """lag and lead by a constant."""

    needs_before = needs_after = False

    def __init__(self, call: WindowCall, index: int, offset: int) -> None:
        self._call = call
        self.index = index
        self._move = offset if call.call.function == "lead" else -offset

    def fold(self, ordered: InOrder, low: int, high: int) -> None:
        """All rows that it looks at are held."""

    def merged(self, before: None, after: None) -> None:
        """All rows that it looks at are held."""

    def _counted(self, ordered: InOrder) -> Bools:
        return valued(ordered.scope.evaluate(self._call.call.args[0]), self._call)

    def open_from(self, ordered: InOrder) -> int:
        rows = len(ordered)
        if self._move <= 0 or not rows:
            return rows
        start = int(ordered.start[-1])
        places = start + np.flatnonzero(self._counted(ordered)[start:])
        return int(places[-self._move]) if self._move <= len(places) else start

    def needed_from(self, ordered: InOrder, row: int) -> int:
        if self._move >= 0:
            return row
        start = int(ordered.start[row])
        places = start + np.flatnonzero(self._counted(ordered)[start:row])
        return int(places[self._move]) if -self._move <= len(places) else start

    def values(self, ordered: InOrder, chosen: slice, before: Around, after: Around) -> pa.Array:
        return windows.FUNCTIONS[self._call.call.function](ordered, self._call)[chosen]


# ------------------------------------------------------------------------------------------------- frames


class _Framed:
    """What functions of a frame share: where it is, and at which ends it goes on outside of the stretch."""

    def __init__(self, call: WindowCall, index: int) -> None:
        self._call = call
        self.index = index
        self.needs_before = _opens(call, at_start=True)
        self.needs_after = _opens(call, at_start=False)

    def open_from(self, ordered: InOrder) -> int:
        low, high = ordered.ranges(self._call.frame)
        rows = len(ordered)
        is_open = np.zeros(rows, np.bool_)
        if self._call.frame.end.kind in _OFFSETS:
            is_open |= high >= rows
        if self._call.frame.start.kind in _OFFSETS:
            is_open |= low >= rows
        found = np.flatnonzero(is_open & (ordered.end == rows))
        return int(found[0]) if len(found) else rows

    def needed_from(self, ordered: InOrder, row: int) -> int:
        low, high = ordered.ranges(self._call.frame)
        # What is before an end of frames that have no start in the stretch is folded.
        return min(row, int((high if self.needs_before else low)[row]))

    def _goes_on(self, ordered: InOrder, chosen: slice, side: Around, *, at_start: bool) -> tuple[Bools, Counted]:
        """Which rows' frames go on at an end of the stretch, and in what."""
        frame, rows = self._call.frame, len(ordered)
        bound = frame.start if at_start else frame.end
        if not _opens(self._call, at_start=at_start):
            return np.zeros(rows, np.bool_)[chosen], side.partition
        if bound.kind is BoundKind.CURRENT_ROW:
            met = ordered.peer_start == 0 if at_start else ordered.peer_end == rows
            return (met & (side.peers.rows > 0))[chosen], side.peers
        met = ordered.start == 0 if at_start else ordered.end == rows
        return (met & (side.partition.rows > 0))[chosen], side.partition


class Aggregated(_Framed):
    """An aggregate over frames."""

    def __init__(self, call: WindowCall, index: int) -> None:
        super().__init__(call, index)
        self._step = windows.aggregate_step(call.call)
        self._merge = AGGREGATES[self._step.function][1]

    def fold(self, ordered: InOrder, low: int, high: int) -> States:
        arg, kept = windows.argument_of(ordered, self._call), kept_of(ordered, self._call)
        frame = np.array([[low, high]], np.int64)
        return windows.states_over(self._step, False, arg, frame, kept)

    def merged(self, before: States, after: States) -> States:
        both = [pa.concat_arrays(pair) for pair in zip(before, after, strict=True)]
        return self._merge(self._step, both, Groups(np.zeros(2, np.int64), 1))

    def values(self, ordered: InOrder, chosen: slice, before: Around, after: Around) -> pa.Array:
        low, high = ordered.ranges(self._call.frame)
        left, earlier = self._goes_on(ordered, chosen, before, at_start=True)
        right, later = self._goes_on(ordered, chosen, after, at_start=False)
        frames, which = _runs(np.stack([low[chosen], high[chosen], left, right], axis=1).astype(np.int64))
        arg, kept = windows.argument_of(ordered, self._call), kept_of(ordered, self._call)
        states = windows.states_over(self._step, self._call.call.distinct, arg, frames[:, :2], kept)
        states = self._with(states, frames, earlier, later)
        return AGGREGATES[self._step.function][2](self._step, states).take(arrays.from_numpy(which))

    def _with(self, states: States, frames: Rows, earlier: Counted, later: Counted) -> States:
        """The states of the frames with those of what they have outside of the stretch."""
        left, right = np.flatnonzero(frames[:, 2]), np.flatnonzero(frames[:, 3])
        if not len(left) and not len(right):
            return states
        ids = np.concatenate([left, np.arange(len(frames)), right])
        parts = [states]
        if len(left):
            parts.insert(0, _repeated(earlier.states[self.index], len(left)))
        if len(right):
            parts.append(_repeated(later.states[self.index], len(right)))
        together = [pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)]
        return self._merge(self._step, together, Groups(ids, len(frames)))


def _repeated(states: States, times: int) -> States:
    return [state.take(arrays.from_numpy(np.zeros(times, np.int64))) for state in states]


def _runs(rows: Rows) -> tuple[Rows, Rows]:
    """Rows without those that equal the one before, and which of them each row is."""
    new = np.ones(len(rows), np.bool_)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[new], np.cumsum(new) - 1


class Ends(NamedTuple):
    """Of the kept rows of a run: how many, the values of the first few, and of the last (an array of one or none)."""

    rows: int
    first: pa.Array
    last: pa.Array


class Picked(_Framed):
    """first_value, last_value and nth_value: the kept row of a frame with a constant number, or with -1 the last."""

    def __init__(self, call: WindowCall, index: int, number: int) -> None:
        super().__init__(call, index)
        self._number = number

    def _kept(self, ordered: InOrder) -> tuple[pa.Array, Rows]:
        """The values of all rows, and the places of those that count."""
        values = plain(ordered.scope.evaluate(self._call.call.args[0]))
        return values, np.flatnonzero(kept_of(ordered, self._call) & valued(values, self._call))

    def fold(self, ordered: InOrder, low: int, high: int) -> Ends:
        values, places = self._kept(ordered)
        places = places[np.searchsorted(places, low) : np.searchsorted(places, high)]
        return Ends(len(places), picked(values, places[: max(0, self._number)]), picked(values, places[-1:]))

    def merged(self, before: Ends, after: Ends) -> Ends:
        first = pa.concat_arrays([before.first, after.first]).slice(0, max(0, self._number))
        return Ends(before.rows + after.rows, first, after.last if after.rows else before.last)

    def values(self, ordered: InOrder, chosen: slice, before: Around, after: Around) -> pa.Array:
        values, places = self._kept(ordered)
        left, earlier = self._goes_on(ordered, chosen, before, at_start=True)
        right, later = self._goes_on(ordered, chosen, after, at_start=False)
        low, high = (edge[chosen] for edge in ordered.ranges(self._call.frame))
        first, last = np.searchsorted(places, low), np.searchsorted(places, high)
        ends = [side.states[self.index] if side.rows else None for side in (earlier, later)]
        pick = self._nth if self._number > 0 else self._last
        return pick(values, places, (first, last), (left, right), ends)

    def _nth(
        self, values: pa.Array, places: Rows, between: tuple[Rows, Rows], goes_on: tuple[Bools, Bools],
        ends: list[Ends | None],
    ) -> pa.Array:  # fmt: skip
        before, after = ends
        skipped = np.where(goes_on[0], 0 if before is None else before.rows, 0)
        index = self._number - 1 - skipped
        inside = between[1] - between[0]
        rows = windows.at(places, between[0] + index, (index >= 0) & (index < inside))
        pool = [values]
        if before is not None:
            rows[index < 0] = len(values) + self._number - 1
            pool.append(before.first)
        if after is not None:
            beyond = index - inside
            found = goes_on[1] & (beyond >= 0) & (beyond < min(after.rows, len(after.first)))
            rows[found] = sum(map(len, pool)) + beyond[found]
            pool.append(after.first)
        return picked(pa.concat_arrays(pool), rows)

    def _last(
        self, values: pa.Array, places: Rows, between: tuple[Rows, Rows], goes_on: tuple[Bools, Bools],
        ends: list[Ends | None],
    ) -> pa.Array:  # fmt: skip
        before, after = ends
        some = between[1] > between[0]
        rows = windows.at(places, between[1] - 1, some)
        pool = [values]
        if before is not None and before.rows:
            rows[goes_on[0] & ~some] = len(values)
            pool.append(before.last)
        if after is not None and after.rows:
            rows[goes_on[1]] = sum(map(len, pool))
            pool.append(after.last)
        return picked(pa.concat_arrays(pool), rows)
