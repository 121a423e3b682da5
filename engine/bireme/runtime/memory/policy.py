"""What to give up when a tier is short of room: which batches to demote, which states to hand over. Decides only.

How a copy is made is `mover`; when to ask is `executor`; what is free is `ledger`.

Rules: batches that somebody has are not among the candidates. First go those that no ready task waits for: those whose
home, by the planner's hint, is a lower tier anyway, then those of the youngest query, then with the furthest next use.
Inputs of ready tasks go last, from the back of the queue, and never to admit a producer. The last victim is the
smallest that still covers what is missing, so that one row too many does not demote another whole batch.

What a move costs whatever its bytes is most of moving a short batch, so that short ones of a partition go together, as
one. While there may be more of a partition, nobody reads it; of those that are short of what is worth a move, those
with the most go, and not those that are read last: these would go over and over, a batch at a time.

Between the two come states, the largest first: a pipeline hands over what it keeps as batches, which can then be
demoted. One that is hardly worth it comes after everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from bireme.data.ids import QueryId
from bireme.units import MIB

# So many bytes, but no more than such a part of the memory, are worth a move.
_MOVE_BYTES: Final = MIB
_MOVES_IN_MEMORY: Final = 64


class Candidate(NamedTuple):
    """A batch that could be demoted, or some that go as one. `queued`: a task that is ready waits for it;
    `homed_below`: the planner would have it on a lower tier; `is_growing`: it is short, and more may come to go with
    it. `handle` is the executor's own.
    """

    query: QueryId
    next_use: int
    place: int
    nbytes: int
    queued: bool
    homed_below: bool
    handle: Any
    is_growing: bool = False


def worth_a_move(limit: int) -> int:
    """Bytes from which on batches need not be joined to be moved, of a tier of `limit` bytes."""
    return max(1, min(_MOVE_BYTES, limit // _MOVES_IN_MEMORY))


def bundles(sizes: Sequence[int], enough: int) -> list[slice]:
    """Batches of these sizes in bundles of at least `enough` bytes and less than twice as much, save for batches that
    have as much alone, and for what is left before those and at the end.
    """
    found: list[slice] = []
    start = held = 0
    for place, nbytes in enumerate(sizes):
        if nbytes >= enough and held:
            found.append(slice(start, place))
            start, held = place, 0
        held += nbytes
        if held >= enough:
            found.append(slice(start, place + 1))
            start, held = place + 1, 0
    return [*found, slice(start, len(sizes))] if start < len(sizes) else found


def choose_demotions(candidates: Sequence[Candidate], shortfall: int, *, spare_queued: bool) -> list[Candidate]:
    """Victims in order, covering `shortfall` bytes if the candidates can; empty when nothing may move."""
    eligible = [candidate for candidate in candidates if candidate.nbytes and not (spare_queued and candidate.queued)]
    eligible.sort(key=_reluctance)
    chosen: list[Candidate] = []
    missing = shortfall
    for candidate in eligible:
        if missing <= 0:
            break
        chosen.append(candidate)
        missing -= candidate.nbytes
    if chosen and missing < 0 and not chosen[-1].is_growing:
        chosen[-1] = _right_size(chosen[-1], eligible[len(chosen) :], chosen[-1].nbytes + missing)
    return chosen


def _reluctance(candidate: Candidate) -> tuple[bool, bool, int, int, bool, int, int]:
    size = candidate.nbytes if candidate.is_growing else 0
    use = -candidate.query, -candidate.next_use
    return candidate.queued, not candidate.homed_below, *use, candidate.is_growing, -size, -candidate.place


def _right_size(last: Candidate, rest: Sequence[Candidate], needed: int) -> Candidate:
    """The smallest of `last` and the unchosen ones of its class that gives `needed` bytes."""
    fitting = [
        other
        for other in rest
        if other.queued is last.queued and needed <= other.nbytes < last.nbytes and not other.is_growing
    ]
    return min(fitting, key=lambda other: other.nbytes, default=last)


class State(NamedTuple):
    """What one pipeline could give up of its state; `handle` is the executor's own."""

    query: QueryId
    nbytes: int
    handle: Any


class Need(IntEnum):
    """How badly room is wanted: to stay below the watermark, to admit a producer, or for what must go on."""

    WATERMARK = 0
    PRODUCE = 1
    CONSUME = 2


# What a state must give, as a part of its tier, to be worth handing over. Rows that come later find no group there.
_STATE_SHARE_MIN: Final = {Need.WATERMARK: 1 / 8, Need.PRODUCE: 1 / 32, Need.CONSUME: 1 / 32}


def next_resort(
    candidates: Sequence[Candidate], states: Sequence[State], shortfall: int, *, need: Need, limit: int
) -> list[Candidate] | State:
    """What to do next for `shortfall` bytes of a tier of `limit` bytes: batches to demote, or a state to have handed
    over, which makes batches of it; empty when nothing is left to do.
    """
    idle = choose_demotions(candidates, shortfall, spare_queued=True)
    if idle:
        return idle
    most = max(states, key=lambda state: (state.nbytes, state.query), default=None)
    if most is not None and most.nbytes >= limit * _STATE_SHARE_MIN[need]:
        return most
    if need is not Need.CONSUME:
        return []
    return choose_demotions(candidates, shortfall, spare_queued=False) or most or []


def excess(held: int, limit: int, *, start: float, stop: float) -> int:
    """Bytes to give up so that a tier above its `start` watermark falls to its `stop` watermark; 0 below `start`."""
    return held - int(limit * stop) if held > limit * start else 0
