"""The Memory executor: makes room on DEVICE for those who wait, and keeps it below its watermark.

It asks `policy` whom to move and has `mover` move them; it decides nothing itself. What is only cached goes before
anything is moved. Requests on demand are
correctness: served one at a time, until the waiting reservation fits. The watermark is an optimisation and never
takes what is queued.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from bireme.data.ids import EventId
from bireme.data.tier import Tier
from bireme.observe.event import NO_CAUSE
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.column_cache import ColumnCache
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.policy import Candidate, choose_demotions, relief
from bireme.runtime.memory.room import Purpose, Room, Want

Queued = Callable[[BatchHolder, Entry], bool]


class MemoryExecutor:
    """`holders` gives every live holder of the worker; `queued` tells whether a ready task waits for a batch."""

    name = "memory"

    def __init__(
        self,
        room: Room,
        mover: Mover,
        *,
        cache: ColumnCache,
        holders: Callable[[], Iterable[BatchHolder]],
        queued: Queued,
        watermark_start: float,
        watermark_stop: float,
    ) -> None:
        self._room = room
        self._mover = mover
        self._cache = cache
        self._holders = holders
        self._queued = queued
        self._start = watermark_start
        self._stop = watermark_stop
        self._requests: deque[Want] = deque()
        self._wake = asyncio.Event()
        self._relief_tried_at = 0
        self.moving = 0
        room.demand = self._demand
        room.ledger.grown = self._grown

    def __repr__(self) -> str:
        return f"<MemoryExecutor: {len(self._requests)} requests, {self.moving} moves>"

    async def run(self) -> None:
        """Serves until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._requests:
                await self._serve(self._requests.popleft())
            if (missing := self._relief()) > 0:
                await self._relieve(missing)

    def _demand(self, want: Want) -> None:
        self._requests.append(want)
        self._wake.set()

    def _held(self) -> int:
        ledger = self._room.ledger
        return ledger.totals[Tier.DEVICE] - ledger.used(Tier.DEVICE, Use.TASK)

    def _relief(self) -> int:
        return relief(self._held(), self._room.ledger.limits[Tier.DEVICE], start=self._start, stop=self._stop)

    def _grown(self, tier: Tier) -> None:
        if tier is Tier.DEVICE and self._relief() > 0 and self._held() > self._relief_tried_at:
            self._wake.set()

    async def _relieve(self, missing: int) -> None:
        # Back off where nothing can move: not again before noticeably more is held.
        self._relief_tried_at = self._held() + self._room.ledger.limits[Tier.DEVICE] // 20
        if await self._demote(missing, spare_queued=True, cause=NO_CAUSE):
            self._relief_tried_at = 0

    async def _serve(self, want: Want) -> None:
        ledger = self._room.ledger
        while not want.future.done() and not ledger.fits(want.tier, want.nbytes):
            if want.tier is not Tier.DEVICE:
                break
            shortfall = want.nbytes - ledger.free(want.tier)
            spare = want.purpose is Purpose.PRODUCE
            if not await self._demote(shortfall, spare_queued=spare, cause=want.event):
                break
        self._room.refuse(want)

    def _candidates(self) -> list[Candidate]:
        return [
            Candidate(
                holder.query,
                holder.edge.hint.next_use,
                _place(entry),
                entry.batch.nbytes,
                self._queued(holder, entry),
                holder.edge.hint.home > Tier.DEVICE,
                (holder, entry),
            )
            for holder in self._holders()
            for entry in holder.state.movable(Tier.DEVICE)
        ]

    async def _demote(self, shortfall: int, *, spare_queued: bool, cause: EventId) -> bool:
        """Gives up what is only cached, then moves what the policy chooses. Says whether any bytes came back."""
        freed = self._cache.evict(shortfall)
        if freed >= shortfall:
            return True
        shortfall -= freed
        chosen = choose_demotions(self._candidates(), shortfall, spare_queued=spare_queued)
        if not chosen:
            return freed > 0
        for victim in chosen:
            holder, entry = victim.handle
            holder.state.start_move(entry)
        self.moving += len(chosen)
        try:
            async with asyncio.TaskGroup() as group:
                moves = [group.create_task(self._move(victim, cause)) for victim in chosen]
        finally:
            self.moving -= len(chosen)
        return freed > 0 or any(move.result() == "" for move in moves)

    async def _move(self, victim: Candidate, cause: EventId) -> str:
        holder, entry = victim.handle
        return await self._mover.demote(holder, entry, cause)


def _place(entry: Entry) -> int:
    """Later in its queue or in a later partition is used later; what has not reached the feeds, last of all."""
    return (1 << 40) + entry.batch.id if entry.place < 0 else entry.partition * (1 << 20) + entry.place
