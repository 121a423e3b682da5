"""A worker on a real loop with real threads: life, errors, memory, back pressure, early ends, several queries."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import uvloop
from support.disk import DiskFaults, MemorySource, MemorySpill
from support.fake_stages import FakeSplit, FakeStage, FakeStages, FakeWork, rows_batch
from support.small_dags import SCAN, VALUES, dag, edge, emit, one_scan, pipeline, read, scan_then, splits

from bireme.config import Config
from bireme.data.ids import EdgeId, EventId, PipelineId, QueryId
from bireme.data.node import replaced
from bireme.data.tier import Tier
from bireme.errors import BiremeError, Cancelled, EngineBug, OutOfRoom, Overflow, Stalled, StorageError
from bireme.observe import event as events
from bireme.operators.base import NOTHING, Emission, Output, Relievable
from bireme.plan.hint import DeviceKind, Hint
from bireme.plan.physical import BuildSink, Dag, GroupSink, GroupSpec, Lookup, ScanSource, Take
from bireme.runtime.memory.ledger import Use
from bireme.runtime.memory.room import Purpose
from bireme.runtime.query import ResultStream
from bireme.runtime.worker import Worker
from bireme.units import MIB

ONE, TWO, THREE = PipelineId(1), PipelineId(2), PipelineId(3)


def config(**changes: Any) -> Config:
    settings: dict[str, Any] = {
        "threads": 2,
        "memory_bytes_max": 1 << 30,
        "spill_folders": (Path("none"),),
        "spill_bytes_max": 1 << 30,
        "deadlock_seconds_max": 0.3,
    }
    return Config(**(settings | changes))


def run(main: Callable[[Worker], Awaitable[Any]], source: MemorySource | None = None, **changes: Any) -> Worker:
    """Runs `main` with a worker and checks that nothing is left of it."""
    spill = MemorySpill()

    async def whole() -> Worker:
        async with Worker(config(**changes), source=source or MemorySource(), spill=spill) as worker:
            await main(worker)
            assert worker.ledger.live == 0, worker.ledger
            assert worker.statistics().queries == 0
        return worker

    worker = uvloop.run(whole())
    assert spill.bytes_used == 0
    return worker


async def rows_of(stream: ResultStream) -> list[int]:
    return [value async for batch in stream for value in batch.column(0).to_pylist()]


def happened(worker: Worker, kind: type) -> list[Any]:
    return [event for _, event in worker.recorder.events() if isinstance(event, kind)]


# ------------------------------------------------------------------------------------------------ life


def test_a_scan_gives_its_rows_in_order() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(add=1, splits=splits(50, range_bytes=10))})
        assert await rows_of(worker.run(one_scan(), stages)) == list(range(1, 51))
        assert stages.counts.set_closed == 1

    worker = run(main)
    fetched, left_to_task = happened(worker, events.Preloaded), happened(worker, events.ReadByTask)
    assert sorted(event.split for event in fetched + left_to_task) == list(range(50))
    assert fetched
    assert left_to_task


@pytest.mark.parametrize("slow", [0.0, 1.0])
def test_brief_tasks_run_on_the_loop_and_others_on_threads(slow: float) -> None:
    async def main(worker: Worker) -> None:
        ran_on: set[str] = set()

        class Watched(FakeStage):
            def run_split(self, *args: Any) -> Output:
                ran_on.add(threading.current_thread().name)
                return super().run_split(*args)

        stages = FakeStages({ONE: FakeWork(splits=splits(20), slow=slow)}, make=Watched)
        stream = worker.run(one_scan(), stages)
        assert await rows_of(stream) == list(range(20))
        assert (threading.current_thread().name in ran_on) is (slow == 0)
        profile = stream.profile.pipelines[ONE]
        assert profile.tasks_on_loop == (profile.tasks if slow == 0 else 0)

    worker = run(main)
    assert {event.on_loop for event in happened(worker, events.TaskEnded)} == {slow == 0}


def test_brief_tasks_leave_the_loop_its_turns() -> None:
    async def main(worker: Worker) -> None:
        class Slow(FakeStage):
            def run_split(self, *args: Any) -> Output:
                time.sleep(0.002)
                return super().run_split(*args)

        query = asyncio.create_task(rows_of(worker.run(one_scan(), FakeStages(works, make=Slow))))
        turns = 0
        while not query.done():
            turns += 1
            await asyncio.sleep(0)
        assert await query == list(range(20))
        ended = happened(worker, events.TaskEnded)
        assert all(event.on_loop for event in ended)
        assert turns >= len(ended) > 5

    works = {ONE: FakeWork(splits=splits(20))}
    run(main)


def test_a_task_that_was_brief_only_by_expectation_is_told_of_and_the_next_go_to_threads() -> None:
    async def main(worker: Worker) -> None:
        class Late(FakeStage):
            def run_split(self, *args: Any) -> Output:
                time.sleep(0.05)
                return super().run_split(*args)

        many = FakeSplit(tuple(range(100)))
        stream = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=(many,) * 4)}, make=Late))
        assert len(await rows_of(stream)) == 400
        profile = stream.profile.pipelines[ONE]
        assert profile.tasks_on_loop == 1
        assert [note for note in profile.notes if "a task of 100 rows held up the loop" in note]

    run(main)


@pytest.mark.parametrize("take", [Take.STREAM, Take.SERIAL])
@pytest.mark.parametrize(("size", "is_joined"), [(10, True), (5_000, False)])
def test_short_batches_that_follow_each_other_share_a_task(take: Take, size: int, is_joined: bool) -> None:
    async def main(worker: Worker) -> None:
        given = tuple([FakeSplit(tuple(range(size * number, size * (number + 1)))) for number in range(20)])
        works = {ONE: FakeWork(splits=given, slow=1.0), TWO: FakeWork(add=1)}
        stream = worker.run(scan_then(take, waits=True), FakeStages(works))
        assert await rows_of(stream) == list(range(1, 20 * size + 1))
        profile = stream.profile.pipelines[TWO]
        assert profile.tasks == (1 if is_joined else 20)
        assert profile.rows_in == 20 * size

    run(main)


@pytest.mark.parametrize("take", list(Take))
def test_every_way_to_take(take: Take) -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(20), partitions=3), TWO: FakeWork(add=100)})
        got = await rows_of(worker.run(scan_then(take, partitions=12), stages))
        assert sorted(got) == list(range(100, 120))
        if take is Take.PARTITION:
            assert got == [value for part in range(3) for value in range(100, 120) if (value - 100) % 3 == part]

    run(main)


def test_partitions_without_a_batch_get_their_task_too() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=()), TWO: FakeWork()})
        assert await rows_of(worker.run(scan_then(Take.PARTITION, partitions=5), stages)) == []
        assert stages.counts.calls == 5

    run(main)


def test_several_queries_at_once_and_one_failure_among_them() -> None:
    async def main(worker: Worker) -> None:
        good = [FakeStages({ONE: FakeWork(add=number, splits=splits(30))}) for number in range(4)]
        bad = FakeStages({ONE: FakeWork(splits=splits(30), fails=1.0)})
        streams = [worker.run(one_scan(), stages) for stages in (*good, bad)]
        results = await asyncio.gather(*map(rows_of, streams), return_exceptions=True)
        assert results[:4] == [list(range(number, number + 30)) for number in range(4)]
        assert isinstance(results[4], Overflow)

    run(main)


def test_closing_a_worker_cancels_its_queries() -> None:
    async def main() -> None:
        worker = Worker(config(), source=MemorySource(), spill=MemorySpill())
        await worker.start()
        stream = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(10_000))}))
        await anext(stream)
        await worker.close()
        await worker.close()
        assert worker.ledger.live == 0
        with pytest.raises(Cancelled):
            await rows_of(stream)
        with pytest.raises(EngineBug, match="not running"):
            worker.run(one_scan(), FakeStages({ONE: FakeWork()}))

    uvloop.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("bireme")]


def test_a_stream_closed_early_leaves_nothing_and_more_work_goes_on() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(5_000))})
        async with worker.run(one_scan(), stages) as stream:
            await anext(stream)
        assert (stages.counts.opened, stages.counts.closed, stages.counts.set_closed) == (1, 1, 1)
        assert stages.counts.calls < 5_000
        assert await rows_of(worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(3))}))) == [0, 1, 2]

    worker = run(main)
    assert [event.outcome for event in happened(worker, events.QueryEnded)] == ["closed", "done"]


def test_splits_that_take_long_are_found_beside_the_loop() -> None:
    threads: list[int] = []

    class Noting(FakeStages):
        def splits(self, pipeline: Any) -> Any:
            threads.append(threading.get_ident())
            assert self.counts.opened == 1
            return super().splits(pipeline)

    async def main(worker: Worker) -> None:
        for slow in (False, True):
            stages = Noting({ONE: FakeWork(splits=splits(4, range_bytes=3), slow_splits=slow)})
            assert await rows_of(worker.run(one_scan(), stages)) == [0, 1, 2, 3]
        assert threads[0] == threading.get_ident() != threads[1]

    run(main)


@pytest.mark.parametrize("fails", [True, False])
def test_a_query_that_ends_while_splits_are_looked_for_waits_for_that(fails: bool) -> None:
    looking, go_on = threading.Event(), threading.Event()

    class Waiting(FakeStages):
        def splits(self, pipeline: Any) -> Any:
            looking.set()
            assert go_on.wait(10)
            if fails:
                raise ZeroDivisionError("nobody asks any more")
            return super().splits(pipeline)

    async def main(worker: Worker) -> None:
        stages = Waiting({ONE: FakeWork(splits=splits(4), slow_splits=True)})
        stream = worker.run(one_scan(), stages)
        await asyncio.to_thread(looking.wait)
        closing = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0.01)
        assert not closing.done()
        assert stages.counts.set_closed == 0
        go_on.set()
        await closing
        assert (stages.counts.set_closed, stages.counts.opened, stages.counts.closed) == (1, 1, 1)

    run(main)


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("slow_splits", [False, True])
def test_an_error_of_a_stage_that_is_not_ours_is_a_bug_with_its_cause(slow_splits: bool) -> None:
    class Broken(FakeStages):
        def splits(self, _: object) -> Any:
            raise ZeroDivisionError("oops")

    async def main(worker: Worker) -> None:
        stages = Broken({ONE: FakeWork(slow_splits=slow_splits)})
        with pytest.raises(EngineBug, match="ZeroDivisionError: oops") as raised:
            await rows_of(worker.run(one_scan(), stages))
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        assert stages.counts.set_closed == 1

    run(main)


def test_stages_that_cannot_be_stopped_hold_up_no_end() -> None:
    class Unstoppable(FakeStages):
        def stop(self) -> None:
            raise ZeroDivisionError("oops")

    async def main(worker: Worker) -> None:
        stages = Unstoppable({ONE: FakeWork(splits=splits(3))})
        assert await rows_of(worker.run(one_scan(), stages)) == [0, 1, 2]
        await worker.run(one_scan(), Unstoppable({ONE: FakeWork(splits=splits(3))})).aclose()
        assert stages.counts.set_closed == 1

    run(main)


def test_bytes_that_cannot_be_read_fail_their_query() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(5, range_bytes=4))})
        with pytest.raises(StorageError, match="cannot be read"):
            await rows_of(worker.run(one_scan(), stages))

    run(main, MemorySource(faults=DiskFaults(read_fails=1.0)))


def test_work_that_waits_for_itself_is_reported_with_its_story() -> None:
    async def main(worker: Worker) -> None:
        waiting = dag(
            (pipeline(1, VALUES, emit(1), after=(2,)), pipeline(2, VALUES, emit(1), after=(1,))), (edge(1, (1, 2)),)
        )
        stages = FakeStages({ONE: FakeWork(), TWO: FakeWork()})
        with pytest.raises(Stalled, match=r"p1, waiting.* waits for the end of <p2"):
            await rows_of(worker.run(waiting, stages))

    worker = run(main)
    assert len(happened(worker, events.DeadlockFound)) == 1


def test_a_stuck_query_is_found_beside_one_that_runs() -> None:
    async def main(worker: Worker) -> None:
        waiting = dag(
            (pipeline(1, VALUES, emit(1), after=(2,)), pipeline(2, VALUES, emit(1), after=(1,))), (edge(1, (1, 2)),)
        )
        busy = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(40_000))}))
        with pytest.raises(Stalled):
            await rows_of(worker.run(waiting, FakeStages({ONE: FakeWork(), TWO: FakeWork()})))
        await anext(busy)
        await busy.aclose()

    run(main, deadlock_seconds_max=0.1, threads=1)


def test_a_query_may_wait_as_long_as_something_happens_to_older_ones() -> None:
    async def main(worker: Worker) -> None:
        # As it is when the watchdog looks between two tasks.
        worker._watchdog._busy = lambda: False  # type: ignore[method-assign]
        older = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(4_000), slow=1.0)}))
        younger = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(3))}))
        assert len((await asyncio.gather(rows_of(older), rows_of(younger)))[0]) == 4_000
        assert not happened(worker, events.DeadlockFound)

    run(main, deadlock_seconds_max=0.1, threads=1)


def test_an_executor_that_breaks_ends_its_queries_instead_of_hanging_them() -> None:
    async def main() -> None:
        worker = Worker(config(), source=MemorySource(), spill=MemorySpill())
        await worker.start()
        worker.preload._choose = lambda refused: 1 // 0  # type: ignore[method-assign,assignment,return-value]
        stream = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(5, range_bytes=4))}))
        with pytest.raises(EngineBug, match="the worker broke under the query"):
            await rows_of(stream)
        with pytest.raises(EngineBug, match="broke"):
            await worker.close()

    uvloop.run(main())


# ---------------------------------------------------------------------------------------------- memory


def test_a_task_that_is_too_large_runs_in_pieces() -> None:
    async def main(worker: Worker) -> None:
        works = {ONE: FakeWork(splits=splits(3, rows=64)), TWO: FakeWork(add=1, rows_max=10)}
        got = await rows_of(worker.run(scan_then(Take.STREAM), FakeStages(works)))
        assert got == list(range(1, 3 * 64 + 1))

    worker = run(main)
    assert max(event.pieces for event in happened(worker, events.TaskRetried)) > 1


def test_a_row_that_does_not_fit_is_out_of_room() -> None:
    async def main(worker: Worker) -> None:
        works = {ONE: FakeWork(splits=splits(2, rows=4)), TWO: FakeWork(rows_max=0)}
        with pytest.raises(OutOfRoom, match="raise the memory limit"):
            await rows_of(worker.run(scan_then(Take.STREAM), FakeStages(works)))

    run(main)


def test_a_pipeline_that_keeps_rows_is_not_run_twice() -> None:
    grouping = GroupSink(edge(1, (1,)).id, GroupSpec((), ()))

    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(4), state=True, short_of_memory=1.0)})
        with pytest.raises(OutOfRoom):
            await rows_of(worker.run(dag((pipeline(1, SCAN, grouping),), (edge(1, (1,)),)), stages))

    worker = run(main)
    assert not happened(worker, events.TaskRetried)


@pytest.mark.parametrize("pinned", [0, 4 * MIB])
def test_what_does_not_fit_is_demoted_and_comes_back(pinned: int) -> None:
    async def main(worker: Worker) -> None:
        works = {ONE: FakeWork(splits=splits(40, rows=100)), TWO: FakeWork(add=1)}
        got = await rows_of(worker.run(scan_then(Take.PARTITION), FakeStages(works)))
        assert got == list(range(1, 4_001))

    worker = run(main, memory_bytes_max=8_000, pinned_bytes_max=pinned)
    demoted = happened(worker, events.Demoted)
    # The pinned pool holds four pages, so four batches; the rest goes on to disk.
    assert {event.target for event in demoted} == ({Tier.PINNED, Tier.DISK} if pinned else {Tier.DISK})
    assert sum(event.nbytes for event in happened(worker, events.Promoted)) >= 20_000
    # On demand it says for whom; ahead of need, at the watermark, it is nobody's.
    wanted = {number for number, event in worker.recorder.events() if isinstance(event, events.RoomWanted)}
    assert {event.cause for event in demoted} <= wanted | {events.NO_CAUSE}


def test_states_beyond_the_limit_are_out_of_room_not_a_hang() -> None:
    sink = BuildSink("t", (), 0, False)
    reader = ScanSource("t", "1", (0,), (), (Lookup("t", (0,)),))
    late = dag((pipeline(1, SCAN, sink), pipeline(2, reader, emit(1), after=(1,))), (edge(1, (2,)),))

    async def main(worker: Worker) -> None:
        works = {ONE: FakeWork(splits=splits(5, rows=100), state=True, parts=0), TWO: FakeWork(splits=splits(3))}
        with pytest.raises(OutOfRoom, match="join tables, groups and sorts hold"):
            await rows_of(worker.run(late, FakeStages(works)))

    run(main, memory_bytes_max=1_000)


def test_a_join_table_is_freed_with_its_last_reader() -> None:
    reader = ScanSource("t", "1", (0,), (), (Lookup("t", (0,)),))
    whole = dag(
        (
            pipeline(1, SCAN, BuildSink("t", (), 0, False)),
            pipeline(2, reader, emit(1), after=(1,)),
            pipeline(3, reader, emit(1), after=(1, 2)),
            pipeline(4, SCAN, emit(1), after=(3,)),
        ),
        (edge(1, (2, 3, 4)),),
    )

    async def main(worker: Worker) -> None:
        works = {ONE: FakeWork(splits=splits(5, rows=100), state=True, parts=0)}
        works |= {PipelineId(number): FakeWork(splits=splits(3)) for number in (2, 3, 4)}
        stages = FakeStages(works)
        await rows_of(worker.run(whole, stages))
        assert stages.counts.tables_freed == ["t"]

    worker = run(main)
    [freed] = happened(worker, events.TableFreed)
    assert (freed.pipeline, freed.table, freed.nbytes) == (ONE, "t", 4_000)
    order = [event for _, event in worker.recorder.events()]
    ends = [event.pipeline for event in order[: order.index(freed)] if isinstance(event, events.PipelineEnded)]
    assert ends == [1, 2, 3]


def grouped(splits_count: int, *, gives_up: bool, short_of_memory: float = 0.0) -> FakeStages:
    """A scan whose rows are kept until its end, or until memory is short; a reader of partitions after it."""
    kept = FakeWork(splits=splits(splits_count, rows=100), state=True, parts=2, partitions=12, gives_up=gives_up)
    return FakeStages({ONE: kept, TWO: FakeWork(add=1, short_of_memory=short_of_memory)})


def test_a_state_is_handed_over_when_memory_is_short_and_nothing_is_lost() -> None:
    async def main(worker: Worker) -> None:
        stages = grouped(60, gives_up=True)
        stream = worker.run(scan_then(Take.PARTITION, partitions=12), stages)
        assert sorted(await rows_of(stream)) == list(range(1, 6_001))
        assert not stages.counts.faults
        assert stages.counts.relieved > 3_000
        assert "gave up state" in str(stream.profile)

    worker = run(main, memory_bytes_max=16_000)
    relieved = happened(worker, events.StateRelieved)
    assert all(event.bytes_after == 0 < event.bytes_before for event in relieved)
    wanted = {number for number, event in worker.recorder.events() if isinstance(event, events.ReliefWanted)}
    assert {event.cause for event in relieved} == wanted
    # What was given up could be demoted, so that all 48,000 bytes never lay in memory.
    assert worker.ledger.peaks[Tier.DEVICE] < 40_000


def test_with_enough_memory_no_state_is_handed_over() -> None:
    async def main(worker: Worker) -> None:
        assert sorted(
            await rows_of(worker.run(scan_then(Take.PARTITION, partitions=12), grouped(60, gives_up=True)))
        ) == list(range(1, 6_001))

    assert not happened(run(main), events.StateRelieved)


def test_a_state_that_cannot_be_handed_over_is_out_of_room() -> None:
    async def main(worker: Worker) -> None:
        with pytest.raises(OutOfRoom):
            await rows_of(worker.run(scan_then(Take.PARTITION, partitions=12), grouped(60, gives_up=False)))

    run(main, memory_bytes_max=16_000)


def test_a_relief_that_runs_out_of_memory_is_made_again() -> None:
    async def main(worker: Worker) -> None:
        stages = grouped(60, gives_up=True)
        tried: list[int] = []
        original = FakeStage.relieve

        def short_once(stage: FakeStage, part: int, slot: int) -> Output:
            tried.append(part)
            if len(tried) % 3 == 1:
                raise MemoryError("simulated")
            return original(stage, part, slot)

        monkeypatch.setattr(FakeStage, "relieve", short_once)
        got = await rows_of(worker.run(scan_then(Take.PARTITION, partitions=12), stages))
        assert sorted(got) == list(range(1, 6_001))

    with pytest.MonkeyPatch.context() as monkeypatch:
        worker = run(main, memory_bytes_max=16_000)
    assert happened(worker, events.TaskRetried)


def test_a_query_that_ends_while_its_state_is_handed_over_leaves_nothing() -> None:
    async def main(worker: Worker) -> None:
        relieving = asyncio.Event()
        loop = asyncio.get_running_loop()
        original = FakeStage.relieve

        def telling(stage: FakeStage, part: int, slot: int) -> Output:
            loop.call_soon_threadsafe(relieving.set)
            return original(stage, part, slot)

        monkeypatch.setattr(FakeStage, "relieve", telling)
        stages = grouped(60, gives_up=True)
        async with worker.run(scan_then(Take.PARTITION, partitions=12), stages):
            await relieving.wait()
        assert (stages.counts.opened, stages.counts.set_closed) == (stages.counts.closed, 1)
        assert sorted(await rows_of(worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(3))})))) == [0, 1, 2]

    with pytest.MonkeyPatch.context() as monkeypatch:
        run(main, memory_bytes_max=16_000)


def test_a_state_that_gives_nothing_does_not_keep_batches_from_being_moved() -> None:
    class Keeper:
        query = QueryId(77)
        pipeline = one_scan().pipelines[0]
        asked = 0

        async def relieve(self, wanted: EventId) -> None:
            self.asked += 1

    async def main(worker: Worker) -> None:
        keeper = Keeper()
        stages = FakeStages({ONE: FakeWork(splits=splits(40, rows=50))})
        async with worker.run(one_scan(), stages) as stream:
            await anext(stream)
            await settled(worker)
            # As if a task were soon to take what waits for the caller: then states come first.
            worker.memory._queued = lambda holder, entry: True
            worker.memory.note_state(keeper, Relievable(8_000, 0))
            room = await worker.room.reserve(
                Tier.DEVICE, 16_000, Use.TASK, purpose=Purpose.CONSUME, query=keeper.query, pipeline=None
            )
            room.release()
            worker.memory.note_state(keeper, NOTHING)
            assert keeper.asked
            assert len(await rows_of(stream)) == 1_950

    worker = run(main, memory_bytes_max=16_000, result_bytes_max=8_000, edge_bytes_max=8_000)
    assert happened(worker, events.Demoted)
    assert not happened(worker, events.Overbooked)


# ------------------------------------------------------------------------------------ pressure and ends


def test_a_caller_that_stops_reading_stops_the_producers() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(400, rows=10)), TWO: FakeWork()})
        async with worker.run(scan_then(Take.STREAM), stages) as stream:
            await anext(stream)
            await settled(worker)
            assert stages.counts.calls < 60
            assert worker.compute.running == 0
            # It waits for its caller, which is no deadlock.
            await asyncio.sleep(0.7)
            assert len(await rows_of(stream)) == 3_990

    run(main, result_bytes_max=800, edge_bytes_max=800)


def test_enough_ends_what_comes_before_at_once() -> None:
    async def main(worker: Worker) -> None:
        stages = FakeStages({ONE: FakeWork(splits=splits(3_000, rows=2)), TWO: FakeWork(limit=3)})
        assert await rows_of(worker.run(scan_then(Take.SERIAL), stages)) == [0, 1, 2]
        assert stages.counts.calls < 2_000

    worker = run(main, edge_bytes_max=100)
    assert {event.how for event in happened(worker, events.PipelineEnded)} == {"enough", "abandoned"}


def test_what_nobody_reads_is_still_run_when_something_comes_after_it() -> None:
    sink = BuildSink("t", (), 0, False)
    both = dag(
        (
            pipeline(1, SCAN, emit(1)),
            pipeline(2, read(1, Take.SERIAL), emit(2)),
            pipeline(3, read(1, Take.PARTITION), sink),
            pipeline(4, VALUES, emit(2), after=(3,)),
        ),
        (edge(1, (1,), (2, 3)), edge(2, (2, 4))),
    )

    async def main(worker: Worker) -> None:
        works = {
            ONE: FakeWork(splits=splits(30)),
            TWO: FakeWork(limit=2),
            THREE: FakeWork(state=True, parts=0),
            PipelineId(4): FakeWork(values=(77,)),
        }
        assert await rows_of(worker.run(both, FakeStages(works))) == [0, 1, 77]

    run(main)


def test_fetching_stays_within_its_depth_ahead_of_the_tasks() -> None:
    async def main(worker: Worker) -> None:
        source = worker._source
        async with worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(200, range_bytes=8))})) as stream:
            await anext(stream)
            await settled(worker)
            assert isinstance(source, MemorySource)
            assert source.reads < 60

    run(main, result_bytes_max=16)


async def settled(worker: Worker) -> None:
    """Waits until nothing happens any more."""
    seen = -1
    while worker.recorder.count != seen or worker.compute.running:
        seen = worker.recorder.count
        await asyncio.sleep(0.05)


def test_plans_without_a_producer_are_a_bug_that_is_told() -> None:
    async def main(worker: Worker) -> None:
        empty = Dag((), (edge(1, ()),), edge(1, ()).id, one_scan().schema)
        with pytest.raises(BiremeError, match="no pipeline produces"):
            await rows_of(worker.run(empty, FakeStages({})))

    run(main)


def test_a_profile_says_what_each_pipeline_did() -> None:
    async def main(worker: Worker) -> None:
        stream = worker.run(scan_then(Take.STREAM), FakeStages({ONE: FakeWork(splits=splits(7)), TWO: FakeWork()}))
        await rows_of(stream)
        profile = stream.profile
        assert (profile.pipelines[ONE].tasks, profile.pipelines[TWO].rows_in, profile.outcome) == (7, 7, "done")
        text = str(profile)
        assert "7 tasks on the loop" in text
        assert text.index("p1: 7 tasks, 7 → 7 rows") < text.index("p2: ")

    run(main)


@pytest.mark.parametrize(("number", "partition", "message"), [(9, 0, "emitted to edge 9"), (1, 7, "partition 7")])
def test_what_a_stage_puts_where_it_must_not_is_a_bug_that_is_told(number: int, partition: int, message: str) -> None:
    class Astray(FakeStages):
        def stage(self, which: Any) -> Any:
            stage = super().stage(which)
            misled = Emission(EdgeId(number), partition, rows_batch([1, 2]))
            stage.run_split = lambda *_: Output([misled])  # type: ignore[method-assign,assignment]
            return stage

    async def main(worker: Worker) -> None:
        with pytest.raises(EngineBug, match=message):
            await rows_of(worker.run(one_scan(), Astray({ONE: FakeWork(splits=splits(3, range_bytes=5))})))

    run(main)


def test_a_slot_that_waits_keeps_no_batch_alive() -> None:
    async def main(worker: Worker) -> None:
        before = pa.total_allocated_bytes()
        stages = FakeStages({ONE: FakeWork(add=1, splits=splits(4, rows=50_000)), TWO: FakeWork(add=1)})
        async for batch in worker.run(scan_then(Take.PARTITION), stages):
            del batch
        assert pa.total_allocated_bytes() - before < 100_000

    run(main)


def test_a_stream_that_is_forgotten_ends_its_query() -> None:
    async def main(worker: Worker) -> None:
        stream = worker.run(one_scan(), FakeStages({ONE: FakeWork(splits=splits(5_000))}))
        await anext(stream)
        del stream
        gc.collect()
        await settled(worker)
        assert worker.statistics().queries == 0

    worker = run(main, result_bytes_max=100)
    assert [event.outcome for event in happened(worker, events.QueryEnded)] == [
        "Cancelled: nobody reads the result any more"
    ]


def test_hints_that_cannot_be_followed_are_recorded() -> None:
    scan = replaced(one_scan().pipelines[0], hint=Hint(device=DeviceKind.GPU, affinity=3))

    async def main(worker: Worker) -> None:
        stream = worker.run(dag((scan,), (edge(1, (1,)),)), FakeStages({ONE: FakeWork(splits=splits(2))}))
        assert await rows_of(stream) == [0, 1]
        assert "no GPU" in str(stream.profile)

    worker = run(main)
    assert [event.cause for event in happened(worker, events.Noted)] == [1, 1]
