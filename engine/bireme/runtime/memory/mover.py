"""Copies one batch between two tiers, and frees what lies on tiers below DEVICE.

Executes only: which batch moves where is decided by whoever calls, who has also marked it (`HolderState.start_move`). A
failed copy leaves the batch as it was. Copies run on IO threads.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Final, TypeVar

import pyarrow as pa

from bireme.clock import Clock
from bireme.data.batch import Batch, measure
from bireme.data.ids import EventId
from bireme.data.packed import pack_joined, unpack
from bireme.data.record import joined
from bireme.data.tier import Tier
from bireme.errors import EngineBug, SpillFailed, StorageError
from bireme.observe.event import Demoted, MoveFailed, Promoted, SpillNoted
from bireme.observe.moves import Moves
from bireme.observe.recorder import Recorder
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Ledger, Reservation, Use
from bireme.runtime.memory.pinned_pool import PinnedPool, load, store
from bireme.runtime.threads import Threads
from bireme.storage.base import SpillStore, SpillTicket
from bireme.storage.spill_policy import SpillHint, Verdict
from bireme.units import format_bytes

T = TypeVar("T")
Joined = Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]
_IDLE_WEIGHT: Final = 0.2
# What spill stores take beside all batches on their way, as a part of the memory.
_SCRATCH_SHARE_MAX: Final = 1 / 8


class Mover:
    """`pool` is None where the PINNED tier does not exist. `ended` is called when no move is `active` any more; `idle`
    says how many processors have nothing to run; `joined` makes one batch of several.
    """

    def __init__(
        self,
        *,
        io: Threads,
        spill: SpillStore,
        pool: PinnedPool | None,
        ledger: Ledger,
        recorder: Recorder,
        clock: Clock,
        joined: Joined = joined,
    ) -> None:
        self._io = io
        self._spill = spill
        self._pool = pool
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock
        self._joined = joined
        self.active = 0
        self.idle: Callable[[], float] = _no_slots
        self._idle = 0.0
        self.totals: defaultdict[tuple[Tier, Tier], Moves] = defaultdict(Moves)
        self.ended: Callable[[], None] = _silent
        self._drops: dict[int, asyncio.Future[None]] = {}
        self._drop_count = 0
        self.drop_faults: list[str] = []
        self._scratch_bytes = 0
        self._scratch_bytes_max = int(ledger.limits[Tier.DEVICE] * _SCRATCH_SHARE_MAX)
        self._turns: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Mover: {len(self._drops)} drops under way>"

    async def demote(self, holder: BatchHolder, entry: Entry, cause: EventId, *, why: str) -> Exception | None:
        """Moves a marked DEVICE or PINNED batch down. Returns None or, with the batch where it was, the reason."""
        started, old = self._clock.now(), entry.batch
        try:
            hint = SpillHint((holder.query, holder.edge.id), self._idle_lately())
            batch, reservation = await self._counted(self._demoted(old, hint))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._recorder.record(MoveFailed(holder.query, holder.edge.id, old.id, Tier.DISK, reason, cause))
            self.totals[old.tier, Tier.DISK].failed += 1
            holder.end_move(entry, old, None)
            return error
        except asyncio.CancelledError:
            # The worker ends. The query waits until nothing of it is on its way.
            holder.end_move(entry, old, None)
            raise
        finally:
            for text in self._spill.take_notes():
                self._recorder.record(SpillNoted(holder.query, text, cause))
        self._note_demoted(holder, old, batch, reservation.nbytes, self._clock.now() - started, why, cause)
        holder.end_move(entry, batch, reservation)
        self._free_body(old)
        return None

    def _note_demoted(
        self, holder: BatchHolder, old: Batch, new: Batch, stored: int, seconds: float, why: str, cause: EventId
    ) -> None:
        ticket: SpillTicket | None = new.body if new.tier is Tier.DISK else None
        packing = "" if ticket is None or ticket.verdict is Verdict.OFF else ticket.verdict.value
        spent = 0.0 if ticket is None else ticket.compress_seconds
        way, pieces = (old.tier, new.tier), len(old.pieces) if old.tier is Tier.DEVICE else 1
        self._recorder.record(
            Demoted(
                holder.query, holder.edge.id, old.id, *way, old.nbytes, stored, seconds, why, packing, spent, pieces,
                cause,
            )
        )  # fmt: skip
        self.totals[way].add(old.nbytes, stored, seconds, pieces=pieces)
        if ticket is not None and ticket.compressed:
            self.totals[way].add_compressed(old.nbytes, stored, spent)

    def _idle_lately(self) -> float:
        """Slots that had nothing to run when batches were moved: the last ones count most."""
        self._idle += (self.idle() - self._idle) * _IDLE_WEIGHT
        return self._idle

    async def promote(self, holder: BatchHolder, entry: Entry, room: Reservation, *, ahead: bool) -> None:
        """Moves a marked batch up to DEVICE, into `room`, which becomes its reservation. Raises StorageError."""
        started, old = self._clock.now(), entry.batch
        try:
            is_expanded = old.tier is Tier.DISK and old.body.compressed
            with await self._scratch(self._spill_scratch(old) if is_expanded else 0):
                content = await self._counted(self._run(self._read, old))
            if content.num_rows != old.rows:
                raise EngineBug(f"{old!r} came back from {old.tier.name} with {content.num_rows} rows")
        except BaseException:
            self.totals[old.tier, Tier.DEVICE].failed += 1
            room.release()
            holder.end_move(entry, old, None)
            raise
        seconds = self._clock.now() - started
        stored = _stored(old)
        self._recorder.record(
            Promoted(holder.query, holder.edge.id, old.id, old.tier, old.nbytes, stored, seconds, ahead)
        )
        self.totals[old.tier, Tier.DEVICE].add(old.nbytes, stored, seconds, ahead=ahead)
        holder.end_move(entry, old.moved(Tier.DEVICE, content), room)
        self._free_body(old)

    async def _counted(self, move: Coroutine[Any, Any, T]) -> T:
        self.active += 1
        try:
            return await move
        finally:
            self.active -= 1
            if self.active == 0:
                # Once whoever moved has settled what the move gave.
                asyncio.get_running_loop().call_soon(self.ended)

    def drop(self, batch: Batch) -> None:
        """Frees the place of a batch that nobody wants any more."""
        self._free_body(batch)

    async def drained(self) -> None:
        """Waits until everything dropped so far is freed."""
        while self._drops:
            await asyncio.wait(tuple(self._drops.values()))

    async def _demoted(self, old: Batch, hint: SpillHint) -> tuple[Batch, Reservation]:
        joining = 0 if old.tier is not Tier.DEVICE or len(old.pieces) == 1 else old.nbytes
        with await self._scratch(self._spill_scratch(old) + joining):
            return await self._put_down(await self._run(self._whole, old) if joining else old, hint)

    def _whole(self, old: Batch) -> Batch:
        """A batch in pieces in one."""
        content = self._joined(old.pieces)
        return Batch(old.id, old.rows, measure(content), Tier.DEVICE, content)

    async def _put_down(self, old: Batch, hint: SpillHint) -> tuple[Batch, Reservation]:
        if old.tier is Tier.DEVICE and self._pool is not None:
            pinned = await self._pin(old, self._pool)
            if pinned is not None:
                return pinned
        reservation = self._ledger.reserve(Tier.DISK, old.nbytes, Use.BATCH)
        if reservation is None:
            limit = format_bytes(self._ledger.limits[Tier.DISK])
            raise SpillFailed(f"the spill folder may take no more than {limit}; raise its limit, or the memory limit")
        try:
            content = old.content if old.tier is Tier.DEVICE else await self._run(self._read, old)
            ticket = await self._run(
                self._spill.write, content, hint, undo=lambda made: self.drop(old.moved(Tier.DISK, made))
            )
            # What it takes there is a fact.
            reservation.resize(ticket.stored)
        except BaseException:
            reservation.release()
            raise
        return old.moved(Tier.DISK, ticket), reservation

    def _spill_scratch(self, batch: Batch) -> int:
        """What the spill store takes beside a batch."""
        return min(self._spill.scratch_bytes, batch.nbytes)

    async def _scratch(self, nbytes: int) -> _Scratch:
        """What a move takes beside its batch: a fact, since it is how room is made. But not more than a small part of
        the memory at once, or as much as one move takes.
        """
        while self._scratch_bytes and self._scratch_bytes + nbytes > self._scratch_bytes_max:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            await turn
        return _Scratch(self, self._ledger.take(Tier.DEVICE, nbytes, Use.BUFFER))

    def _scratch_changed(self, nbytes: int) -> None:
        self._scratch_bytes += nbytes
        if nbytes < 0:
            turns, self._turns = self._turns, []
            for turn in turns:
                if not turn.done():
                    turn.set_result(None)

    async def _pin(self, old: Batch, pool: PinnedPool) -> tuple[Batch, Reservation] | None:
        packed = await self._run(pack_joined, old.content)
        pages = pool.take(packed.size)
        reservation = self._ledger.reserve(Tier.PINNED, packed.size, Use.BATCH) if pages is not None else None
        if pages is None or reservation is None:
            if pages is not None:
                pool.give_back(pages)
            return None
        await self._run(store, pages, memoryview(packed))
        return old.moved(Tier.PINNED, pages), reservation

    def _read(self, batch: Batch) -> pa.RecordBatch:
        if batch.tier is Tier.PINNED:
            return unpack(load(batch.body))
        return self._spill.read(batch.body)

    def _free_body(self, batch: Batch) -> None:
        if batch.tier is Tier.PINNED and self._pool is not None:
            self._pool.give_back(batch.body)
        elif batch.tier is Tier.DISK:
            self._drop_count += 1
            number = self._drop_count
            future = self._io.submit(self._spill.drop, batch.body)
            self._drops[number] = future
            future.add_done_callback(lambda done: self._dropped(number, done))

    def _dropped(self, number: int, done: asyncio.Future[None]) -> None:
        del self._drops[number]
        if not done.cancelled() and (error := done.exception()) is not None:
            # The rows are not needed any more: a place on disk that could not be freed is reported, not raised.
            self.drop_faults.append(str(error))

    async def _run(self, work: Any, *args: Any, undo: Callable[[Any], None] | None = None) -> Any:
        """Runs blocking work to its end, even if the waiting task is cancelled: then `undo` gets the result."""
        future = self._io.submit(work, *args)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                await asyncio.wait([future])
            if undo is not None and not future.cancelled() and future.exception() is None:
                undo(future.result())
            raise
        except OSError as error:
            raise StorageError(f"moving a batch failed: {error}") from error


class _Scratch:
    """What one move takes beside its batch, until its block is left."""

    def __init__(self, mover: Mover, room: Reservation) -> None:
        self._mover = mover
        self._room = room
        mover._scratch_changed(room.nbytes)

    def __enter__(self) -> None:
        """It is taken already."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._mover._scratch_changed(-self._room.nbytes)
        self._room.release()


def _stored(batch: Batch) -> int:
    """What a batch takes of a tier below DEVICE."""
    stored: int = batch.body.stored if batch.tier is Tier.DISK else batch.body.nbytes
    return stored


def _no_slots() -> float:
    """Nobody says yet how many there are."""
    return 0.0


def _silent() -> None:
    """Nobody waits for moves to end yet."""
