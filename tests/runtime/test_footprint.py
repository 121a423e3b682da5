"""What kernels keep of memory for reuse gives way to what is in use, and the ledger to what nobody counted."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import bireme as bm
from bireme.backends.native import _kernels, pool_quota
from bireme.data.tier import Tier
from bireme.observe.event import LimitMoved
from bireme.observe.recorder import Recorder
from bireme.runtime.memory.footprint import Footprint, share_of
from bireme.runtime.memory.ledger import Ledger, Use
from bireme.units import MIB, parse_bytes


class Process:
    """A process that holds what it is told to hold, with a pool that remembers its limits."""

    def __init__(self, limit: int, kept_max: int = 64 * MIB, share: int = 0) -> None:
        self.now = 0.0
        self.resident = 100 * MIB
        self.pool = (0, 0)
        self.told: list[tuple[int, int]] = []
        self.tidied = 0
        self.held_to = (0, 0)
        self.ledger = Ledger({Tier.DEVICE: limit})
        self.recorder = Recorder(100)
        self.footprint = Footprint(
            self.ledger,
            self,
            self.recorder,
            Clock(self),
            kept_max=kept_max,
            share=share,
            resident=lambda: self.resident,
        )

    def set(self, held_max: int, kept_max: int, /) -> None:
        self.told.append((held_max, kept_max))

    def hold_to(self, limit: int, share: int, /) -> None:
        self.held_to = limit, share

    def held(self) -> tuple[int, int]:
        return self.pool

    def ask_tidy(self) -> None:
        self.tidied += 1

    def look(self, *, resident: int, in_use: int = 0, kept: int = 0) -> None:
        """The process holds so much, and later the ledger changes."""
        self.resident, self.pool = resident, (in_use, kept)
        self.now += 1.0
        self.ledger.take(Tier.DEVICE, MIB, Use.TASK).release()

    @property
    def limit(self) -> int:
        return self.ledger.limits[Tier.DEVICE]


class Clock:
    def __init__(self, process: Process) -> None:
        self._process = process

    def now(self) -> float:
        return self._process.now


def test_the_pool_gives_up_what_the_process_holds_too_much() -> None:
    process = Process(200 * MIB)
    assert process.told == [(200 * MIB, 64 * MIB)]
    process.look(resident=340 * MIB, in_use=140 * MIB, kept=50 * MIB)
    assert process.told[1:] == []
    process.look(resident=390 * MIB, in_use=140 * MIB, kept=50 * MIB)
    # 40 MiB above the limit and what the process takes by itself.
    assert process.told[1:] == [(150 * MIB, 64 * MIB)]
    process.look(resident=300 * MIB, in_use=140 * MIB)
    assert process.told[-1] == (190 * MIB, 64 * MIB)
    process.look(resident=150 * MIB)
    assert process.told[-1] == (200 * MIB, 64 * MIB)
    assert process.limit == 200 * MIB
    process.footprint.close()
    assert process.told[-1] == (0, 0)
    process.look(resident=900 * MIB)
    assert process.told[-1] == (0, 0)


def test_what_nobody_counted_lowers_the_limit_down_to_half() -> None:
    process = Process(200 * MIB)
    state = process.ledger.take(Tier.DEVICE, 100 * MIB, Use.STATE)
    process.look(resident=(150 + 100 + 20) * MIB, in_use=100 * MIB)
    assert process.limit == 200 * MIB
    # A tenth is allowed, and what the pool keeps goes another way.
    process.look(resident=(150 + 101 + 20 + 40 + 30) * MIB, in_use=100 * MIB, kept=30 * MIB)
    assert process.limit == 160 * MIB
    process.look(resident=900 * MIB, in_use=100 * MIB)
    assert process.limit == 100 * MIB
    # That it was close to the promise is not forgotten at once.
    process.look(resident=(150 + 100) * MIB, in_use=100 * MIB)
    assert process.limit == 156 * MIB
    process.now += 15
    process.look(resident=(150 + 100) * MIB, in_use=100 * MIB)
    assert process.limit == 200 * MIB
    moved = [event.limit for _, event in process.recorder.events() if isinstance(event, LimitMoved)]
    assert moved == [160 * MIB, 100 * MIB, 156 * MIB, 200 * MIB]
    state.release()


def test_coming_close_to_the_promise_lowers_the_limit_for_some_time() -> None:
    process = Process(200 * MIB)
    promised = (150 + 200 + 20) * MIB
    with process.ledger.take(Tier.DEVICE, 200 * MIB, Use.TASK):
        process.look(resident=promised - 8 * MIB, in_use=200 * MIB)
        assert process.limit == 200 * MIB
        # What is kept for reuse is given up first.
        process.look(resident=promised, in_use=180 * MIB, kept=20 * MIB)
        assert process.limit == 200 * MIB
        process.look(resident=promised + 12 * MIB, in_use=200 * MIB)
        assert process.limit == 180 * MIB
    process.look(resident=160 * MIB)
    assert process.limit == 184 * MIB
    process.now += 4
    process.look(resident=160 * MIB)
    assert process.limit == 200 * MIB


def test_what_nobody_counted_is_asked_back_now_and_then() -> None:
    process = Process(200 * MIB)
    process.look(resident=(150 + 8) * MIB)
    assert process.tidied == 0
    process.look(resident=(150 + 14) * MIB)
    assert process.tidied == 1
    process.now -= 0.95
    process.look(resident=(150 + 14) * MIB)
    assert process.tidied == 1
    process.look(resident=(150 + 14) * MIB)
    assert process.tidied == 2


def test_where_a_tenth_of_the_limit_is_little_the_pool_leaves_room_for_surprises() -> None:
    process = Process(60 * MIB)
    process.look(resident=(150 + 60) * MIB, in_use=20 * MIB, kept=40 * MIB)
    # 6 of 16 MiB are a tenth of the limit.
    assert process.told[-1] == (50 * MIB, 64 * MIB)


def test_while_much_is_held_it_looks_also_when_nothing_is_counted() -> None:
    process = Process(200 * MIB)
    calls: list[Callable[[], None]] = []
    process.footprint.later = lambda seconds, call: calls.append(call)
    process.look(resident=(150 + 90) * MIB)
    task = process.ledger.take(Tier.DEVICE, MIB, Use.TASK)
    assert not calls
    process.look(resident=(150 + 110) * MIB, in_use=20 * MIB, kept=60 * MIB)
    process.look(resident=(150 + 110) * MIB, in_use=20 * MIB, kept=60 * MIB)
    assert len(calls) == 1
    # A library takes as much as that and nothing changes in the ledger.
    process.resident = (150 + 240) * MIB
    calls.pop()()
    assert process.told[-1] == (40 * MIB, 64 * MIB)
    assert len(calls) == 1
    task.release()
    calls.pop()()
    assert not calls
    process.look(resident=(150 + 240) * MIB)
    process.footprint.close()
    told = len(process.told)
    for call in calls:
        call()
    assert len(process.told) == told


def test_a_look_that_takes_long_does_not_look_again_meanwhile() -> None:
    process = Process(200 * MIB)
    looks: list[float] = []

    def slow() -> int:
        looks.append(process.now)
        process.now += 1.0
        return process.resident

    def moved(tier: Tier) -> None:
        process.ledger.grown = process.ledger.shrunk = lambda tier: None
        process.ledger.take(tier, MIB, Use.TASK).release()

    process.footprint._resident = slow
    # Whoever waits for room is given some as soon as the limit moves.
    process.ledger.grown = process.ledger.shrunk = moved
    process.look(resident=(150 + 150) * MIB)
    assert process.limit == 100 * MIB
    # As bytes are taken, and as they are given back.
    assert len(looks) == 2


def test_what_is_spare_is_what_the_process_does_not_hold() -> None:
    process = Process(200 * MIB)
    process.ledger.take(Tier.DEVICE, 190 * MIB, Use.TASK)
    process.resident = (150 + 30) * MIB
    assert process.footprint.spare() == 170 * MIB
    process.resident = (150 + 230) * MIB
    assert process.footprint.spare() == -30 * MIB


def test_it_looks_now_and_then_only_and_tells_of_steps_only() -> None:
    process = Process(200 * MIB)
    process.look(resident=150 * MIB)
    process.resident = 500 * MIB
    process.ledger.take(Tier.DEVICE, MIB, Use.TASK).release()
    assert len(process.told) == 1
    process.look(resident=(350 + 20) * MIB, kept=180 * MIB)
    for more in range(3):
        process.look(resident=(350 + 20 + more) * MIB, kept=180 * MIB)
    assert len(process.told) == 2


def test_what_the_process_held_before_the_session_is_not_the_sessions() -> None:
    ledger, recorder = Ledger({Tier.DEVICE: 100 * MIB}), Recorder(10)
    process = Process(100 * MIB)
    Footprint(ledger, process, recorder, Clock(process), kept_max=MIB, resident=lambda: 5000 * MIB)
    process.now = 1.0
    ledger.take(Tier.DEVICE, MIB, Use.TASK).release()
    assert ledger.limits[Tier.DEVICE] == 100 * MIB


def test_where_the_system_does_not_tell_nothing_is_taken() -> None:
    process = Process(100 * MIB)
    process.look(resident=0, in_use=20 * MIB, kept=80 * MIB)
    assert (process.told, process.limit) == ([(100 * MIB, 64 * MIB)], 100 * MIB)


def test_quotas_of_several_add_up_and_end_with_their_owners() -> None:
    alone = _kernels.pool_statistics()[2]
    first, second = pool_quota(), pool_quota()
    first.set(90 * MIB, 3 * MIB)
    second.set(90 * MIB, 5 * MIB)
    together = _kernels.pool_statistics()[2]
    del first
    assert together - _kernels.pool_statistics()[2] == 3 * MIB
    second.set(0, 0)
    assert _kernels.pool_statistics()[1] <= _kernels.pool_statistics()[2]
    del second
    assert _kernels.pool_statistics()[2] == alone


@pytest.mark.parametrize("limit", ["64MiB", "1GiB"])
def test_a_session_keeps_its_pool_within_its_memory(limit: str) -> None:
    numbers = pa.table({"n": pa.array(range(300_000), pa.int64())})
    with bm.connect(threads=2, memory_limit=limit) as session:
        session.register("t", numbers)
        session.sql("select sum(a.n) from t a join t b on a.n = b.n").collect()
        _, pooled, pooled_max = _kernels.pool_statistics()
        assert pooled <= min(pooled_max, parse_bytes(limit))
        assert session.statistics().bytes_held[Tier.DEVICE] == 0


def test_kernels_that_ask_have_a_share_and_what_is_free_beside_all_shares() -> None:
    assert share_of(200 * MIB, slots=2) == 50 * MIB
    assert share_of(32 * MIB, slots=4) == 16 * MIB
    process = Process(200 * MIB, share=50 * MIB)
    assert process.held_to == (200 * MIB, 50 * MIB)
    process.look(resident=150 * MIB)
    assert process.footprint.may_have(100 * MIB)
    assert not process.footprint.may_have(101 * MIB)
    process.look(resident=320 * MIB, in_use=100 * MIB, kept=30 * MIB)
    # What the pool keeps it gives up.
    assert process.footprint.may_have(50 * MIB)
    assert not process.footprint.may_have(51 * MIB)
    process.look(resident=150 * MIB, kept=30 * MIB)
    assert process.footprint.may_have(130 * MIB)
    process.footprint.close()
    assert process.held_to == (0, 0)
