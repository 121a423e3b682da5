"""The Batch Holder: one edge of a Dag, live. The only thing between pipelines.

It pairs `state` (which knows) with what that needs in the world: the reservation of each batch, futures of those
who wait, and giving back what is freed. All on the loop. Moves between tiers are made by `memory.mover`, takes
decided by `runtime.graph`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bireme.data.batch import Batch, in_pieces
from bireme.data.ids import BatchId, QueryId
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.plan.physical import Edge, Take
from bireme.runtime.holder.feed import Feed, Run
from bireme.runtime.holder.state import Access, Entry, HolderState
from bireme.runtime.memory.ledger import Reservation
from bireme.units import format_bytes

_NOBODY: list[asyncio.Future[None]] = []


@dataclass(frozen=True, slots=True)
class HolderStatistics:
    """What a holder holds now, per tier, and what was ever put."""

    name: str
    bytes: dict[Tier, int]
    count: dict[Tier, int]
    rows_put: int
    bytes_put: int
    count_put: int
    waiting: tuple[int, ...]
    moving: int
    finished: bool
    closed: bool


class BatchHolder:
    """`drop` is called with each freed batch that does not lie on DEVICE, `heard` after each put and each end."""

    def __init__(self, edge: Edge, *, query: QueryId, takes: Sequence[Take], drop: Callable[[Batch], None]) -> None:
        self.edge = edge
        self.query = query
        self.state = HolderState(
            producers=len(edge.producers), feeds=takes, partitions=edge.partitions, ordered=edge.ordered
        )
        self.heard: Callable[[], None] | None = None
        self._drop = drop
        self._reservations: dict[BatchId, Reservation] = {}
        self._takers: list[asyncio.Future[None]] = []
        self._lessees: dict[BatchId, list[asyncio.Future[None]]] = {}
        self._quiet: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        state = self.state
        tiers = ", ".join(
            f"{tier.name.lower()} {state.tier_count[tier]} ({format_bytes(state.tier_bytes[tier])})"
            for tier in (Tier.DEVICE, Tier.PINNED, Tier.DISK)
        )
        end = "closed" if state.closed else "finished" if state.finished else f"{len(self._takers)} takers waiting"
        return f"<BatchHolder {self.edge.name}: {tiers}; {end}>"

    def statistics(self) -> HolderStatistics:
        state = self.state
        return HolderStatistics(
            name=self.edge.name,
            bytes={tier: state.tier_bytes[tier] for tier in Tier},
            count={tier: state.tier_count[tier] for tier in Tier},
            rows_put=state.rows_put,
            bytes_put=state.bytes_put,
            count_put=state.count_put,
            waiting=tuple(feed.waiting for feed in state.feeds),
            moving=state.moving,
            finished=state.finished,
            closed=state.closed,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all batches here, on whatever tier."""
        return self.state.nbytes

    # ------------------------------------------------------------------------------------- producing

    def put(self, producer: int, sequence: int, outputs: Sequence[tuple[int, Batch, Reservation]]) -> None:
        """Takes all outputs (partition, batch, its reservation) of one input of a producer."""
        try:
            self.state.put(producer, sequence, [(partition, batch) for partition, batch, _ in outputs])
        except EngineBug:
            for _, _, reservation in outputs:
                reservation.release()
            raise
        for _, batch, reservation in outputs:
            self._reservations[batch.id] = reservation
        if self._takers:
            self._wake(self._takers)
        if self.heard is not None:
            self.heard()

    def spread(self, partition: int, outputs: Sequence[tuple[Batch, Reservation]]) -> list[Entry]:
        """Takes batches into which ones of a partition were cut; they are its reader's, as the ones before were."""
        entries = self.state.spread(partition, [batch for batch, _ in outputs])
        for batch, reservation in outputs:
            self._reservations[batch.id] = reservation
        return entries

    def finish(self, producer: int) -> None:
        self.state.finish(producer)
        self._wake(self._takers)
        if self.heard is not None:
            self.heard()

    # ------------------------------------------------------------------------------------- consuming

    async def take(self, feed: Feed) -> Entry | None:
        """The next batch of a feed, waiting for it; None when there will be none."""
        while True:
            if feed.queue:
                return feed.pop()
            if feed.closed or self.state.finished:
                return None
            await self._wait(self._takers)

    def consume(self, entry: Entry) -> None:
        self._free(self.state.consume(entry))

    def close_feed(self, feed: Feed) -> None:
        """The consumer wants nothing more; what only it wanted is freed now. The last feed closes the holder."""
        for entry in self.state.close_feed(feed):
            self._free(entry)
        self._wake(self._takers)

    def close(self) -> None:
        """Frees everything now; what is read or moved, when that ends. Idempotent."""
        for entry in self.state.close():
            self._free(entry)
        self._wake(self._takers)

    # --------------------------------------------------------------------------------- leases and moves

    def join(self, run: Run, identity: BatchId) -> Entry:
        """One batch, in pieces, in place of those of a run of a part on DEVICE."""
        batch = in_pieces(identity, [entry.batch for entry in run.entries])
        first, *others = [self._reservations.pop(entry.batch.id) for entry in run.entries]
        for other in others:
            first.absorb(other)
        self._reservations[identity] = first
        return self.state.join(run, batch)

    async def wait_moved(self, entry: Entry) -> None:
        """Waits while a mover has `entry`."""
        while entry.access is Access.EXCLUSIVE:
            await self._wait(self._lessees.setdefault(entry.batch.id, []))

    def give_back(self, entry: Entry) -> None:
        self._free(self.state.give_back(entry))

    def end_move(self, entry: Entry, batch: Batch, reservation: Reservation | None) -> None:
        """A move gave `batch` with its `reservation`; or it failed and gives back the old batch and None."""
        if reservation is not None:
            old = self._reservations[batch.id]
            self._reservations[batch.id] = reservation
            freed = self.state.end_move(entry, batch)
            old.release()
        else:
            freed = self.state.end_move(entry, batch)
        self._free(freed)
        self._wake(self._lessees.pop(batch.id, _NOBODY))
        if not self.state.moving:
            self._wake(self._quiet)

    async def wait_quiet(self) -> None:
        """Waits until no mover has a batch of this holder."""
        while self.state.moving:
            await self._wait(self._quiet)

    def _free(self, entry: Entry | None) -> None:
        if entry is None:
            return
        batch = entry.batch
        if batch.tier is not Tier.DEVICE:
            self._drop(batch)
        # Releasing may wake others at once, so the batch is let go first.
        entry.batch = batch.moved(batch.tier, None)
        self._reservations.pop(batch.id).release()

    async def _wait(self, waiters: list[asyncio.Future[None]]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.append(future)
        try:
            await future
        finally:
            if future in waiters:
                waiters.remove(future)

    def _wake(self, waiters: list[asyncio.Future[None]]) -> None:
        for future in waiters:
            if not future.done():
                future.set_result(None)
        waiters.clear()
