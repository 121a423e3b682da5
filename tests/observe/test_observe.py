"""What is recorded, what is folded from it, and what is shown."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple, get_type_hints

import pytest

from bireme.config import config_from
from bireme.data.ids import BatchId, EdgeId, EventId, PipelineId, QueryId, TaskId
from bireme.data.tier import Tier
from bireme.observe import event as events
from bireme.observe.profile import Profile, profile_of
from bireme.observe.progress import Progress
from bireme.observe.recorder import Recorder
from bireme.units import KIB, MIB, parse_bytes

ONE, TWO = PipelineId(1), PipelineId(2)
KINDS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, tuple) and kind is not NamedTuple
]


def task_ended(pipeline: PipelineId = ONE, *, rows: int = 10, query: int = 1) -> events.TaskEnded:
    return events.TaskEnded(
        QueryId(query), pipeline, TaskId(1), "split", 0, 0, rows, 8 * rows, rows // 2, 4 * rows, 100, 50, 1.0, 0.25, 0.5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_names_its_query_and_its_cause(kind: type) -> None:
    assert kind._fields[0] == "query"
    assert kind._fields[-1] == "cause"
    assert kind._field_defaults["cause"] == events.NO_CAUSE
    assert get_type_hints(kind)["query"] is QueryId


def test_the_ring_forgets_the_oldest_and_counts_what_it_forgot() -> None:
    recorder = Recorder(3)
    ids = [recorder.record(task_ended(rows=number)) for number in range(5)]
    assert ids == [1, 2, 3, 4, 5]
    assert [(number, event.rows_in) for number, event in recorder.events()] == [(3, 2), (4, 3), (5, 4)]
    assert (recorder.count, recorder.forgotten) == (5, 2)


@pytest.mark.parametrize("limit", ["1MiB", "128MiB", "512MiB"])
def test_a_full_ring_takes_little_of_what_the_process_may_hold(limit: str) -> None:
    recorder = Recorder(config_from(memory_limit=limit, environment={}).event_count_max)
    tracemalloc.start()
    try:
        for number in range(40_000):
            numbers = range(1_000_000 + number, 1_000_007 + number)
            seconds = [float(number), number / 2, number / 3]
            recorder.record(events.TaskEnded(QueryId(1), ONE, TaskId(number), "split", 0, *numbers, *seconds))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= max(parse_bytes(limit) / 64, 512 * KIB) + MIB / 4


def test_a_listener_hears_its_query_only_and_only_until_it_is_forgotten() -> None:
    recorder, heard = Recorder(1), []
    recorder.listen(QueryId(1), heard.append)
    recorder.record(task_ended(query=1))
    recorder.record(task_ended(query=2))
    recorder.forget(QueryId(1))
    recorder.record(task_ended(query=1))
    assert [event.query for event in heard] == [1]


def story() -> list[events.Event]:
    return [
        events.QueryStarted(QueryId(1), 2, 1),
        events.PipelineOpened(QueryId(1), ONE, 4),
        events.Preloaded(QueryId(1), ONE, 0, 2, 1_000, 0.1),
        events.ReadByTask(QueryId(1), ONE, 1, 3_072),
        task_ended(),
        task_ended(),
        events.TaskRetried(QueryId(1), ONE, TaskId(2), 1, 2, "no memory"),
        events.Noted(QueryId(1), ONE, "strftime runs in pyarrow"),
        events.Noted(QueryId(1), ONE, "strftime runs in pyarrow"),
        events.Demoted(QueryId(1), EdgeId(1), BatchId(1), Tier.DEVICE, Tier.PINNED, 40, 40, 0.1, "for what consumes"),
        events.Demoted(QueryId(1), EdgeId(1), BatchId(1), Tier.PINNED, Tier.DISK, 40, 4_096, 0.1, "for what consumes"),
        events.Promoted(QueryId(1), EdgeId(1), BatchId(1), Tier.DISK, 40, 4_096, 0.2, False),
        events.MoveFailed(QueryId(1), EdgeId(1), BatchId(2), Tier.DISK, "SpillFailed: full"),
        events.SpillNoted(QueryId(1), "no direct IO there"),
        events.SpillNoted(QueryId(1), "no direct IO there"),
        events.RoomGiven(QueryId(1), ONE, Tier.DEVICE, 10, 0.25, "to consume", "room came"),
        events.Overbooked(QueryId(1), Tier.DEVICE, 10, 3, "nothing runs"),
        events.PipelineEnded(QueryId(1), ONE, "done"),
        events.OutputDropped(QueryId(1), TWO, TaskId(9), 5),
        events.QueryEnded(QueryId(1), "done", 2.5),
    ]


def test_a_profile_is_the_sum_of_its_events() -> None:
    profile = profile_of(story())
    pipeline, edge = profile.pipelines[ONE], profile.edges[EdgeId(1)]
    assert (pipeline.tasks, pipeline.rows_in, pipeline.rows_out, pipeline.bytes_out) == (2, 20, 10, 80)
    assert (pipeline.run_seconds, pipeline.wait_seconds, pipeline.retries) == (1.0, 0.5, 1)
    assert (pipeline.preload_bytes, pipeline.state_bytes_peak, pipeline.ended) == (1_000, 100, "done")
    assert pipeline.read_by_task_bytes == 3_072
    assert "read 3 KiB in tasks" in str(profile)
    assert pipeline.notes == ["strftime runs in pyarrow"]
    assert {
        way: (moves.count, moves.nbytes, moves.stored_bytes, moves.seconds) for way, moves in edge.moves.items()
    } == {
        (Tier.DEVICE, Tier.PINNED): (1, 40, 40, 0.1),
        (Tier.PINNED, Tier.DISK): (1, 40, 4_096, 0.1),
        (Tier.DISK, Tier.DEVICE): (1, 40, 4_096, 0.2),
    }
    assert (edge.reasons["for what consumes"], edge.faults["SpillFailed: full"]) == (2, 1)
    assert (pipeline.room_waits, pipeline.room_seconds) == (1, 0.25)
    assert profile.notes == ["no direct IO there"]
    assert (profile.outcome, profile.seconds, profile.spilled_bytes, profile.overbooked_count) == ("done", 2.5, 40, 1)
    assert profile.dropped_count == 1


def test_a_profile_reads_well() -> None:
    profile = Profile({ONE: "scan t", TWO: "never ran"})
    for event in story():
        profile.hear(event)
    profile.edge_names[EdgeId(1)] = "rows of t"
    scan, never, edge, note, query = str(profile).split("\n")
    assert scan.startswith("scan t: 2 tasks, 20 → 10 rows, 80 B out, ran 1.00 s, waited 500.0 ms")
    assert "1 retries" in scan
    assert scan.endswith("strftime runs in pyarrow")
    assert never.startswith("never ran: 0 tasks")
    assert "stood in line for memory 1 times, 250.0 ms" in scan
    assert edge == (
        "edge rows of t: DEVICE to PINNED 1 batches, 40 B in 100.0 ms; PINNED to DISK 1 batches, 40 B (4 KiB there) in "
        "100.0 ms; DISK to DEVICE 1 batches, 40 B (4 KiB there) in 200.0 ms, 0 ahead of use, 1 waited for; "
        "moved down: 2 for what consumes; 1 moves failed: SpillFailed: full"
    )
    assert note == "no direct IO there"
    assert query.startswith("done in 2.50 s, spilled 40 B")


def test_it_says_what_was_compressed_and_why_other_batches_were_not() -> None:
    profile = Profile()
    edge, why = EdgeId(1), "for what consumes"
    down = (Tier.DEVICE, Tier.DISK)
    profile.hear(events.Demoted(QueryId(1), edge, BatchId(1), *down, 4_096, 1_024, 0.1, why, "compressed", 0.02))
    profile.hear(events.Demoted(QueryId(1), edge, BatchId(2), *down, 4_096, 4_096, 0.1, why, "no processor is idle"))
    moves = profile.edge(edge).moves[down]
    assert (moves.compressed_count, moves.compressed_bytes, moves.compressed_stored_bytes) == (1, 4_096, 1_024)
    line = str(profile).split("\n")[0]
    assert "8 KiB (5 KiB there) in 200.0 ms, 1 compressed, 4 KiB to 1 KiB in 20.0 ms of processors" in line
    assert line.endswith("1 not compressed: no processor is idle")


def test_it_says_how_many_short_batches_went_down_as_parts_of_longer_ones() -> None:
    profile = Profile()
    for batch, pieces in ((1, 5), (2, 1), (3, 7)):
        event = events.Demoted(QueryId(1), EdgeId(1), BatchId(batch), Tier.DEVICE, Tier.DISK, 40, 40, 0.1, "for a test")
        profile.hear(event._replace(pieces=pieces))
    assert "3 batches, 120 B in 300.0 ms, 12 short ones joined;" in str(profile).split("\n")[0]


def test_progress_never_runs_backwards_and_ends_at_one() -> None:
    profile = Profile()
    progress = Progress(profile, {ONE: 100.0, TWO: 300.0})
    shown = [progress.fraction()]
    for event in [*story()[:-1], task_ended(TWO), task_ended(TWO), *story()[-1:]]:
        profile.hear(event)
        shown.append(progress.fraction())
    assert shown[0] == 0
    assert shown == sorted(shown)
    assert shown[-1] == 1
    assert all(value < 1 for value in shown[:-1])
    # One of two pipelines has ended, with a quarter of the weight.
    assert 0.25 <= shown[-3] < 0.75


def test_the_first_event_has_id_one_so_that_zero_means_no_cause() -> None:
    assert Recorder(1).record(task_ended()) == EventId(1)
    assert events.NO_CAUSE == 0
