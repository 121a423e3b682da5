"""Batches on their way between tiers: pages, packed bytes, and a mover that changes nothing when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.disk import DiskFaults, MemorySpill
from support.fake_stages import rows_batch
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate
from support.small_dags import edge

from bireme.data.batch import COLUMN_BYTES, Batch, in_pieces, measure
from bireme.data.ids import BatchId, QueryId
from bireme.data.packed import pack_joined, unpack
from bireme.data.record import record_batch
from bireme.data.tier import Tier
from bireme.errors import EngineBug, SpillCorrupt, StorageError
from bireme.observe.event import NO_CAUSE, Demoted, MoveFailed, Promoted
from bireme.observe.recorder import Recorder
from bireme.plan.physical import Take
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.state import Access, Entry
from bireme.runtime.memory.ledger import Ledger, Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.pinned_pool import PAGE_BYTES, PinnedPool, load, store
from bireme.units import MIB

IDS = count(1)

# ----------------------------------------------------------------------------------------------- pages


@given(st.binary(max_size=100), st.integers(0, 2))
def test_pages_give_back_what_was_stored(tail: bytes, whole: int) -> None:
    data = b"p" * (whole * PAGE_BYTES) + tail
    pages = PinnedPool(4 * MIB).take(len(data))
    assert pages is not None
    store(pages, memoryview(pa.py_buffer(data)))
    assert load(pages).to_pybytes() == data


def test_a_pool_has_a_limit_grows_on_demand_and_reuses_pages() -> None:
    pool = PinnedPool(3 * MIB)
    first, second = pool.take(2 * MIB), pool.take(1)
    assert first is not None
    assert second is not None
    assert pool.take(1) is None
    pool.give_back(first)
    assert pool.used == 1
    again = pool.take(MIB + 1)
    assert again is not None
    assert {id(page) for page in again.pages} == {id(page) for page in first.pages}


# ---------------------------------------------------------------------------------------- packed bytes


@pytest.mark.parametrize(
    "batch",
    [
        rows_batch([1, 2, 3]),
        rows_batch([]),
        rows_batch(list(range(100))).slice(40, 7),
        record_batch([], [], 5),
        record_batch([pa.array(["a", None, "ä"]), pa.array([1, 1, 2])], ["same", "same"], 3),
        record_batch([pa.array(["x", "y", "x"]).dictionary_encode(), pa.array([[1], None, []])], ["d", "l"], 3),
        record_batch([pa.array([1, None], pa.decimal64(9, 2)), pa.nulls(2)], ["m", "n"], 2),
    ],
    ids=lambda batch: str(batch.schema.names),
)
def test_packed_batches_come_back_equal(batch: pa.RecordBatch) -> None:
    back = unpack(pack_joined(batch))
    assert back.equals(batch)
    assert (back.num_rows, back.schema) == (batch.num_rows, batch.schema)


def test_a_slice_is_packed_and_measured_as_what_it_shows() -> None:
    whole = rows_batch(list(range(100_000)))
    part = whole.slice(5, 10)
    assert measure(part) == 80 + COLUMN_BYTES
    assert pack_joined(part).size < 2_000
    assert measure(whole) == 800_000 + COLUMN_BYTES


def test_columns_count_whatever_they_hold() -> None:
    wide = pa.record_batch({f"c{index}": pa.array([index], pa.int16()) for index in range(2_000)})
    assert measure(wide) >= 2_000 * COLUMN_BYTES


def test_a_dictionary_that_batches_share_counts_once() -> None:
    column = pa.array(["a" * 5_000, "b"] * 50).dictionary_encode()
    parts = [pa.RecordBatch.from_arrays([column.slice(start, 50)], ["s"]) for start in (0, 50)]
    seen: set[int] = set()
    first, second = (measure(part, seen) for part in parts)
    assert first == measure(parts[0]) > 5_000
    assert second == 200 + COLUMN_BYTES


# ----------------------------------------------------------------------------------------------- mover


class Scene:
    """One holder, one mover, and whatever faults the disk has."""

    def __init__(self, loop: SimLoop, faults: DiskFaults, pinned: int, take: Take = Take.STREAM) -> None:
        self.ledger = Ledger({Tier.DEVICE: 1 << 20, Tier.PINNED: pinned, Tier.DISK: 1_000})
        self.recorder = Recorder(100)
        self.spill = MemorySpill(faults=faults)
        self.mover = Mover(
            io=SimThreads("io", 1),
            spill=self.spill,
            pool=PinnedPool(pinned) if pinned else None,
            ledger=self.ledger,
            recorder=self.recorder,
            clock=SimClock(loop),
        )
        self.holder = BatchHolder(edge(1, (1,)), query=QueryId(1), takes=(take,), drop=self.mover.drop)

    def put(self, values: list[int]) -> Entry:
        content = rows_batch(values)
        batch = Batch(BatchId(next(IDS)), len(values), content.nbytes, Tier.DEVICE, content)
        self.holder.put(
            0, self.holder.state.count_put, [(0, batch, self.ledger.take(Tier.DEVICE, batch.nbytes, Use.BATCH))]
        )
        return self.holder.state.entries[batch.id]

    async def demote(self, entry: Entry) -> Exception | None:
        self.holder.state.start_move(entry)
        return await self.mover.demote(self.holder, entry, NO_CAUSE, why="for a test")

    async def promote(self, entry: Entry) -> None:
        self.holder.state.start_move(entry)
        room = self.ledger.take(Tier.DEVICE, entry.batch.nbytes, Use.BATCH)
        await self.mover.promote(self.holder, entry, room, ahead=False)

    def kinds(self) -> list[type]:
        return [type(event) for _, event in self.recorder.events()]

    async def end(self) -> None:
        self.holder.close()
        await self.mover.drained()
        assert (self.ledger.live, self.spill.bytes_used) == (0, 0)


def scene(main: Callable[[Scene], Awaitable[Any]], *, pinned: int = 0, take: Take = Take.STREAM, **faults: Any) -> None:
    async def whole(loop: SimLoop) -> None:
        at = Scene(loop, DiskFaults(**faults), pinned, take)
        await main(at)
        await at.end()

    simulate(whole, 0)


@pytest.mark.parametrize(("pinned", "tier"), [(0, Tier.DISK), (2 * MIB, Tier.PINNED)])
def test_down_and_up_again(pinned: int, tier: Tier) -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2, 3])
        assert await at.demote(entry) is None
        assert (entry.batch.tier, at.ledger.totals[Tier.DEVICE]) == (tier, 0)
        assert at.ledger.used(tier, Use.BATCH) > 0
        await at.promote(entry)
        assert entry.batch.content.column(0).to_pylist() == [1, 2, 3]
        assert (at.ledger.totals[tier], at.kinds()) == (0, [Demoted, Promoted])
        down, up = at.mover.totals[Tier.DEVICE, tier], at.mover.totals[tier, Tier.DEVICE]
        assert [(moves.count, moves.nbytes, moves.ahead_count, moves.failed) for moves in (down, up)] == [
            (1, 24, 0, 0)
        ] * 2
        assert down.stored_bytes == up.stored_bytes > 0

    scene(main, pinned=pinned)


def test_a_full_pool_sends_batches_on_to_disk() -> None:
    async def main(at: Scene) -> None:
        # One page is all there is.
        first, second = at.put([1]), at.put([2])
        await at.demote(first)
        await at.demote(second)
        assert [first.batch.tier, second.batch.tier] == [Tier.PINNED, Tier.DISK]

    scene(main, pinned=MIB)


@pytest.mark.parametrize(("scratch", "at_once"), [(40_000, 3), (100_000, 1), (1 << 20, 1)])
def test_what_moves_take_beside_their_batches_is_a_small_part_of_memory(scratch: int, at_once: int) -> None:
    async def main(at: Scene) -> None:
        at.ledger.limits[Tier.DISK] = 1 << 30
        at.spill.scratch_bytes = scratch
        entries = [at.put(list(range(12_500))) for _ in range(8)]
        seen: set[int] = set()
        at.ledger.changed = lambda: seen.add(at.ledger.used(Tier.DEVICE, Use.BUFFER))
        async with asyncio.TaskGroup() as group:
            moves = [group.create_task(at.demote(entry)) for entry in entries]
        assert [move.result() for move in moves] == [None] * len(entries)
        assert max(seen) == at_once * min(scratch, 100_000)
        assert at.ledger.used(Tier.DEVICE, Use.BUFFER) == 0

    scene(main)


def test_moves_that_wait_for_their_turn_can_be_cancelled() -> None:
    async def main(at: Scene) -> None:
        at.ledger.limits[Tier.DISK] = 1 << 30
        at.spill.scratch_bytes = 100_000
        first, second, third = [at.put(list(range(12_500))) for _ in range(3)]
        moves = [asyncio.create_task(at.demote(entry)) for entry in (first, second, third)]
        await asyncio.sleep(0)
        moves[1].cancel()
        await asyncio.wait(moves)
        assert [entry.batch.tier for entry in (first, second, third)] == [Tier.DISK, Tier.DEVICE, Tier.DISK]

    scene(main)


@pytest.mark.parametrize(("pinned", "tier"), [(0, Tier.DISK), (2 * MIB, Tier.PINNED)])
def test_batches_of_a_partition_go_down_as_one(pinned: int, tier: Tier) -> None:
    async def main(at: Scene) -> None:
        at.ledger.limits[Tier.DISK] = 1 << 20
        for values in ([1, 2], [3], [4, 5, 6]):
            at.put(values)
        (run,) = at.holder.state.runs(Tier.DEVICE)
        held = at.ledger.totals[Tier.DEVICE]
        entry = at.holder.join(run, BatchId(next(IDS)))
        assert (at.ledger.totals[Tier.DEVICE], at.ledger.live, entry.batch.nbytes) == (held, 1, held)
        at.ledger.check()
        at.holder.state.check()
        assert await at.demote(entry) is None
        assert (entry.batch.tier, at.ledger.totals[Tier.DEVICE]) == (tier, 0)
        assert [event.pieces for _, event in at.recorder.events() if isinstance(event, Demoted)] == [3]
        moves = at.mover.totals[Tier.DEVICE, tier]
        assert (moves.count, moves.joined_count) == (1, 3)
        await at.promote(entry)
        assert entry.batch.content.column(0).to_pylist() == [1, 2, 3, 4, 5, 6]
        assert at.holder.state.feeds[0].pop_part(0) == [entry]

    scene(main, pinned=pinned, take=Take.PARTITION)


def test_batches_whose_columns_have_other_names_cannot_be_one() -> None:
    rows = rows_batch([1])
    batches = [Batch(BatchId(next(IDS)), 1, 8, Tier.DEVICE, content) for content in (rows, rows.rename_columns(["s0"]))]
    with pytest.raises(EngineBug, match="cannot be one"):
        in_pieces(BatchId(next(IDS)), batches)


def test_batches_that_could_not_go_down_as_one_are_there_in_pieces() -> None:
    async def main(at: Scene) -> None:
        at.put([1, 2])
        at.put([3])
        (run,) = at.holder.state.runs(Tier.DEVICE)
        entry = at.holder.join(run, BatchId(next(IDS)))
        assert await at.demote(entry) is not None
        at.put([4])
        (again,) = at.holder.state.runs(Tier.DEVICE)
        entry = at.holder.join(again, BatchId(next(IDS)))
        assert [piece.column(0).to_pylist() for piece in entry.batch.pieces] == [[1, 2], [3], [4]]
        assert at.ledger.used(Tier.DEVICE, Use.BUFFER) == 0

    scene(main, take=Take.PARTITION, full_at=0)


def test_joining_takes_room_beside_the_pieces_for_as_long_as_the_move_lasts() -> None:
    async def main(at: Scene) -> None:
        at.ledger.limits[Tier.DISK] = 1 << 20
        at.spill.scratch_bytes = 10
        for _ in range(4):
            at.put(list(range(100)))
        (run,) = at.holder.state.runs(Tier.DEVICE)
        entry = at.holder.join(run, BatchId(next(IDS)))
        seen: set[int] = set()
        at.ledger.changed = lambda: seen.add(at.ledger.used(Tier.DEVICE, Use.BUFFER))
        assert await at.demote(entry) is None
        assert max(seen) == 4 * 800 + 10
        assert at.ledger.used(Tier.DEVICE, Use.BUFFER) == 0

    scene(main, take=Take.PARTITION)


@pytest.mark.parametrize("faults", [{"spill_write_fails": 1.0}, {"full_at": 0}])
def test_a_disk_that_takes_nothing_leaves_the_batch_where_it_is(faults: dict[str, float]) -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2])
        assert "the spill folder is full" in str(await at.demote(entry))
        assert (entry.batch.tier, entry.access) == (Tier.DEVICE, Access.IDLE)
        assert (at.ledger.totals[Tier.DISK], at.kinds()) == (0, [MoveFailed])
        failed = at.mover.totals[Tier.DEVICE, Tier.DISK]
        assert (failed.count, failed.failed) == (0, 1)
        assert entry.batch.content.column(0).to_pylist() == [1, 2]

    scene(main, **faults)


def test_the_spill_limit_is_kept() -> None:
    async def main(at: Scene) -> None:
        entry = at.put(list(range(200)))
        assert "may take no more" in str(await at.demote(entry))
        assert at.spill.writes == 0

    scene(main)


@pytest.mark.parametrize(
    ("faults", "error"), [({"flipped_bit": 1.0}, SpillCorrupt), ({"spill_read_fails": 1.0}, StorageError)]
)
def test_a_disk_that_gives_back_nothing_or_wrong_bytes_is_an_error(faults: dict[str, float], error: type) -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2])
        await at.demote(entry)
        with pytest.raises(error):
            await at.promote(entry)
        assert (entry.batch.tier, entry.access, at.ledger.totals[Tier.DEVICE]) == (Tier.DISK, Access.IDLE, 0)

    scene(main, **faults)


def test_a_move_that_is_cancelled_runs_to_its_end_and_leaves_nothing() -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2])
        await at.demote(entry)
        promoting = asyncio.ensure_future(at.promote(entry))
        await asyncio.sleep(0)
        promoting.cancel()
        await asyncio.wait([promoting])
        assert promoting.cancelled()
        assert (entry.batch.tier, entry.access, at.ledger.totals[Tier.DEVICE]) == (Tier.DISK, Access.IDLE, 0)

    scene(main)


def test_a_move_that_is_cancelled_leaves_the_batch_where_it_was() -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2])
        demoting = asyncio.ensure_future(at.demote(entry))
        await asyncio.sleep(0)
        demoting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await demoting
        assert (entry.batch.tier, entry.access) == (Tier.DEVICE, Access.IDLE)
        await at.holder.wait_quiet()
        at.holder.close()

    scene(main)


def test_a_holder_closed_under_a_move_frees_when_it_ends() -> None:
    async def main(at: Scene) -> None:
        entry = at.put([1, 2])
        demoting = asyncio.ensure_future(at.demote(entry))
        await asyncio.sleep(0)
        at.holder.close()
        assert at.ledger.live > 0
        await demoting
        await at.holder.wait_quiet()

    scene(main)
