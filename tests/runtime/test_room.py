"""Waiting for room: order, wake-ups, progress when nothing can move, and the errors when nothing ever will."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.sim_loop import SimLoop, simulate

from bireme.data.ids import QueryId
from bireme.data.tier import Tier
from bireme.errors import OutOfRoom, SpillFailed
from bireme.observe.event import Overbooked, RoomGiven, RoomWanted
from bireme.observe.recorder import Recorder
from bireme.runtime.memory.ledger import Ledger, Reservation, Use
from bireme.runtime.memory.room import Purpose, Room, Want

LIMIT = 100


class Scene:
    """A room whose Memory executor moves nothing, and that is as busy as the test says."""

    def __init__(self) -> None:
        self.ledger = Ledger({Tier.DEVICE: LIMIT})
        self.recorder = Recorder(100)
        self.room = Room(self.ledger, self.recorder, stall_seconds_max=0.1)
        self.asked: list[Want] = []
        self.busy = True
        self.room.demand = self.asked.append
        self.room.busy = lambda: self.busy

    def hold(self, nbytes: int, use: Use = Use.TASK) -> Reservation:
        return self.ledger.take(Tier.DEVICE, nbytes, use)

    async def want(self, nbytes: int, purpose: Purpose = Purpose.CONSUME) -> asyncio.Task[Reservation]:
        """A request that stands in line, or has been granted, when this returns."""
        task = asyncio.ensure_future(
            self.room.reserve(Tier.DEVICE, nbytes, Use.TASK, purpose=purpose, query=QueryId(1))
        )
        for _ in range(4):
            await asyncio.sleep(0)
        return task

    def events(self, kind: type) -> list[Any]:
        return [event for _, event in self.recorder.events() if isinstance(event, kind)]


def scene(main: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole(loop: SimLoop) -> None:
        await main(Scene())

    simulate(whole, 0)


def test_what_fits_is_granted_at_once() -> None:
    async def main(at: Scene) -> None:
        grant = await at.room.reserve(Tier.DEVICE, 60, Use.TASK, purpose=Purpose.CONSUME, query=QueryId(1))
        assert (grant.nbytes, at.asked) == (60, [])
        assert at.room.reserve_nowait(Tier.DEVICE, 41, Use.TASK) is None

    scene(main)


def test_waiters_are_served_in_order_as_bytes_come_back() -> None:
    async def main(at: Scene) -> None:
        held = [at.hold(50), at.hold(50)]
        first, second = await at.want(40), await at.want(10)
        await asyncio.sleep(0)
        held[0].release()
        done, _ = await asyncio.wait([first, second], timeout=0.01)
        assert done == {first, second}
        assert (at.ledger.totals[Tier.DEVICE], len(at.asked)) == (100, 2)

    scene(main)


def test_a_limit_that_moves_while_room_is_granted_loses_nobody() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(LIMIT)
        waiting = [await at.want(30) for _ in range(6)]

        def moved() -> None:
            # As the footprint does, whose own look at the process a grant may bring about.
            if at.ledger.limits[Tier.DEVICE] < 2 * LIMIT:
                at.ledger.move_limit(Tier.DEVICE, at.ledger.limits[Tier.DEVICE] + 20)

        at.ledger.changed = moved
        held.release()
        done, _ = await asyncio.wait(waiting, timeout=0.01)
        assert done == set(waiting)
        assert at.ledger.totals[Tier.DEVICE] == 180
        assert not at.room.wants

    scene(main)


def test_a_small_request_does_not_overtake_a_large_one() -> None:
    async def main(at: Scene) -> None:
        held = [at.hold(30), at.hold(70)]
        large, small = await at.want(80), await at.want(20)
        await asyncio.sleep(0)
        held[0].release()
        await asyncio.sleep(0.05)
        assert not large.done()
        assert not small.done()
        held[1].release()
        await asyncio.wait([large, small], timeout=0.01)
        assert large.done()
        assert small.done()

    scene(main)


def test_consumers_go_before_producers() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        producer = await at.want(100, Purpose.PRODUCE)
        await asyncio.sleep(0)
        consumer = await at.want(100)
        await asyncio.sleep(0)
        held.release()
        await asyncio.sleep(0.01)
        assert consumer.done()
        assert not producer.done()
        producer.cancel()

    scene(main)


def test_who_gives_up_waiting_leaves_the_line_and_loses_nothing() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        first, second = await at.want(100), await at.want(100)
        await asyncio.sleep(0)
        held.release()
        # Granted in this step, cancelled in the same one.
        first.cancel()
        await asyncio.wait([first, second], timeout=0.05)
        assert first.cancelled()
        assert second.result().nbytes == 100
        assert at.ledger.live == 1

    scene(main)


def test_a_request_larger_than_the_tier_is_cut_to_it() -> None:
    async def main(at: Scene) -> None:
        assert (await (await at.want(10 * LIMIT))).nbytes == LIMIT

    scene(main)


def test_when_nothing_runs_and_nothing_can_move_the_request_is_let_through() -> None:
    async def main(at: Scene) -> None:
        at.hold(90)
        at.busy = False
        want = await at.want(50)
        await asyncio.sleep(0)
        at.room.refuse(at.asked[0])
        assert (await want).nbytes == 50
        (wanted,), (over,) = at.events(RoomWanted), at.events(Overbooked)
        assert (wanted.nbytes, over.over, over.cause) == (50, 40, 1)
        (given,), waits = at.events(RoomGiven), at.room.waits[Purpose.CONSUME]
        assert (given.how, given.cause) == (over.reason, 1)
        assert (waits.count, waits.forced) == (1, 1)

    scene(main)


def test_waits_are_counted_by_purpose_however_they_end() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        consumer, producer = await at.want(100), await at.want(10, Purpose.PRODUCE)
        await asyncio.sleep(0.05)
        held.release()
        await consumer
        producer.cancel()
        await asyncio.wait([producer])
        assert [given.how for given in at.events(RoomGiven)] == ["room came", "given up"]
        for waits in at.room.waits.values():
            assert (waits.count, waits.forced) == (1, 0)
            assert waits.seconds > 0.04

    scene(main)


def test_a_producer_is_let_through_only_after_it_may_take_from_what_is_queued() -> None:
    async def main(at: Scene) -> None:
        at.hold(90)
        at.busy = False
        want = await at.want(50, Purpose.PRODUCE)
        await asyncio.sleep(0)
        at.room.refuse(at.asked[0])
        assert not want.done()
        assert [one.purpose for one in at.asked] == [Purpose.CONSUME, Purpose.CONSUME]
        at.room.refuse(at.asked[1])
        assert (await want).nbytes == 50

    scene(main)


def test_while_something_runs_a_refused_request_waits_and_a_stall_lets_the_smallest_through() -> None:
    async def main(at: Scene) -> None:
        at.hold(100)
        large, small = await at.want(60), await at.want(20)
        await asyncio.sleep(0)
        at.room.refuse(at.asked[0])
        await asyncio.sleep(0.09)
        assert not small.done()
        await asyncio.sleep(0.02)
        assert small.done()
        assert not large.done()
        # One at a time: only once that one is back, the next.
        await asyncio.sleep(0.5)
        assert not large.done()
        small.result().release()
        await asyncio.sleep(0.2)
        assert large.done()

    scene(main)


def test_a_stall_lets_nobody_through_for_whom_the_process_has_nothing_to_spare_until_it_lasts() -> None:
    async def main(at: Scene) -> None:
        at.hold(100)
        at.room.spare = lambda: 59
        want = await at.want(60)
        await asyncio.sleep(1.9)
        assert not want.done()
        await asyncio.sleep(0.2)
        assert want.done()
        want.result().release()
        at.room.spare = lambda: 60
        want = await at.want(60)
        await asyncio.sleep(0.11)
        assert want.done()

    scene(main)


def test_a_limit_that_rises_while_a_request_is_let_through_does_not_serve_it_twice() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        want = await at.want(60)

        def rise() -> None:
            at.ledger.changed = lambda: None
            at.ledger.move_limit(Tier.DEVICE, 10 * LIMIT)

        at.ledger.changed = rise
        await asyncio.sleep(0.11)
        assert (await want).nbytes == 60
        want.result().release()
        held.release()
        assert at.ledger.totals[Tier.DEVICE] == 0

    scene(main)


def test_bytes_that_come_back_restart_the_stall() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        want = await at.want(60)
        for size in (90, 80, 70):
            await asyncio.sleep(0.08)
            held.resize(size)
        assert not want.done()
        want.cancel()

    scene(main)


def test_states_and_batches_beyond_the_limit_are_out_of_room() -> None:
    async def main(at: Scene) -> None:
        at.hold(80, Use.STATE)
        at.hold(30, Use.BATCH)
        at.busy = False
        want = await at.want(10)
        await asyncio.sleep(0)
        at.room.refuse(at.asked[0])
        with pytest.raises(OutOfRoom, match="80 B, batches 30 B, and nothing of it can be moved"):
            await want
        assert at.room.wants == ()

    scene(main)


def test_what_could_move_if_the_spill_folder_took_it_is_the_folders_fault() -> None:
    async def main(at: Scene) -> None:
        at.hold(110, Use.BATCH)
        at.busy = False
        want = await at.want(10)
        await asyncio.sleep(0)
        reason = SpillFailed("the folder is read-only")
        at.room.refuse(at.asked[0], reason)
        with pytest.raises(SpillFailed, match=r"110 B.*more can be spilled: the folder is read-only") as found:
            await want
        assert found.value.__cause__ is reason

    scene(main)


# --------------------------------------------------------------------------------- found by the simulation


def test_a_request_refused_in_the_step_that_grants_another_is_not_forgotten() -> None:
    async def main(at: Scene) -> None:
        held = at.hold(100)
        small, large = await at.want(10), await at.want(95)
        await asyncio.sleep(0)
        at.ledger.shrunk = lambda tier: None
        held.resize(85)
        at.busy = False
        # Serves the first in line, and asks once more for the second when that one has gone on.
        at.room.refuse(at.asked[1])
        await asyncio.wait([small], timeout=0.01)
        await asyncio.sleep(0)
        assert at.asked[2:] == at.asked[1:2]
        at.room.refuse(at.asked[2])
        await asyncio.wait([large], timeout=0.01)
        assert small.done()
        assert large.done()

    scene(main)


def test_a_forced_reservation_that_stays_does_not_stop_the_stall_rule_when_nothing_runs() -> None:
    async def main(at: Scene) -> None:
        at.hold(100)
        first = await at.want(20)
        await asyncio.sleep(0.15)
        assert first.done()
        second = await at.want(20)
        at.busy = False
        await asyncio.sleep(0.15)
        assert second.done()

    scene(main)


def test_room_that_was_given_and_not_used_yet_is_no_reason_to_refuse_another() -> None:
    async def main(at: Scene) -> None:
        at.hold(90, Use.BATCH)
        at.busy = False
        first, second = await at.want(20), await at.want(20)
        at.room.refuse(at.asked[0])
        # The reader of a batch has room for it now, and has not come to bring it up: nothing is full for good.
        at.hold(20, Use.BATCH)
        at.room.refuse(at.asked[1])
        await asyncio.wait([first], timeout=0.01)
        assert first.done()
        assert not second.done()
        await asyncio.sleep(0)
        assert len(at.asked) == 3
        second.cancel()

    scene(main)
