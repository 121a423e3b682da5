"""The typed events of one worker: frozen records in the past tense, each with its cause.

They are named tuples, because one is made for every task and a frozen dataclass costs four times as much.

Rule: whatever a policy saw and decided, and every spill, retry, fallback and skipped hint, is one of these. Where
they go is in `recorder`; what is folded from them, in `profile`. `cause` is the id of the event that led to this
one, or 0.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from bireme.data.ids import BatchId, EdgeId, EventId, PipelineId, QueryId, TaskId, WorkerId
from bireme.data.tier import Tier

NO_CAUSE = EventId(0)


class Event(Protocol):
    """What all events have. `query` is 0 for those of the whole worker."""

    @property
    def query(self) -> QueryId: ...

    @property
    def cause(self) -> EventId: ...


class QueryStarted(NamedTuple):
    query: QueryId
    pipelines: int
    edges: int
    cause: EventId = NO_CAUSE


class QueryEnded(NamedTuple):
    """`outcome` is "done", "closed" (the caller stopped reading) or the name and text of the error."""

    query: QueryId
    outcome: str
    seconds: float
    cause: EventId = NO_CAUSE


class PipelineOpened(NamedTuple):
    query: QueryId
    pipeline: PipelineId
    splits: int
    cause: EventId = NO_CAUSE


class PipelineEnded(NamedTuple):
    """`how` is "done", or "enough" where a limit was reached, or "abandoned" where nobody reads on."""

    query: QueryId
    pipeline: PipelineId
    how: str
    cause: EventId = NO_CAUSE


class TableFreed(NamedTuple):
    """The last pipeline that reads a join table has ended, so the table is gone; `pipeline` had made it."""

    query: QueryId
    pipeline: PipelineId
    table: str
    nbytes: int
    cause: EventId = NO_CAUSE


class RoundBegun(NamedTuple):
    """Rows that waited for a part of a join table are joined now: partition `partition` of `partitions`; `how` says
    whether whole, block by block, or after a cut into finer partitions, or that no row waited.
    """

    query: QueryId
    pipeline: PipelineId
    waiting: str
    partition: int
    partitions: int
    how: str
    build_bytes: int
    stream_bytes: int
    cause: EventId = NO_CAUSE


class TaskEnded(NamedTuple):
    """`wait_seconds` from being ready for a slot to running (promotion included); `bytes_needed` what was reserved;
    `on_loop` where it was too short to be handed to a thread.
    """

    query: QueryId
    pipeline: PipelineId
    task: TaskId
    kind: str
    slot: int
    sequence: int
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    state_bytes: int
    bytes_needed: int
    started: float
    wait_seconds: float
    run_seconds: float
    on_loop: bool = False
    cause: EventId = NO_CAUSE


class SplitScanned(NamedTuple):
    """A scan of the backend's own read a split: `rows` of it, of which conditions, runtime filters and the bound of a
    top-n dropped some.

    `pages_skipped` are those of which no row was wanted, so that they were not decompressed.
    """

    query: QueryId
    pipeline: PipelineId
    split: int
    rows: int
    dropped_by_conditions: int
    dropped_by_filters: int
    dropped_by_bound: int
    pages_skipped: int
    bytes_decompressed: int
    cause: EventId = NO_CAUSE


class TaskRetried(NamedTuple):
    """A task ran out of memory and will run again, alone; `pieces` of its input from now on."""

    query: QueryId
    pipeline: PipelineId
    task: TaskId
    attempt: int
    pieces: int
    reason: str
    cause: EventId = NO_CAUSE


class OutputDropped(NamedTuple):
    """A task ended after its query did, or after nobody wanted its output."""

    query: QueryId
    pipeline: PipelineId
    task: TaskId
    rows: int
    cause: EventId = NO_CAUSE


class Noted(NamedTuple):
    """A stage did something on its own: a filter skipped, a kernel that fell back."""

    query: QueryId
    pipeline: PipelineId
    text: str
    cause: EventId = NO_CAUSE


class RoomWanted(NamedTuple):
    """Someone needed `nbytes` on a tier that had no room; `held` is what the tier held then."""

    query: QueryId
    pipeline: PipelineId | None
    tier: Tier
    nbytes: int
    held: int
    limit: int
    purpose: str
    cause: EventId = NO_CAUSE


class RoomGiven(NamedTuple):
    """The wait of a RoomWanted is over; `how` says by what."""

    query: QueryId
    pipeline: PipelineId | None
    tier: Tier
    nbytes: int
    seconds: float
    purpose: str
    how: str
    cause: EventId = NO_CAUSE


class Overbooked(NamedTuple):
    """A request was let through over the limit, so that work goes on."""

    query: QueryId
    tier: Tier
    nbytes: int
    over: int
    reason: str
    cause: EventId = NO_CAUSE


class LimitMoved(NamedTuple):
    """The process held `uncounted` bytes that neither the ledger nor a pool knew of, so that the ledger may give out no
    more than `limit` of `limit_max` bytes.
    """

    query: QueryId
    limit: int
    limit_max: int
    uncounted: int
    cause: EventId = NO_CAUSE


class ReliefWanted(NamedTuple):
    """Memory was short, and a pipeline is to give up what it can of its state: `nbytes`."""

    query: QueryId
    pipeline: PipelineId
    nbytes: int
    cause: EventId = NO_CAUSE


class StateRelieved(NamedTuple):
    """A pipeline has handed over what it kept, as batches, which can be moved."""

    query: QueryId
    pipeline: PipelineId
    bytes_before: int
    bytes_after: int
    cause: EventId = NO_CAUSE


class PartitionCut(NamedTuple):
    """A partition was larger than its share of memory, so its batches were spread over `parts` finer ones first."""

    query: QueryId
    pipeline: PipelineId
    edge: EdgeId
    nbytes: int
    parts: int
    largest_bytes: int
    cause: EventId = NO_CAUSE


class PartitionInBits(NamedTuple):
    """A partition was larger than its share of memory and no cut made it smaller, so it is taken bit by bit."""

    query: QueryId
    pipeline: PipelineId
    edge: EdgeId
    nbytes: int
    batches: int
    cause: EventId = NO_CAUSE


class PartitionRanked(NamedTuple):
    """A partition was larger than its share of memory, so it was cut by the order of its values, and only `read_bytes`
    of them were looked at for quantiles.
    """

    query: QueryId
    pipeline: PipelineId
    edge: EdgeId
    nbytes: int
    read_bytes: int
    cause: EventId = NO_CAUSE


class Demoted(NamedTuple):
    """`nbytes` in memory take `stored_bytes` on the lower tier; `why` says for whom room was made. On disk, `packing`
    says whether they are compressed, which took `compress_seconds` of a processor, or why not. The batch was joined
    from so many `pieces` on its way.
    """

    query: QueryId
    edge: EdgeId
    batch: BatchId
    source: Tier
    target: Tier
    nbytes: int
    stored_bytes: int
    seconds: float
    why: str
    packing: str = ""
    compress_seconds: float = 0.0
    pieces: int = 1
    cause: EventId = NO_CAUSE


class Promoted(NamedTuple):
    """`ahead` of use, by Pre-Load; else somebody waited for it."""

    query: QueryId
    edge: EdgeId
    batch: BatchId
    source: Tier
    nbytes: int
    stored_bytes: int
    seconds: float
    ahead: bool
    cause: EventId = NO_CAUSE


class MoveFailed(NamedTuple):
    query: QueryId
    edge: EdgeId
    batch: BatchId
    target: Tier
    reason: str
    cause: EventId = NO_CAUSE


class SpillNoted(NamedTuple):
    """The spill store, with a batch of `query`, did something on its own: a fallback, a folder passed over."""

    query: QueryId
    text: str
    cause: EventId = NO_CAUSE


class Preloaded(NamedTuple):
    query: QueryId
    pipeline: PipelineId
    split: int
    ranges: int
    nbytes: int
    seconds: float
    cause: EventId = NO_CAUSE


class ReadByTask(NamedTuple):
    """The bytes of a split were in the operating system's memory, so they were left to the task to read."""

    query: QueryId
    pipeline: PipelineId
    split: int
    nbytes: int
    cause: EventId = NO_CAUSE


class CacheRead(NamedTuple):
    """Of a split whose columns are kept, so many bytes were found decoded; others had to be read."""

    query: QueryId
    pipeline: PipelineId
    split: int
    hit_bytes: int
    hit_count: int
    miss_count: int
    cause: EventId = NO_CAUSE


class CacheEvicted(NamedTuple):
    """Decoded column chunks were given up."""

    query: QueryId
    nbytes: int
    chunks: int
    reason: str
    cause: EventId = NO_CAUSE


class BatchSent(NamedTuple):
    query: QueryId
    edge: EdgeId
    batch: BatchId
    peer: WorkerId
    nbytes: int
    cause: EventId = NO_CAUSE


class BatchReceived(NamedTuple):
    query: QueryId
    edge: EdgeId
    batch: BatchId
    peer: WorkerId
    nbytes: int
    tier: Tier
    cause: EventId = NO_CAUSE


class DeadlockFound(NamedTuple):
    query: QueryId
    story: str
    cause: EventId = NO_CAUSE
