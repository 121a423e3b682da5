"""Which rows a window function sees: partitions, peers and frames, as ranges over the rows in window order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from bireme.backends.reference import calendar
from bireme.backends.reference.expressions import Scope
from bireme.backends.reference.keys import Rows, group_rows, order_code, sort_rows
from bireme.backends.reference.vectors import Bools, floats, integers, intervals, nulls_of
from bireme.data import arrays
from bireme.data.types import DATE, INTERVAL, DataType, Kind
from bireme.errors import DomainFault, Unsupported
from bireme.plan.expr import Bound, BoundKind, Exclusion, Expr, Frame, FrameUnit, Interval, SortKey, WindowCall
from bireme.plan.functions.texts import DAYS_A_MONTH, NANOSECONDS_A_DAY

_DAY_MICROS = 86_400_000_000


class Ordered:
    """The rows of a batch in window order; the arrays are by place in that order, ends are exclusive.

    `rows` are the batch's rows; `start` and `end` bound the partition of a place, `peer_start` and `peer_end` its
    peers.
    """

    def __init__(self, scope: Scope, rows: int, call: WindowCall) -> None:
        self.scope = scope
        self.keys = [scope.evaluate(key.expr) for key in call.order]
        partition, _ = group_rows([scope.evaluate(expr) for expr in call.partition], rows)
        columns = [arrays.from_numpy(partition), *self.keys]
        descending = [False, *(key.descending for key in call.order)]
        nulls_first = [False, *(key.nulls_first for key in call.order)]
        self.rows: Rows = sort_rows(columns, descending, nulls_first, rows)
        new = _changes([arrays.from_numpy(partition)], self.rows)
        self._take_runs(new, new | _changes(self.keys, self.rows) if call.order else new)

    def _take_runs(self, new: Bools, peers: Bools) -> None:
        """Partitions begin where `new`, groups of peers where `peers`."""
        self.start, self.end = _ranges(new)
        self.peer_start, self.peer_end = _ranges(peers)
        self.peer_number = np.cumsum(peers) - 1

    def __len__(self) -> int:
        return len(self.rows)

    def sorted(self, array: pa.Array) -> pa.Array:
        """A column of the batch in window order."""
        return array.take(arrays.from_numpy(self.rows))

    def unsorted(self, array: pa.Array) -> pa.Array:
        """A column in window order, in the order of the batch."""
        back = np.empty(len(self.rows), np.int64)
        back[self.rows] = np.arange(len(self.rows))
        return array.take(arrays.from_numpy(back))


class InOrder(Ordered):
    """Rows that come in window order; `beginnings` of them are given. Frames are found once."""

    def __init__(self, scope: Scope, order: tuple[SortKey, ...], beginnings: tuple[Bools, Bools]) -> None:
        self.scope = scope
        self.keys = [scope.evaluate(key.expr) for key in order]
        self._order = order
        self.rows = np.arange(len(beginnings[0]), dtype=np.int64)
        self._take_runs(*beginnings)
        self._frames: dict[Frame, tuple[Rows, Rows]] = {}

    def sorted(self, array: pa.Array) -> pa.Array:
        return array

    def unsorted(self, array: pa.Array) -> pa.Array:
        return array

    def ranges(self, frame: Frame) -> tuple[Rows, Rows]:
        """`frame_ranges`."""
        found = self._frames.get(frame)
        if found is None:
            found = self._frames[frame] = frame_ranges(self, frame, self._order)
        return found


def beginnings(scope: Scope, rows: int, partition: tuple[Expr, ...], order: tuple[SortKey, ...]) -> tuple[Bools, Bools]:
    """Where partitions, and where groups of peers begin, of rows that come in their order."""
    places = np.arange(rows, dtype=np.int64)
    new = _changes([scope.evaluate(expr) for expr in partition], places)
    return new, new | _changes([scope.evaluate(key.expr) for key in order], places)


def _changes(columns: list[pa.Array], rows: Rows) -> Bools:
    """Where a place differs from the one before it in one of the columns."""
    changed = np.zeros(len(rows), np.bool_)
    changed[:1] = True
    for column in columns:
        code, missing = order_code(column)[rows], nulls_of(column)[rows]
        code = np.where(missing, 0, code)
        changed[1:] |= (code[1:] != code[:-1]) | (missing[1:] != missing[:-1])
    return changed


def _ranges(new: Bools) -> tuple[Rows, Rows]:
    """Start and end of the run that each place is in, runs beginning where `new`."""
    starts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    ends = np.append(starts[1:], len(new))
    return starts[run], ends[run]


def frame_ranges(ordered: Ordered, frame: Frame, order: tuple[SortKey, ...]) -> tuple[Rows, Rows]:
    """First place (inclusive) and last (exclusive) of the frame of each place; empty where the end is not after it."""
    low = _edge(ordered, frame.unit, frame.start, order, is_start=True)
    high = _edge(ordered, frame.unit, frame.end, order, is_start=False)
    low = np.clip(low, ordered.start, ordered.end)
    high = np.clip(high, ordered.start, ordered.end)
    return low, np.maximum(low, high)


def frame_parts(ordered: Ordered, frame: Frame, order: tuple[SortKey, ...]) -> list[tuple[Rows, Rows]]:
    """The frame of each place as ranges that follow each other, without what it excludes."""
    low, high = frame_ranges(ordered, frame, order)
    if frame.exclusion is Exclusion.NOTHING:
        return [(low, high)]
    own = np.arange(len(ordered))
    alone = (np.clip(own, low, high), np.clip(own + 1, low, high))
    if frame.exclusion is Exclusion.CURRENT_ROW:
        return [(low, alone[0]), (alone[1], high)]
    before, after = (low, np.clip(ordered.peer_start, low, high)), (np.clip(ordered.peer_end, low, high), high)
    return [before, after] if frame.exclusion is Exclusion.GROUP else [before, alone, after]


def _edge(ordered: Ordered, unit: FrameUnit, bound: Bound, order: tuple[SortKey, ...], *, is_start: bool) -> Rows:
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return ordered.start
        case BoundKind.UNBOUNDED_FOLLOWING:
            return ordered.end
        case BoundKind.CURRENT_ROW:
            if unit is FrameUnit.ROWS:
                return np.arange(len(ordered)) + (0 if is_start else 1)
            return ordered.peer_start if is_start else ordered.peer_end
    assert bound.offset is not None
    sign = -1 if bound.kind is BoundKind.PRECEDING else 1
    if unit is FrameUnit.RANGE:
        return _range_edge(ordered, order, bound.offset.value, bound.offset.type, sign, is_start)
    count = sign * _count(bound.offset.value)
    if unit is FrameUnit.ROWS:
        return np.arange(len(ordered)) + count + (0 if is_start else 1)
    return _group_edge(ordered, count, is_start)


def _count(offset: Any) -> int:
    if not isinstance(offset, int) or offset < 0:
        raise DomainFault(f"the offset of a frame must be a whole number that is not negative, not {offset}")
    return min(offset, 1 << 40)


def _group_edge(ordered: Ordered, count: int, is_start: bool) -> Rows:
    """The edge of the group of peers so many groups away; beyond the last group where there is none."""
    starts = np.flatnonzero(np.diff(ordered.peer_number, prepend=-1))
    ends = np.append(starts[1:], len(ordered))
    wanted = ordered.peer_number + count
    reached = np.clip(wanted, 0, max(0, len(starts) - 1))
    if is_start:
        return np.where(wanted >= len(starts), len(ordered), starts[reached])
    return np.where(wanted < 0, 0, ends[reached])


# ------------------------------------------------------------------------------------------------ RANGE


def _range_edge(
    ordered: Ordered, order: tuple[SortKey, ...], offset: Any, offset_type: DataType, sign: int, is_start: bool
) -> Rows:
    """The first place whose key is not before (last place whose key is not after) the current key moved by the offset.

    Places whose key is NULL see their peers.
    """
    if len(order) != 1:
        raise Unsupported("a RANGE frame with an offset needs exactly one key in its ORDER BY")
    kind, down = order[0].expr.type, order[0].descending
    column = ordered.sorted(ordered.keys[0])
    missing = nulls_of(column)
    points = _points(column, kind)
    move = _mover(column, kind, offset, offset_type, -sign if down else sign)
    compared = [-point if down else point for point in points]
    edge = (ordered.peer_start if is_start else ordered.peer_end).copy()
    bisect = bisect_left if is_start else bisect_right
    first, last = _valued(ordered, missing)
    for place in np.flatnonzero(~missing).tolist():
        target = move(place)
        edge[place] = bisect(compared, -target if down else target, int(first[place]), int(last[place]))
    return edge


def _valued(ordered: Ordered, missing: Bools) -> tuple[Rows, Rows]:
    """Start and end of those places in the partition of each whose keys are not NULL: NULLs are before or after all."""
    before = np.concatenate(([0], np.cumsum(missing)))
    nulls = before[ordered.end] - before[ordered.start]
    come_first = missing[ordered.start]
    return ordered.start + np.where(come_first, nulls, 0), ordered.end - np.where(come_first, 0, nulls)


def _points(column: pa.Array, kind: DataType) -> list[Any]:
    """The keys as numbers; dates in microseconds, intervals as long as they compare, NaN beyond infinity's side."""
    if kind.is_float:
        return [float("inf") if value != value else value for value in floats(column).tolist()]
    if kind is INTERVAL:
        return [0 if span is None else _length(span) for span in intervals(column)]
    values = integers(column).tolist()
    return [value * _DAY_MICROS for value in values] if kind is DATE else values


def _length(span: Interval) -> int:
    """Nanoseconds, a month being 30 days."""
    return (span.months * DAYS_A_MONTH + span.days) * NANOSECONDS_A_DAY + span.nanoseconds


def _mover(column: pa.Array, kind: DataType, offset: Any, offset_type: DataType, sign: int) -> Callable[[int], Any]:
    """What gives the key of a place moved by the offset."""
    points = _points(column, kind)
    if isinstance(offset, Interval):
        if min(offset) < 0:
            raise DomainFault("the offset of a RANGE frame must not be negative")
        if kind is INTERVAL:
            return lambda place: points[place] + sign * _length(offset)
        counts = integers(column).tolist()
        span = Interval(*(sign * part for part in offset))
        return lambda place: calendar.move(counts[place], kind, span)
    if offset is None or offset < 0:
        raise DomainFault("the offset of a RANGE frame must not be negative")
    if kind.is_float:
        return lambda place: points[place] + sign * float(offset)
    if kind.kind is Kind.TIMESTAMP or not (
        offset_type.is_integer or offset_type.kind is Kind.DECIMAL or offset_type.is_float
    ):
        raise Unsupported(f"a RANGE frame over {kind} needs an interval as its offset")
    step = Fraction(offset) * (_DAY_MICROS if kind is DATE else 10**kind.scale)
    return lambda place: points[place] + sign * step
