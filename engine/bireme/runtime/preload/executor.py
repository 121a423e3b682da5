"""The Pre-Load executor: fetches byte ranges of splits, and brings up demoted inputs, before tasks want them.

It asks `policy` what comes next and has IO threads do it. The bytes of a split are reserved before they are read. Where
reading them would wait for nothing, the task does it itself: that costs a copy, less than handing it over, and leaves
the bytes in that core's cache. A
failed fetch fails its query; a failed promotion is left to the task, which will see the same error and report it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from bireme.clock import Clock
from bireme.data.tier import Tier
from bireme.errors import BiremeError, OutOfRoom, SpillFailed, StorageError
from bireme.observe.event import CacheRead, Preloaded, ReadByTask
from bireme.observe.recorder import Recorder
from bireme.runtime.compute.task import Fetch, SplitInput, Supplier
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.column_cache import Lease
from bireme.runtime.holder.state import Access, Entry
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.room import Purpose, Room
from bireme.runtime.pipeline import LivePipeline, Phase
from bireme.runtime.preload.part_by_part import PartByPart
from bireme.runtime.preload.policy import ScanView, choose_fetch, promotion_room
from bireme.runtime.preload.shared import SharedBytes
from bireme.runtime.threads import Threads
from bireme.storage.base import ByteSource, Split
from bireme.storage.split_run import SplitRun, kept

_PROMOTE_PER_PIPELINE_MAX = 2


class PreloadExecutor:
    """`upcoming` gives the suppliers that Compute will serve next."""

    name = "preload"

    def __init__(
        self,
        *,
        source: ByteSource,
        io: Threads,
        room: Room,
        mover: Mover,
        recorder: Recorder,
        clock: Clock,
        upcoming: Callable[[], Sequence[Supplier]],
        count_max: int,
        bytes_max: int,
        watermark_stop: float,
    ) -> None:
        self._source = source
        self._io = io
        self._room = room
        self._mover = mover
        self._recorder = recorder
        self._clock = clock
        self._upcoming = upcoming
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._stop = watermark_stop
        self._scans: dict[LivePipeline, None] = {}
        self._wake = asyncio.Event()
        self._short = False
        # What is on its way is in no scan yet.
        self._fetching_bytes = 0
        room.came_back = self._came_back

    def __repr__(self) -> str:
        return f"<PreloadExecutor: {len(self._scans)} scans>"

    def want(self, pipeline: LivePipeline) -> None:
        """A scan has splits to fetch, or has used one up."""
        self._scans[pipeline] = None
        self._wake.set()

    def notice(self) -> None:
        """Tasks became ready whose inputs may lie below DEVICE."""
        self._wake.set()

    def _came_back(self) -> None:
        if self._short:
            self._short = False
            self._wake.set()

    async def run(self) -> None:
        """Serves until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                refused: set[LivePipeline] = set()
                while (scan := self._choose(refused)) is not None:
                    if not await self._fetch(scan):
                        # It was only ahead of need, and is tried again when bytes come back.
                        refused.add(scan)
                        self._short = True
                    # Compute may begin with it before all others are looked for.
                    await asyncio.sleep(0)
                self._promote_ahead(group)

    # -------------------------------------------------------------------------------------- fetching

    def _choose(self, refused: set[LivePipeline]) -> LivePipeline | None:
        views, count, nbytes = [], 0, self._fetching_bytes
        for scan in tuple(self._scans):
            if not _has_next(scan):
                del self._scans[scan]
                continue
            count += scan.ahead
            nbytes += sum([given.room.nbytes for given in scan.loaded.values()])
            if scan in refused:
                continue
            views.append(
                ScanView(
                    scan.rank,
                    scan.ahead,
                    scan.pipeline.hint.prefetch_depth,
                    _bytes_of(scan.splits[scan.fetch_next]),
                    scan,
                )
            )
        chosen = choose_fetch(views, count_left=self._count_max - count, bytes_left=self._bytes_max - nbytes)
        return chosen.handle if chosen is not None else None

    async def _fetch(self, scan: LivePipeline) -> bool:
        """Starts fetching the next split of `scan`. False where there is no room for one that is only ahead of need."""
        index = scan.fetch_next
        split, lease = self._looked_up(scan, index)
        nbytes = _bytes_of(split)
        room: Reservation | None = self._room.reserve_nowait(Tier.DEVICE, nbytes, Use.BUFFER)
        if room is None and scan.ahead:
            _let_go(lease)
            return False
        if room is None:
            room = await self._wait_room(scan, nbytes)
        if room is None:
            _let_go(lease)
            return True
        given = SplitInput(split, room, lease)
        if scan.graph.closed or scan.phase is not Phase.OPEN or scan.fetch_next != index:
            given.release()
            return True
        scan.fetch_next += 1
        self._start(scan, index, given)
        return True

    def _looked_up(self, scan: LivePipeline, index: int) -> tuple[Split, Lease | None]:
        """The split and, where its columns are kept, what the cache has of them."""
        split = scan.splits[index]
        if not scan.is_kept:
            return split, None
        lease = scan.graph.cache.lease(split.chunk_keys, scan.query)
        return kept(split, lease.found), lease

    def _start(self, scan: LivePipeline, index: int, given: SplitInput) -> None:
        ranges = given.split.ranges
        if given.lease is not None:
            hits, count = len(given.lease.found), len(given.split.chunk_keys)
            read = CacheRead(scan.query, scan.pipeline.id, index, given.lease.hit_bytes, hits, count - hits)
            self._recorder.record(read)
        if not ranges:
            self._ready(scan, index, given)
        elif self._source.is_resident(ranges):
            if isinstance(given.split, SplitRun):
                given.fetch = partial(PartByPart, ranges, self._source.read_all)
            else:
                given.fetch = self._reading(scan, given.split)
            self._recorder.record(ReadByTask(scan.query, scan.pipeline.id, index, given.room.nbytes))
            self._ready(scan, index, given)
        else:
            scan.fetching += 1
            self._fetching_bytes += given.room.nbytes
            started = self._clock.now()
            future = self._io.submit(self._reading(scan, given.split))
            future.add_done_callback(lambda done: self._fetched(scan, index, given, started, done))

    def _reading(self, scan: LivePipeline, split: Split) -> Fetch:
        """What reads the bytes of a split; for those that share their bytes the same for all."""
        if split.sharers == 1:
            return partial(self._source.read_all, split.ranges)
        if scan.shared is None or scan.shared.ranges is not split.ranges:
            scan.shared = SharedBytes(split.ranges, split.sharers, self._source.read_all)
        return scan.shared.fetch

    def _ready(self, scan: LivePipeline, index: int, given: SplitInput) -> None:
        scan.loaded[index] = given
        scan.graph.touch(scan)
        scan.graph.settle()

    async def _wait_room(self, scan: LivePipeline, nbytes: int) -> Reservation | None:
        try:
            return await self._room.reserve(
                Tier.DEVICE,
                nbytes,
                Use.BUFFER,
                purpose=Purpose.PRODUCE,
                query=scan.query,
                pipeline=scan.pipeline.id,
            )
        except (OutOfRoom, SpillFailed) as error:
            scan.fail(None, error)
            return None

    def _fetched(
        self,
        scan: LivePipeline,
        index: int,
        given: SplitInput,
        started: float,
        done: asyncio.Future[Sequence[pa.Buffer]],
    ) -> None:
        scan.fetching -= 1
        self._fetching_bytes -= given.room.nbytes
        error = done.exception() if not done.cancelled() else None
        if error is not None or done.cancelled() or scan.graph.closed or scan.phase is not Phase.OPEN:
            given.release()
            if error is not None:
                scan.fail(None, _translated(error))
        else:
            buffers = done.result()
            given.fetch = lambda: buffers
            scan.loaded[index] = given
            seconds = self._clock.now() - started
            read = Preloaded(scan.query, scan.pipeline.id, index, len(buffers), given.room.nbytes, seconds)
            self._recorder.record(read)
        scan.graph.touch(scan)
        scan.graph.settle()

    # -------------------------------------------------------------------------------------- promoting

    def _promote_ahead(self, group: asyncio.TaskGroup) -> None:
        ledger = self._room.ledger
        if not ledger.totals[Tier.PINNED] and not ledger.totals[Tier.DISK]:
            return
        budget = promotion_room(ledger.totals[Tier.DEVICE], ledger.limits[Tier.DEVICE], stop=self._stop)
        for supplier in self._upcoming():
            if not isinstance(supplier, LivePipeline):
                continue
            for holder, entry in supplier.upcoming(_PROMOTE_PER_PIPELINE_MAX):
                size = entry.batch.nbytes
                if entry.batch.tier is Tier.DEVICE or entry.access is not Access.IDLE or size > budget:
                    continue
                room = self._room.reserve_nowait(Tier.DEVICE, size, Use.BATCH)
                if room is not None:
                    budget -= size
                    holder.state.start_move(entry)
                    group.create_task(self._promote(holder, entry, room))

    async def _promote(self, holder: BatchHolder, entry: Entry, room: Reservation) -> None:
        try:
            await self._mover.promote(holder, entry, room, ahead=True)
        except BiremeError:
            return


def _bytes_of(split: Split) -> int:
    """Of splits that share their bytes each counts its share."""
    return sum([one.length for one in split.ranges]) // split.sharers


def _let_go(lease: Lease | None) -> None:
    if lease is not None:
        lease.release()


def _has_next(scan: LivePipeline) -> bool:
    """Whether there is a split to fetch; those without byte ranges are in memory already. One whose file does not say
    where its bytes are fails its query.
    """
    if scan.graph.closed or scan.phase is not Phase.OPEN:
        return False
    try:
        while scan.fetch_next < len(scan.splits) and scan.is_in_memory(scan.fetch_next):
            scan.fetch_next += 1
    except BiremeError as error:
        scan.fail(None, error)
        return False
    return scan.fetch_next < len(scan.splits)


def _translated(error: BaseException) -> BaseException:
    if isinstance(error, OSError):
        fault = StorageError(f"reading a table failed: {error}")
        fault.__cause__ = error
        return fault
    return error
