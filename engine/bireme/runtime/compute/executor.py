"""The Compute executor: a few lanes, each seeing one task at a time through, on as many threads as there are slots.

A lane chooses by `policy`, reserves before its task runs, brings inputs up to DEVICE, has it run, and delivers. Nothing
here polls: a lane without work parks and is woken by what changes. One query's failure goes to that query; the lanes go
on.

A task that is expected to take less than handing it over costs runs on the loop itself, while a thread is idle, in a
slot of its own; after a millisecond of that the loop sees to everything else first.

There are more lanes than threads, so that a thread that has ended a task finds the next one waiting instead of
sleeping until the loop has come round. What is admitted ahead in this way only takes room that is free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.clock import Clock
from bireme.data.tier import Tier
from bireme.errors import BiremeError, EngineBug, OutOfRoom, SpillFailed
from bireme.observe.event import Overbooked
from bireme.observe.recorder import Recorder
from bireme.runtime.compute.meter import Meter
from bireme.runtime.compute.policy import ReadyList, Remedy, remedy
from bireme.runtime.compute.task import Result, Supplier, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.state import Access, Entry
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.room import Purpose, Room
from bireme.runtime.threads import Threads
from bireme.units import format_seconds

_LANES_PER_SLOT: Final = 2
# So long tasks may run on the loop before it turns to what else waits for it.
_TURN_SECONDS: Final = 0.001
# A task that was expected to be brief and took longer is told of.
_BRIEF_SECONDS_MAX: Final = 0.02


class ComputeExecutor:
    """`slots` tasks at once on threads, and at most as many more that wait for one or run on the loop."""

    name = "compute"

    def __init__(
        self,
        *,
        slots: int,
        threads: Threads,
        room: Room,
        mover: Mover,
        recorder: Recorder,
        clock: Clock,
        meter: Meter,
    ) -> None:
        self.slots = slots
        self.ready = ReadyList()
        self.running = 0
        self.finished = 0
        self._threads = threads
        self._room = room
        self._mover = mover
        self._recorder = recorder
        self._clock = clock
        self._meter = meter
        self._parked: deque[asyncio.Future[None]] = deque()
        self._asking = False
        self._solo = False
        self._relieving = 0
        self._handed_over = 0
        # Whether a lane is giving back what its task made; it then looks for the next task itself.
        self._delivering = False
        self._turn_seconds = 0.0
        self._turn_over = asyncio.Event()

    def __repr__(self) -> str:
        return f"<ComputeExecutor: {self.running} of {self.slots} slots run, {len(self.ready)} pipelines ready>"

    def offer(self, supplier: Supplier) -> None:
        """`supplier` has work."""
        self.ready.offer(supplier)
        if not self._delivering:
            self._wake_one()

    async def run(self) -> None:
        """Serves until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in range(_LANES_PER_SLOT * self.slots):
                group.create_task(self._serve(), name=f"compute/{lane}")

    async def _serve(self) -> None:
        while True:
            # In a call of its own, so that a lane that waits keeps nothing of its last task alive.
            await self._serve_one()

    async def _serve_one(self) -> None:
        task, grant = await self._admit()
        try:
            await self._perform(task, grant)
        finally:
            self.running -= 1
            self._relieving -= task.kind is TaskKind.RELIEVE
            self.finished += 1
            grant.release()
            if task.alone:
                self._solo = False
                self._wake_all()
            if self.running == 0:
                self._room.retry()

    # ------------------------------------------------------------------------------------- choosing

    async def _admit(self) -> tuple[Task, Reservation]:
        """The best ready task, with the room it needs; counted as running from the moment it is chosen."""
        spare: Reservation | None = None
        try:
            while True:
                supplier = None if self._solo else self.ready.best()
                if supplier is None:
                    _let_go(spare)
                    spare = None
                    await self._park()
                    continue
                task = supplier.next_task()
                if task.alone and self.running:
                    supplier.put_back(task)
                    _let_go(spare)
                    spare = None
                    await self._park()
                    continue
                need = self._need(task)
                grant = self._granted(need, spare)
                if grant is None and self._goes_anyway(task):
                    _let_go(spare)
                    grant = self._room.ledger.take(Tier.DEVICE, need, Use.TASK)
                if grant is not None:
                    spare = None
                    return self._started(task, grant)
                supplier.put_back(task)
                _let_go(spare)
                spare = None
                if self.running >= self.slots or task.kind is TaskKind.RELIEVE:
                    # It was only ahead of need; whoever ends a task comes by again.
                    await self._park()
                    continue
                spare = await self._ask(supplier, need, task)
        except BaseException:
            _let_go(spare)
            raise

    def _goes_anyway(self, task: Task) -> bool:
        """Whether it gives memory back, which cannot wait for memory; one at a time where there is none."""
        return task.kind is TaskKind.RELIEVE and self._relieving == 0

    def _started(self, task: Task, grant: Reservation) -> tuple[Task, Reservation]:
        self.running += 1
        self._relieving += task.kind is TaskKind.RELIEVE
        self._solo = task.alone
        task.grant_bytes = grant.nbytes
        if task.need_bytes > grant.nbytes:
            over, reason = task.need_bytes - grant.nbytes, "a task needs more than the whole limit"
            self._recorder.record(Overbooked(task.supplier.query, Tier.DEVICE, task.need_bytes, over, reason))
        if self._parked and self.ready.best() is not None:
            self._wake_one()
        return task, grant

    def _need(self, task: Task) -> int:
        below = 0
        for entry in task.entries:
            if entry.batch.tier is not Tier.DEVICE or entry.access is Access.EXCLUSIVE:
                below += entry.batch.nbytes
        task.need_bytes = below + task.supplier.estimate(task)
        # Cut to the tier, or it would wait for ever; it runs alone then, over the limit, and that is recorded.
        return min(task.need_bytes, self._room.ledger.limits[Tier.DEVICE])

    def _granted(self, need: int, spare: Reservation | None) -> Reservation | None:
        if spare is None:
            return self._room.reserve_nowait(Tier.DEVICE, need, Use.TASK)
        if need <= spare.nbytes or self._room.ledger.fits(Tier.DEVICE, need - spare.nbytes):
            spare.resize(need)
            return spare
        return None

    async def _ask(self, supplier: Supplier, need: int, task: Task) -> Reservation | None:
        """Waits for room for what was best. One slot asks at a time; the others park meanwhile."""
        if self._asking:
            await self._park()
            return None
        self._asking = True
        purpose = Purpose.PRODUCE if task.kind is TaskKind.SPLIT else Purpose.CONSUME
        try:
            return await self._room.reserve(
                Tier.DEVICE,
                need,
                Use.TASK,
                purpose=purpose,
                query=supplier.query,
                pipeline=supplier.pipeline.id,
            )
        except (OutOfRoom, SpillFailed) as error:
            supplier.fail(None, error)
            return None
        finally:
            self._asking = False
            self._wake_one()

    async def _park(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(future)
        await future

    def _wake_one(self) -> None:
        while self._parked:
            future = self._parked.popleft()
            if not future.done():
                future.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._parked:
            self._wake_one()

    # -------------------------------------------------------------------------------------- running

    async def _perform(self, task: Task, grant: Reservation) -> None:
        supplier = task.supplier
        try:
            contents = await self._bring_up(task, grant)
            try:
                result = await self._run(task, contents)
            finally:
                del contents
                self._give_back(task)
        except asyncio.CancelledError:
            supplier.fail(task, EngineBug(f"{task!r} was running when its worker ended"))
            raise
        except BiremeError as error:
            supplier.fail(task, error)
        except Exception as error:
            fault = EngineBug(f"{task!r} raised {type(error).__name__}: {error}")
            fault.__cause__ = error
            supplier.fail(task, fault)
        else:
            self._delivering = True
            try:
                self._settle(task, result, grant)
            except Exception as error:
                supplier.fail(None, error)
            finally:
                self._delivering = False

    async def _run(self, task: Task, contents: Sequence[pa.RecordBatch]) -> Result:
        if self._handed_over < self.slots and task.supplier.is_brief(task):
            while self._turn_seconds >= _TURN_SECONDS:
                await self._turn_over.wait()
            return self._run_here(task, contents)
        self._handed_over += 1
        try:
            return await self._threads.submit_numbered(self._measured, task, contents)
        finally:
            self._handed_over -= 1

    def _measured(self, slot: int, task: Task, contents: Sequence[pa.RecordBatch]) -> Result:
        """Runs `task`, on whatever thread calls."""
        self._meter.start()
        result = task.run(slot, contents, self._clock)
        result.peak_bytes = self._meter.peak()
        self._meter.rest()
        return result

    def _run_here(self, task: Task, contents: Sequence[pa.RecordBatch]) -> Result:
        if not self._turn_seconds:
            self._turn_over.clear()
            asyncio.get_running_loop().call_soon(self._turned)
        result = self._measured(self.slots, task, contents)
        result.on_loop = True
        self._turn_seconds += result.seconds
        if result.seconds > _BRIEF_SECONDS_MAX:
            result.notes.append(f"a task of {task.rows_in} rows held up the loop for {format_seconds(result.seconds)}")
        return result

    def _turned(self) -> None:
        self._turn_seconds = 0.0
        self._turn_over.set()

    def _settle(self, task: Task, result: Result, grant: Reservation) -> None:
        supplier = task.supplier
        if result.shortage is None:
            supplier.deliver(task, result, grant)
            return
        task.attempt += 1
        task.alone = True
        choice = remedy(
            attempt=task.attempt,
            repeatable=task.has_called or task.changes_nothing or (supplier.repeatable and task.is_repeatable),
            splittable=supplier.splittable and task.kind is TaskKind.BATCHES and not task.has_called,
        )
        if choice is Remedy.SPLIT and not task.halve():
            choice = Remedy.GIVE_UP
        if choice is Remedy.GIVE_UP:
            fault = OutOfRoom(
                f"{task!r} ran out of memory and cannot run in smaller pieces ({result.shortage}); "
                f"raise the memory limit, or use fewer threads"
            )
            fault.__cause__ = result.shortage
            supplier.fail(task, fault)
        else:
            supplier.retry(task, result.shortage)

    async def _bring_up(self, task: Task, grant: Reservation) -> Sequence[pa.RecordBatch]:
        """Shares the inputs of `task`, on DEVICE."""
        holder = task.holder
        if holder is None:
            return ()
        if all(_is_up(entry) for entry in task.entries):
            for entry in task.entries:
                holder.state.lease(entry)
        else:
            await self._promote(holder, task.entries, grant)
        return [piece for entry in task.entries for piece in entry.batch.pieces]

    async def _promote(self, holder: BatchHolder, entries: Sequence[Entry], grant: Reservation) -> None:
        leased: list[Entry] = []
        try:
            async with asyncio.TaskGroup() as group:
                for entry in entries:
                    group.create_task(self._promote_one(holder, entry, grant, leased))
        except BaseException as error:
            for entry in leased:
                holder.give_back(entry)
            raise _first(error) from error

    async def _promote_one(self, holder: BatchHolder, entry: Entry, grant: Reservation, leased: list[Entry]) -> None:
        while not _is_up(entry):
            if entry.access is Access.EXCLUSIVE:
                await holder.wait_moved(entry)
                continue
            holder.state.start_move(entry)
            room = grant.carve(entry.batch.nbytes, Use.BATCH)
            await self._mover.promote(holder, entry, room, ahead=False)
        holder.state.lease(entry)
        leased.append(entry)

    def _give_back(self, task: Task) -> None:
        if task.holder is not None:
            for entry in task.entries:
                task.holder.give_back(entry)


def _is_up(entry: Entry) -> bool:
    return entry.batch.tier is Tier.DEVICE and entry.access is not Access.EXCLUSIVE


def _let_go(spare: Reservation | None) -> None:
    if spare is not None:
        spare.release()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
