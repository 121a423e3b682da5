"""What one query did, folded from its events: per pipeline rows, bytes, seconds, waits and spills.

This is the data behind `explain analyze` and the progress line. A view only: it can be rebuilt from any record of
events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.tier import Tier
from bireme.observe import event as events
from bireme.observe.moves import Moves
from bireme.records import dataclass
from bireme.units import format_bytes, format_rows, format_seconds


@dataclass(slots=True)
class PipelineProfile:
    """Sums over the tasks of one pipeline. `ended` is empty while it has not ended."""

    splits: int = 0
    tasks: int = 0
    tasks_on_loop: int = 0
    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    state_bytes_peak: int = 0
    run_seconds: float = 0.0
    wait_seconds: float = 0.0
    room_waits: int = 0
    room_seconds: float = 0.0
    retries: int = 0
    reliefs: int = 0
    relieved_bytes: int = 0
    cuts: int = 0
    cut_bytes: int = 0
    cut_parts: int = 0
    in_bits: int = 0
    in_bits_bytes: int = 0
    ranked_bytes: int = 0
    ranked_read_bytes: int = 0
    preload_bytes: int = 0
    scanned_rows: int = 0
    dropped_by_conditions: int = 0
    dropped_by_filters: int = 0
    dropped_by_bound: int = 0
    pages_skipped: int = 0
    bytes_decompressed: int = 0
    preload_seconds: float = 0.0
    read_by_task_bytes: int = 0
    cache_hit_bytes: int = 0
    cache_hit_count: int = 0
    cache_miss_count: int = 0
    freed_bytes: int = 0
    rounds: Counter[str] = field(default_factory=Counter)
    round_build_bytes: int = 0
    round_stream_bytes: int = 0
    ended: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class EdgeProfile:
    """What moved through the tiers on one edge."""

    moves: defaultdict[tuple[Tier, Tier], Moves] = field(default_factory=lambda: defaultdict(Moves))
    reasons: Counter[str] = field(default_factory=Counter)
    uncompressed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)


class Profile:
    """Hears the events of one query. `names` are those of its pipelines, in the order of the plan."""

    def __init__(self, names: Mapping[PipelineId, str] | None = None) -> None:
        self.names: dict[PipelineId, str] = dict(names or {})
        self.edge_names: dict[EdgeId, str] = {}
        self.pipelines: dict[PipelineId, PipelineProfile] = {}
        self.edges: dict[EdgeId, EdgeProfile] = {}
        self.notes: list[str] = []
        self.heard = 0
        self.outcome = ""
        self.seconds = 0.0
        self.overbooked_bytes = 0
        self.overbooked_count = 0
        self.limit_lowered_bytes = 0
        self.dropped_count = 0

    def __repr__(self) -> str:
        tasks = sum(pipeline.tasks for pipeline in self.pipelines.values())
        return f"<Profile: {tasks} tasks, {format_bytes(self.spilled_bytes)} spilled, {self.outcome or 'running'}>"

    @property
    def spilled_bytes(self) -> int:
        """Bytes, as they were in memory, of all batches that went to disk."""
        return sum(
            [
                moves.nbytes
                for edge in self.edges.values()
                for (_, target), moves in edge.moves.items()
                if target is Tier.DISK
            ]
        )

    def hear(self, event: events.Event) -> None:
        self.heard += 1
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def pipeline(self, pipeline: PipelineId) -> PipelineProfile:
        found = self.pipelines.get(pipeline)
        if found is None:
            found = self.pipelines[pipeline] = PipelineProfile()
        return found

    def edge(self, edge: EdgeId) -> EdgeProfile:
        found = self.edges.get(edge)
        if found is None:
            found = self.edges[edge] = EdgeProfile()
        return found

    def __str__(self) -> str:
        """For people: a line per pipeline, in the order of the plan, then the query as a whole."""
        known = [*self.names, *(pipeline for pipeline in self.pipelines if pipeline not in self.names)]
        lines = [
            _line(self.names.get(identity, f"pipeline {identity}"), self.pipelines.get(identity, PipelineProfile()))
            for identity in known
        ]
        moved = [
            _edge_line(self.edge_names.get(identity, f"{identity}"), edge)
            for identity, edge in sorted(self.edges.items())
        ]
        return "\n".join([*lines, *moved, *self.notes, self._summary()])

    def _summary(self) -> str:
        parts = [f"{self.outcome or 'running'} in {format_seconds(self.seconds)}"]
        if self.spilled_bytes:
            parts.append(f"spilled {format_bytes(self.spilled_bytes)}")
        if self.overbooked_count:
            parts.append(f"let {self.overbooked_count} requests over the limit, by up to {self.overbooked_bytes} B")
        if self.limit_lowered_bytes:
            lowered = format_bytes(self.limit_lowered_bytes)
            parts.append(f"the process held memory that nobody counted, so queries had up to {lowered} less")
        return ", ".join(parts)

    def _task_ended(self, event: events.TaskEnded) -> None:
        into = self.pipeline(event.pipeline)
        into.tasks += 1
        into.tasks_on_loop += event.on_loop
        into.run_seconds += event.run_seconds
        into.wait_seconds += event.wait_seconds
        if event.kind == "cut":
            return  # what it gives comes in once more
        into.rows_in += event.rows_in
        into.bytes_in += event.bytes_in
        into.rows_out += event.rows_out
        into.bytes_out += event.bytes_out
        into.state_bytes_peak = max(into.state_bytes_peak, event.state_bytes)

    def _opened(self, event: events.PipelineOpened) -> None:
        self.pipeline(event.pipeline).splits = event.splits

    def _ended(self, event: events.PipelineEnded) -> None:
        self.pipeline(event.pipeline).ended = event.how

    def _table_freed(self, event: events.TableFreed) -> None:
        self.pipeline(event.pipeline).freed_bytes += event.nbytes

    def _round_begun(self, event: events.RoundBegun) -> None:
        into = self.pipeline(event.pipeline)
        into.rounds[event.how] += 1
        into.round_build_bytes += event.build_bytes
        into.round_stream_bytes += event.stream_bytes

    def _retried(self, event: events.TaskRetried) -> None:
        self.pipeline(event.pipeline).retries += 1

    def _relieved(self, event: events.StateRelieved) -> None:
        into = self.pipeline(event.pipeline)
        into.reliefs += 1
        into.relieved_bytes += max(0, event.bytes_before - event.bytes_after)

    def _cut(self, event: events.PartitionCut) -> None:
        into = self.pipeline(event.pipeline)
        into.cuts += 1
        into.cut_bytes += event.nbytes
        into.cut_parts += event.parts

    def _in_bits(self, event: events.PartitionInBits) -> None:
        into = self.pipeline(event.pipeline)
        into.in_bits += 1
        into.in_bits_bytes += event.nbytes

    def _ranked(self, event: events.PartitionRanked) -> None:
        into = self.pipeline(event.pipeline)
        into.ranked_bytes += event.nbytes
        into.ranked_read_bytes += event.read_bytes

    def _noted(self, event: events.Noted) -> None:
        notes = self.pipeline(event.pipeline).notes
        if event.text not in notes:
            notes.append(event.text)

    def _preloaded(self, event: events.Preloaded) -> None:
        into = self.pipeline(event.pipeline)
        into.preload_bytes += event.nbytes
        into.preload_seconds += event.seconds

    def _read_by_task(self, event: events.ReadByTask) -> None:
        self.pipeline(event.pipeline).read_by_task_bytes += event.nbytes

    def _scanned(self, event: events.SplitScanned) -> None:
        into = self.pipeline(event.pipeline)
        into.scanned_rows += event.rows
        into.dropped_by_conditions += event.dropped_by_conditions
        into.dropped_by_filters += event.dropped_by_filters
        into.dropped_by_bound += event.dropped_by_bound
        into.pages_skipped += event.pages_skipped
        into.bytes_decompressed += event.bytes_decompressed

    def _cache_read(self, event: events.CacheRead) -> None:
        into = self.pipeline(event.pipeline)
        into.cache_hit_bytes += event.hit_bytes
        into.cache_hit_count += event.hit_count
        into.cache_miss_count += event.miss_count

    def _demoted(self, event: events.Demoted) -> None:
        into = self.edge(event.edge)
        moves = into.moves[event.source, event.target]
        moves.add(event.nbytes, event.stored_bytes, event.seconds, pieces=event.pieces)
        into.reasons[event.why] += 1
        if event.compress_seconds:
            moves.add_compressed(event.nbytes, event.stored_bytes, event.compress_seconds)
        elif event.packing:
            into.uncompressed[event.packing] += 1

    def _promoted(self, event: events.Promoted) -> None:
        moves = self.edge(event.edge).moves[event.source, Tier.DEVICE]
        moves.add(event.nbytes, event.stored_bytes, event.seconds, ahead=event.ahead)

    def _move_failed(self, event: events.MoveFailed) -> None:
        self.edge(event.edge).faults[event.reason] += 1

    def _spill_noted(self, event: events.SpillNoted) -> None:
        if event.text not in self.notes:
            self.notes.append(event.text)

    def _room_given(self, event: events.RoomGiven) -> None:
        if event.pipeline is not None:
            into = self.pipeline(event.pipeline)
            into.room_waits += 1
            into.room_seconds += event.seconds

    def _overbooked(self, event: events.Overbooked) -> None:
        self.overbooked_bytes = max(self.overbooked_bytes, event.over)
        self.overbooked_count += 1

    def _limit_moved(self, event: events.LimitMoved) -> None:
        self.limit_lowered_bytes = max(self.limit_lowered_bytes, event.limit_max - event.limit)

    def _dropped(self, event: events.OutputDropped) -> None:
        self.dropped_count += 1

    def _query_ended(self, event: events.QueryEnded) -> None:
        self.outcome = event.outcome
        self.seconds = event.seconds


_FOLDS: dict[type, Callable[[Profile, Any], None]] = {
    events.TaskEnded: Profile._task_ended,
    events.PipelineOpened: Profile._opened,
    events.PipelineEnded: Profile._ended,
    events.TableFreed: Profile._table_freed,
    events.RoundBegun: Profile._round_begun,
    events.TaskRetried: Profile._retried,
    events.StateRelieved: Profile._relieved,
    events.PartitionCut: Profile._cut,
    events.PartitionInBits: Profile._in_bits,
    events.PartitionRanked: Profile._ranked,
    events.Noted: Profile._noted,
    events.Preloaded: Profile._preloaded,
    events.ReadByTask: Profile._read_by_task,
    events.SplitScanned: Profile._scanned,
    events.CacheRead: Profile._cache_read,
    events.Demoted: Profile._demoted,
    events.Promoted: Profile._promoted,
    events.MoveFailed: Profile._move_failed,
    events.SpillNoted: Profile._spill_noted,
    events.RoomGiven: Profile._room_given,
    events.Overbooked: Profile._overbooked,
    events.LimitMoved: Profile._limit_moved,
    events.OutputDropped: Profile._dropped,
    events.QueryEnded: Profile._query_ended,
}


def profile_of(record: Iterable[events.Event]) -> Profile:
    """The profile that a record of one query's events gives."""
    profile = Profile()
    for event in record:
        profile.hear(event)
    return profile


def _line(name: str, pipeline: PipelineProfile) -> str:
    parts = [
        f"{name}: {pipeline.tasks} tasks",
        f"{format_rows(pipeline.rows_in)} → {format_rows(pipeline.rows_out)} rows",
        f"{format_bytes(pipeline.bytes_out)} out",
        f"ran {format_seconds(pipeline.run_seconds)}",
        f"waited {format_seconds(pipeline.wait_seconds)}",
    ]
    if pipeline.room_waits:
        parts.append(f"stood in line for memory {pipeline.room_waits} times, {format_seconds(pipeline.room_seconds)}")
    if pipeline.tasks_on_loop:
        parts.append(f"{pipeline.tasks_on_loop} tasks on the loop")
    if pipeline.state_bytes_peak:
        parts.append(f"state {format_bytes(pipeline.state_bytes_peak)}")
    if pipeline.freed_bytes:
        parts.append(f"freed {format_bytes(pipeline.freed_bytes)} after its last reader")
    if pipeline.preload_bytes:
        parts.append(f"read {format_bytes(pipeline.preload_bytes)} in {format_seconds(pipeline.preload_seconds)}")
    if pipeline.read_by_task_bytes:
        parts.append(f"read {format_bytes(pipeline.read_by_task_bytes)} in tasks")
    parts += _scan_parts(pipeline)
    if pipeline.rounds:
        counts = ", ".join(f"{count} {how}" for how, count in pipeline.rounds.items())
        parts.append(
            f"rows that waited for join tables: {format_bytes(pipeline.round_stream_bytes)} against "
            f"{format_bytes(pipeline.round_build_bytes)} in partitions ({counts})"
        )
    if pipeline.cache_hit_count or pipeline.cache_miss_count:
        parts.append(
            f"cache gave {format_bytes(pipeline.cache_hit_bytes)} ({pipeline.cache_hit_count} chunks), "
            f"lacked {pipeline.cache_miss_count} chunks"
        )
    if pipeline.reliefs:
        parts.append(f"gave up state {pipeline.reliefs} times, {format_bytes(pipeline.relieved_bytes)}")
    if pipeline.cuts:
        cut = format_bytes(pipeline.cut_bytes)
        parts.append(f"{pipeline.cuts} partitions ({cut}) were too large and cut into {pipeline.cut_parts}")
    if pipeline.in_bits:
        parts.append(f"{pipeline.in_bits} partitions ({format_bytes(pipeline.in_bits_bytes)}) were taken bit by bit")
    if pipeline.ranked_bytes:
        looked_at = f"{format_bytes(pipeline.ranked_read_bytes)} of {format_bytes(pipeline.ranked_bytes)}"
        parts.append(f"looked for quantiles in {looked_at} that were cut by the order of values")
    if pipeline.retries:
        parts.append(f"{pipeline.retries} retries")
    return ", ".join(parts + pipeline.notes)


def _edge_line(name: str, edge: EdgeProfile) -> str:
    """What went down and up on one edge, and why."""
    parts = [_moves(source, target, moves) for (source, target), moves in sorted(edge.moves.items())]
    if edge.reasons:
        parts.append("moved down: " + ", ".join(f"{count} {why}" for why, count in edge.reasons.items()))
    parts += [f"{count} not compressed: {why}" for why, count in edge.uncompressed.items()]
    parts += [f"{count} moves failed: {reason}" for reason, count in edge.faults.items()]
    return f"edge {name}: {'; '.join(parts)}"


def _moves(source: Tier, target: Tier, moves: Moves) -> str:
    stored = "" if moves.stored_bytes == moves.nbytes else f" ({format_bytes(moves.stored_bytes)} there)"
    text = (
        f"{source.name} to {target.name} {moves.count} batches, {format_bytes(moves.nbytes)}{stored} "
        f"in {format_seconds(moves.seconds)}{f', {moves.joined_count} short ones joined' if moves.joined_count else ''}"
    )
    if moves.compressed_count:
        text += (
            f", {moves.compressed_count} compressed, {format_bytes(moves.compressed_bytes)} to "
            f"{format_bytes(moves.compressed_stored_bytes)} in {format_seconds(moves.compress_seconds)} of processors"
        )
    if target is Tier.DEVICE:
        text += f", {moves.ahead_count} ahead of use, {moves.count - moves.ahead_count} waited for"
    return text


def _scan_parts(pipeline: PipelineProfile) -> list[str]:
    """What the backend's own scan did, where it ran."""
    if not pipeline.scanned_rows:
        return []
    parts = [f"decompressed {format_bytes(pipeline.bytes_decompressed)}"]
    if pipeline.dropped_by_conditions:
        parts.append(f"conditions dropped {format_rows(pipeline.dropped_by_conditions)} rows")
    if pipeline.dropped_by_filters:
        parts.append(f"runtime filters dropped {format_rows(pipeline.dropped_by_filters)} rows")
    if pipeline.dropped_by_bound:
        parts.append(f"the top-n's bound dropped {format_rows(pipeline.dropped_by_bound)} rows")
    if pipeline.pages_skipped:
        parts.append(f"skipped {pipeline.pages_skipped} pages")
    return parts
