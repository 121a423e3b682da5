"""Which batches to demote when a tier is short of room. Decides only.

How a copy is made is `mover`; when to ask is `executor`; what is free is `ledger`.

Rules: batches that somebody has are not among the candidates. First go those that no ready task waits for: those whose
home, by the planner's hint, is a lower tier anyway, then those of the youngest query, then with the furthest next use.
Inputs of ready tasks go last, from the back of the queue, and never to admit a producer. The last victim is the
smallest that still covers what is missing, so that one row too many does not demote another whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bireme.data.ids import QueryId


class Candidate(NamedTuple):
    """A batch that could be demoted. `queued`: a task that is ready waits for it; `homed_below`: the planner would have
    it on a lower tier. `handle` is the executor's own.
    """

    query: QueryId
    next_use: int
    place: int
    nbytes: int
    queued: bool
    homed_below: bool
    handle: Any


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
    if chosen and missing < 0:
        chosen[-1] = _right_size(chosen[-1], eligible[len(chosen) :], chosen[-1].nbytes + missing)
    return chosen


def _reluctance(candidate: Candidate) -> tuple[bool, bool, int, int, int]:
    return candidate.queued, not candidate.homed_below, -candidate.query, -candidate.next_use, -candidate.place


def _right_size(last: Candidate, rest: Sequence[Candidate], needed: int) -> Candidate:
    """The smallest of `last` and the unchosen ones of its class that gives `needed` bytes."""
    fitting = [other for other in rest if other.queued is last.queued and needed <= other.nbytes < last.nbytes]
    return min(fitting, key=lambda other: other.nbytes, default=last)


def relief(held: int, limit: int, *, start: float, stop: float) -> int:
    """Bytes to demote so that a tier above its `start` watermark falls to its `stop` watermark; 0 below `start`."""
    return held - int(limit * stop) if held > limit * start else 0
