"""The production worker under seeded schedules, limits, faults and callers; checks are in `support.sim_worker`.

The long form is 20,000 more seeds, in parts that may run side by side: `pytest -m slow tests/sim -n auto`.

`BIREME_SIM_SEEDS` sets how many fresh seeds are run (2,000 when it is not set), `BIREME_SIM_START` the first.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.disk import DiskFaults, MemorySpill
from support.sim_worker import Outcome, Plan, run_seed

from bireme.data.batch import Batch
from bireme.data.packed import unpack
from bireme.runtime.compute.executor import ComputeExecutor
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry, HolderState
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.pipeline import LivePipeline
from bireme.storage.base import SpillTicket

_SEEDS = int(os.environ.get("BIREME_SIM_SEEDS", "2000"))
_START = int(os.environ.get("BIREME_SIM_START", "0"))
_PARTS = 20
_LONG_START, _LONG_SEEDS, _LONG_PARTS = 100_000, 20_000, 200
_FOUND = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
_KEPT = [int(line.split()[0]) for line in _FOUND if line[0] != "#"]


def run_all(seeds: Iterator[int] | range) -> Outcome:
    total = Outcome()
    for seed in seeds:
        try:
            total.add(run_seed(seed))
        except BaseException as error:
            error.add_note(f"found by seed {seed}: {Plan.draw(seed)}")
            raise
    return total


@pytest.mark.parametrize("part", range(_PARTS))
def test_fresh_seeds(part: int) -> None:
    run_all(range(_START + part, _START + _SEEDS, _PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_LONG_PARTS))
def test_many_fresh_seeds(part: int) -> None:
    run_all(range(_LONG_START + part, _LONG_START + _LONG_SEEDS, _LONG_PARTS))


def test_kept_seeds() -> None:
    run_all(iter(_KEPT))


def test_the_simulation_goes_where_it_claims() -> None:
    total = run_all(range(120))
    assert total.finished > 20
    assert total.closed > 10
    assert total.cancelled > 10
    assert total.spilled > 50
    assert total.retried > 20
    assert min(total.on_loop, total.on_threads) > 500
    assert total.cached > 500
    assert total.hits > 10
    assert total.relieved > 20
    assert total.cut > 100
    assert total.bits > 10
    assert {"OutOfRoom", "Overflow"} <= total.failed.keys()


def test_same_seed_same_events() -> None:
    for seed in range(8):
        assert run_seed(seed).trace == run_seed(seed).trace


def test_other_seeds_other_events() -> None:
    assert len({tuple(run_seed(seed).trace) for seed in range(8)}) == 8


# ------------------------------------------------------------------------------------------------ canaries


def forget_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordered edge gives its batches as they come."""
    original = HolderState.__init__

    def unordered(state: HolderState, **kwargs: Any) -> None:
        original(state, **{**kwargs, "ordered": False})

    monkeypatch.setattr(HolderState, "__init__", unordered)


def lose_a_wakeup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that ends does not tell those that wait for room."""
    monkeypatch.setattr(ComputeExecutor, "_wake_one", lambda executor: None)


def lose_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is being moved when it is wanted is skipped."""
    original = HolderState.put

    def losing(state: HolderState, producer: int, sequence: int, outputs: Any) -> list[Entry]:
        kept = list(outputs)
        return original(state, producer, sequence, kept[:-1] if sequence == 3 else kept)

    monkeypatch.setattr(HolderState, "put", losing)


def leak_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that were fetched for tasks that never run are not given back."""
    original = LivePipeline.discard_inputs

    def leaking(pipeline: LivePipeline) -> None:
        pipeline.loaded.clear()
        original(pipeline)

    monkeypatch.setattr(LivePipeline, "discard_inputs", leaking)


def give_up_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pipeline hands over because memory is short is taken for the output of a task that nobody wants."""
    original = LivePipeline.deliver

    def dropping(pipeline: LivePipeline, task: Task, result: Result, grant: Reservation) -> None:
        if task.kind is TaskKind.RELIEVE:
            result.made.clear()
        original(pipeline, task, result, grant)

    monkeypatch.setattr(LivePipeline, "deliver", dropping)


def trust_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back from disk is not compared with its checksum."""

    def reading(store: MemorySpill, ticket: SpillTicket) -> pa.RecordBatch:
        return unpack(pa.py_buffer(store._kept[ticket.offset]))

    monkeypatch.setattr(MemorySpill, "read", reading)


def lose_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a partition that was cut, the batches of one part are forgotten."""
    original = Feed.add_part
    monkeypatch.setattr(
        Feed, "add_part", lambda feed, entries: original(feed, entries[:-1] if len(entries) > 1 else entries)
    )


def promote_the_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that comes up is the one before it."""
    original = Mover._read
    last: list[pa.RecordBatch] = []

    def reading(mover: Mover, batch: Batch) -> pa.RecordBatch:
        content = original(mover, batch)
        last.append(content)
        return last[-2] if len(last) > 1 and last[-2].num_rows == content.num_rows else content

    monkeypatch.setattr(Mover, "_read", reading)


def count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Part of a grant that becomes a batch stays part of the grant."""
    original = Reservation.carve

    def doubled(grant: Reservation, nbytes: int, use: Use) -> Reservation:
        carved = original(grant, nbytes, use)
        grant.nbytes += 1
        return carved

    monkeypatch.setattr(Reservation, "carve", doubled)


def mix_up_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is reported to nobody."""
    monkeypatch.setattr(LivePipeline, "fail", lambda pipeline, task, error: pipeline._out(task) if task else None)


@pytest.mark.parametrize(
    "plant",
    [
        forget_order,
        lose_a_wakeup,
        lose_a_batch,
        leak_buffers,
        give_up_rows,
        lose_a_part,
        promote_the_wrong,
        count_twice,
        mix_up_queries,
    ],
)
def test_a_planted_fault_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    # What is logged with its traceback would keep the broken worker alive, and that would count as a leak.
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    with pytest.raises(BaseException) as found:  # noqa: PT011
        run_all(range(300))
    assert not isinstance(found.value, KeyboardInterrupt | SystemExit)


def flipping(seed: int) -> Plan:
    """A drawn plan, on a disk that flips bits, where memory is short."""
    drawn = Plan.draw(seed)
    config = replace(drawn.config, memory_bytes_max=80, pinned_bytes_max=0)
    return replace(drawn, config=config, disk=DiskFaults(flipped_bit=0.3))


def test_flipped_bits_are_found_by_their_checksums_and_only_by_those(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(run_seed(seed, flipping).failed.get("SpillCorrupt", 0) for seed in range(12)) > 3
    trust_the_disk(monkeypatch)
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    with pytest.raises(BaseException) as found:  # noqa: PT011
        sum(run_seed(seed, flipping).finished for seed in range(40))
    assert not isinstance(found.value, KeyboardInterrupt | SystemExit)
