"""Room on a tier, awaited: reserves when it fits, else waits in order until bytes come back. Drives `ledger`.

Whoever waits here is also a request to the Memory executor, which makes room by moving batches (`demand`). Progress
beats estimates: when nothing can move and nothing runs, the first in line is let through over the limit; when
something runs but nothing has come back for `stall_seconds_max`, the smallest is, one at a time, if the process really
has so much to `spare`, or has had the patience of many stalls. A request larger than the whole tier is cut to it, so it
runs alone rather than never.

Only a worker whose states and batches alone are over the limit, with nothing left to move, refuses: OutOfRoom, or
SpillFailed where batches could move if the spill folder took them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bireme.data.ids import PipelineId, QueryId
from bireme.data.tier import Tier
from bireme.errors import BiremeError, OutOfRoom, SpillFailed
from bireme.observe.event import NO_CAUSE, Overbooked, RoomGiven, RoomWanted
from bireme.observe.recorder import Recorder
from bireme.runtime.memory.ledger import Ledger, Reservation, Use
from bireme.units import format_bytes

# So many stalls on end prove that what runs waits for something else than its own end.
_STALLS_MAX: Final = 20


class Purpose(Enum):
    """Why someone wants room. What is queued for tasks is never demoted to PRODUCE more of it."""

    CONSUME = "to consume"
    PRODUCE = "to produce"


@dataclass(slots=True)
class Waits:
    """Who waited for room: how often, how long in all, and how often they were let through over the limit."""

    count: int = 0
    seconds: float = 0.0
    forced: int = 0


class Want:
    """One request in line."""

    __slots__ = ("event", "forced", "future", "nbytes", "pipeline", "purpose", "query", "since", "tier", "use")

    def __init__(
        self, tier: Tier, nbytes: int, use: Use, purpose: Purpose, query: QueryId, pipeline: PipelineId | None
    ) -> None:
        self.tier = tier
        self.nbytes = nbytes
        self.use = use
        self.purpose = purpose
        self.query = query
        self.pipeline = pipeline
        self.event = NO_CAUSE
        self.forced = ""
        self.since = asyncio.get_running_loop().time()
        self.future: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"<Want {format_bytes(self.nbytes)} of {self.tier.name} {self.purpose.value}, query {self.query}>"


class Room:
    """`demand` hears of each new want; `busy` tells whether something runs that will give bytes back, or holds batches
    in place only for now; whoever does so calls `retry` at its end. `came_back` is called when bytes did.
    """

    def __init__(self, ledger: Ledger, recorder: Recorder, *, stall_seconds_max: float) -> None:
        self.ledger = ledger
        self.demand: Callable[[Want], None] = _unheard
        self.busy: Callable[[], bool] = _never
        self.came_back: Callable[[], None] = _silent
        self.spare: Callable[[], int] = _plenty
        self._recorder = recorder
        self._stall_seconds_max = stall_seconds_max
        self._wants: list[Want] = []
        self._timer: asyncio.TimerHandle | None = None
        self._stalls = 0
        self._forced: Reservation | None = None
        self._given: list[Want] = []
        self._serving = False
        self.waits = {purpose: Waits() for purpose in Purpose}
        ledger.shrunk = self._shrunk

    def __repr__(self) -> str:
        return f"<Room: {self.ledger!r}; {len(self._wants)} waiting>"

    @property
    def wants(self) -> tuple[Want, ...]:
        """Who waits, in order."""
        return tuple(self._wants)

    def reserve_nowait(self, tier: Tier, nbytes: int, use: Use) -> Reservation | None:
        """A reservation, or None where it does not fit now."""
        return self.ledger.reserve(tier, nbytes, use)

    async def reserve(
        self,
        tier: Tier,
        nbytes: int,
        use: Use,
        *,
        purpose: Purpose,
        query: QueryId,
        pipeline: PipelineId | None = None,
    ) -> Reservation:
        """A reservation, waiting for it. Raises OutOfRoom or SpillFailed where nothing can move."""
        nbytes = min(nbytes, self.ledger.limits[tier])
        if not self._wants:
            granted = self.ledger.reserve(tier, nbytes, use)
            if granted is not None:
                return granted
        want = Want(tier, nbytes, use, purpose, query, pipeline)
        self._enqueue(want)
        try:
            return await want.future
        except asyncio.CancelledError:
            if want.future.done() and not want.future.cancelled() and want.future.exception() is None:
                want.future.result().release()
            raise
        finally:
            if want in self._wants:
                self._wants.remove(want)
            self._arm()
            self._tell_end(want)
            self._taken(want)

    def _taken(self, want: Want) -> None:
        """Whoever was given room goes on from here; what others were told meanwhile may be wrong now."""
        if want in self._given:
            self._given.remove(want)
            if self._wants and not self._given:
                asyncio.get_running_loop().call_soon(self.retry)

    def _give(self, want: Want, granted: Reservation) -> None:
        want.future.set_result(granted)
        self._given.append(want)

    def _tell_end(self, want: Want) -> None:
        future = want.future
        given = future.done() and not future.cancelled() and future.exception() is None
        how = (want.forced or "room came") if given else "given up"
        seconds = asyncio.get_running_loop().time() - want.since
        waits = self.waits[want.purpose]
        waits.count += 1
        waits.seconds += seconds
        waits.forced += bool(want.forced)
        self._recorder.record(
            RoomGiven(want.query, want.pipeline, want.tier, want.nbytes, seconds, want.purpose.value, how, want.event)
        )

    def refuse(self, want: Want, spill_fault: Exception | None = None) -> None:
        """The Memory executor cannot move anything for `want`, because of `spill_fault` where there is one. It waits on
        while tasks run; else it is let through.
        """
        self._serve()
        # Who was given room and has not come to use it yet holds it only for now, like what runs.
        if want.future.done() or self.busy() or self._given:
            return
        if want.purpose is Purpose.PRODUCE:
            # Nothing runs, so nothing queued will be consumed unless room is made at its cost.
            want.purpose = Purpose.CONSUME
            self.demand(want)
            return
        fault = self._truly_full(want, spill_fault)
        if fault is not None:
            want.future.set_exception(fault)
        else:
            self._overbook(want, "nothing runs and nothing can move")

    def retry(self) -> None:
        """Something has ended: if nothing runs any more, asks again for whoever is first in line."""
        if self._wants and not self.busy():
            self.demand(self._wants[0])

    def _enqueue(self, want: Want) -> None:
        if want.purpose is Purpose.CONSUME:
            ahead = [index for index, other in enumerate(self._wants) if other.purpose is Purpose.PRODUCE]
            self._wants.insert(ahead[0] if ahead else len(self._wants), want)
        else:
            self._wants.append(want)
        ledger = self.ledger
        want.event = self._recorder.record(
            RoomWanted(
                want.query,
                want.pipeline,
                want.tier,
                want.nbytes,
                ledger.totals[want.tier],
                ledger.limits[want.tier],
                want.purpose.value,
            )
        )
        self._arm()
        self.demand(want)

    def _shrunk(self, tier: Tier) -> None:
        if self._wants:
            self._serve()
            self._arm(restart=True)
        self.came_back()

    def _serve(self) -> bool:
        """Grants from the front of the line while it fits. Says whether someone was granted."""
        if self._serving:
            return False  # a grant has moved the limit; whoever makes it goes on as long as anything fits
        self._serving = True
        served = False
        try:
            while self._wants:
                want = self._wants[0]
                if not want.future.done():
                    granted = self.ledger.reserve(want.tier, want.nbytes, want.use)
                    if granted is None:
                        break
                    self._give(want, granted)
                    served = True
                self._wants.pop(0)
        finally:
            self._serving = False
        return served

    def _truly_full(self, want: Want, spill_fault: Exception | None) -> BiremeError | None:
        ledger, tier = self.ledger, want.tier
        states, batches = ledger.used(tier, Use.STATE), ledger.used(tier, Use.BATCH)
        if states + batches <= ledger.limits[tier]:
            return None
        story = (
            f"the memory limit of {format_bytes(ledger.limits[tier])} is used up: join tables, groups and sorts hold "
            f"{format_bytes(states)}, batches {format_bytes(batches)}"
        )
        if spill_fault is not None:
            fault = SpillFailed(f"{story}, and nothing more can be spilled: {spill_fault}")
            fault.__cause__ = spill_fault
            return fault
        return OutOfRoom(f"{story}, and nothing of it can be moved; raise the memory limit")

    def _overbook(self, want: Want, reason: str) -> None:
        # Out of line first: as the ledger changes, those in line may be served.
        if want in self._wants:
            self._wants.remove(want)
        granted = self.ledger.take(want.tier, want.nbytes, want.use)
        self._forced = granted
        over = -self.ledger.free(want.tier)
        self._recorder.record(Overbooked(want.query, want.tier, want.nbytes, over, reason, want.event))
        want.forced = reason
        self._give(want, granted)

    def _arm(self, *, restart: bool = False) -> None:
        """Keeps the stall timer running while someone waits, from the last time that bytes came back."""
        if restart or not self._wants:
            self._stalls = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        if self._wants and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._stall_seconds_max, self._stalled)

    def _stalled(self) -> None:
        self._timer = None
        waiting = [want for want in self._wants if not want.future.done()]
        if waiting and (self._forced is None or self._forced.nbytes == 0 or not self.busy()):
            smallest = min(waiting, key=lambda want: want.nbytes)
            self._stalls += 1
            if not self.busy() or self._stalls >= _STALLS_MAX or smallest.nbytes <= self.spare():
                seconds = self._stalls * self._stall_seconds_max
                self._stalls = 0
                self._overbook(smallest, f"nothing came back for {seconds:g} s")
        self._arm()


def _unheard(want: Want) -> None:
    """No Memory executor yet."""


def _never() -> bool:
    return False


def _plenty() -> int:
    return 1 << 60


def _silent() -> None:
    """Nobody takes what is left over."""
