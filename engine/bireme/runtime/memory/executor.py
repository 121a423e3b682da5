"""The Memory executor: makes room on DEVICE for those who wait, and keeps it below its watermark.

It asks `policy` what to give up, has `mover` move batches and pipelines hand over their state; it decides nothing
itself. What is only cached goes before anything else. Requests on demand are correctness: served one at a time, until
the waiting reservation fits. The watermark is an optimisation and never takes what is queued.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from bireme.data.ids import BatchId, EventId, QueryId
from bireme.data.tier import Tier
from bireme.observe.event import NO_CAUSE, ReliefWanted
from bireme.observe.recorder import Recorder
from bireme.operators.base import Relievable
from bireme.plan.physical import Pipeline
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.column_cache import ColumnCache
from bireme.runtime.holder.feed import Run
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.policy import Candidate, Need, State, bundles, excess, next_resort, worth_a_move
from bireme.runtime.memory.room import Purpose, Room, Want

_WHY: Final = {
    Need.WATERMARK: "to stay below the watermark",
    Need.PRODUCE: "for what produces",
    Need.CONSUME: "for what consumes",
}
# Where nothing could be given up, it is tried again when so small a part of the memory more is held.
_TRIES_IN_MEMORY: Final = 20
Queued = Callable[[BatchHolder, Entry], bool]


class Keeper(Protocol):
    """A live pipeline that keeps a state, as the Memory executor sees it."""

    @property
    def query(self) -> QueryId: ...

    @property
    def pipeline(self) -> Pipeline: ...

    def relieve(self, cause: EventId) -> asyncio.Future[None]: ...


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
        recorder: Recorder,
        watermark_start: float,
        watermark_stop: float,
        batch_ids: Iterator[int],
    ) -> None:
        self._room = room
        self._mover = mover
        self._cache = cache
        self._holders = holders
        self._queued = queued
        self._recorder = recorder
        self._start = watermark_start
        self._stop = watermark_stop
        self._batch_ids = batch_ids
        self._requests: deque[Want] = deque()
        self._wake = asyncio.Event()
        self._states: dict[Keeper, Relievable] = {}
        self._step_bytes = 0
        self._tried_at = 0
        self._spill_fault: Exception | None = None
        self.moving = 0
        room.demand = self._demand
        room.ledger.grown = self._grown

    def __repr__(self) -> str:
        return f"<MemoryExecutor: {len(self._requests)} requests, {self.moving} moves>"

    def note_state(self, keeper: Keeper, gives: Relievable) -> None:
        """What a live pipeline could give up of its state has changed."""
        if gives.nbytes:
            self._states[keeper] = gives
        else:
            self._states.pop(keeper, None)
        self._step_bytes = max([one.step_bytes for one in self._states.values()], default=0)
        self._grown(Tier.DEVICE)

    async def run(self) -> None:
        """Serves until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._requests:
                await self._serve(self._requests.popleft())
            if (missing := self._excess()) > 0:
                await self._lower(missing)

    # ------------------------------------------------------------------------------------- occasions

    def _demand(self, want: Want) -> None:
        self._requests.append(want)
        self._wake.set()

    def _held(self) -> int:
        """What is there, and what handing over the largest state would take beside it."""
        ledger = self._room.ledger
        return ledger.totals[Tier.DEVICE] - ledger.used(Tier.DEVICE, Use.TASK) + self._step_bytes

    def _excess(self) -> int:
        return excess(self._held(), self._room.ledger.limits[Tier.DEVICE], start=self._start, stop=self._stop)

    def _grown(self, tier: Tier) -> None:
        ledger = self._room.ledger
        if ledger.totals[tier] + self._step_bytes <= self._start * ledger.limits[tier]:
            return  # with all promises: nearly always
        if tier is Tier.DEVICE and self._excess() > 0 and self._held() > self._tried_at:
            self._wake.set()

    async def _lower(self, missing: int) -> None:
        # Back off where nothing can be given up: not again before noticeably more is held.
        self._tried_at = self._held() + self._room.ledger.limits[Tier.DEVICE] // _TRIES_IN_MEMORY
        if await self._give_up(missing, Need.WATERMARK, NO_CAUSE):
            self._tried_at = 0

    async def _serve(self, want: Want) -> None:
        ledger = self._room.ledger
        self._spill_fault = None
        while not want.future.done() and not ledger.fits(want.tier, want.nbytes):
            if want.tier is not Tier.DEVICE:
                break
            shortfall = want.nbytes - ledger.free(want.tier)
            need = Need.PRODUCE if want.purpose is Purpose.PRODUCE else Need.CONSUME
            if not await self._give_up(shortfall, need, want.event):
                break
        self._room.refuse(want, self._spill_fault)

    # --------------------------------------------------------------------------------------- actions

    async def _give_up(self, shortfall: int, need: Need, cause: EventId) -> bool:
        """Gives up what is only cached, then what the policy chooses. Says whether that changed anything."""
        freed = self._cache.evict(shortfall)
        if freed >= shortfall:
            return True
        # Those that were asked in vain: a state may grow as fast as it gives, or be about to end.
        asked: set[Keeper] = set()
        while True:
            limit = self._room.ledger.limits[Tier.DEVICE]
            states = [State(keeper.query, gives.nbytes, keeper) for keeper, gives in self._states.items()]
            left = [state for state in states if state.handle not in asked]
            choice = next_resort(self._candidates(), left, shortfall - freed, need=need, limit=limit)
            if not isinstance(choice, State):
                return (bool(choice) and await self._demote(choice, need, cause)) or freed > 0
            if await self._relieve(choice, cause):
                return True
            asked.add(choice.handle)

    async def _relieve(self, state: State, cause: EventId) -> bool:
        keeper: Keeper = state.handle
        before = self._states[keeper].nbytes
        wanted = self._recorder.record(ReliefWanted(keeper.query, keeper.pipeline.id, before, cause))
        await keeper.relieve(wanted)
        after = self._states.get(keeper)
        return after is None or after.nbytes < before

    async def _demote(self, chosen: list[Candidate], need: Need, cause: EventId) -> bool:
        victims = [self._taken(*victim.handle) for victim in chosen]
        self.moving += len(chosen)
        try:
            async with asyncio.TaskGroup() as group:
                moves = [group.create_task(self._mover.demote(*victim, cause, why=_WHY[need])) for victim in victims]
        finally:
            self.moving -= len(chosen)
        faults = [fault for move in moves if (fault := move.result()) is not None]
        self._spill_fault = faults[-1] if faults else None
        return len(faults) < len(moves)

    def _taken(self, holder: BatchHolder, run: Run) -> tuple[BatchHolder, Entry]:
        """What is moved of a candidate: from here on nobody else has it."""
        entry = run.entries[0] if len(run.entries) == 1 else holder.join(run, BatchId(next(self._batch_ids)))
        holder.state.start_move(entry)
        return holder, entry

    def _candidates(self) -> list[Candidate]:
        enough = worth_a_move(self._room.ledger.limits[Tier.DEVICE])
        return [
            self._candidate(holder, Run(run.part, run.entries[some]), enough)
            for holder in self._holders()
            for run in holder.state.runs(Tier.DEVICE)
            for some in bundles([entry.batch.nbytes for entry in run.entries], enough)
        ]

    def _candidate(self, holder: BatchHolder, run: Run, enough: int) -> Candidate:
        first, hint = run.entries[0], holder.edge.hint
        nbytes = sum([entry.batch.nbytes for entry in run.entries])
        return Candidate(
            holder.query,
            hint.next_use,
            _place(first),
            nbytes,
            self._queued(holder, first),
            hint.home > Tier.DEVICE,
            (holder, run),
            run.part >= 0 and nbytes < enough,
        )


def _place(entry: Entry) -> int:
    """Later in its queue or in a later partition is used later; what has not reached the feeds, last of all."""
    return (1 << 40) + entry.batch.id if entry.place < 0 else entry.partition * (1 << 20) + entry.place
