"""The typed events of one worker: frozen records in the past tense, each with its cause.

Rule: whatever a policy saw and decided, and every spill, retry, fallback and skipped hint, is one of these. Where
they go is in `recorder`; what is folded from them, in `profile`. `cause` is the id of the event that led to this
one, or 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from bireme.data.ids import BatchId, EdgeId, EventId, PipelineId, QueryId, TaskId, WorkerId
from bireme.data.tier import Tier

NO_CAUSE = EventId(0)


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. `query` is 0 for those of the whole worker."""

    query: QueryId


@dataclass(frozen=True, slots=True)
class QueryStarted(Event):
    pipelines: int
    edges: int
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class QueryEnded(Event):
    """`outcome` is "done", "closed" (the caller stopped reading) or the name and text of the error."""

    outcome: str
    seconds: float
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class PipelineOpened(Event):
    pipeline: PipelineId
    splits: int
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class PipelineEnded(Event):
    """`how` is "done", or "enough" where a limit was reached, or "abandoned" where nobody reads on."""

    pipeline: PipelineId
    how: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """`wait_seconds` from being ready for a slot to running (promotion included); `bytes_needed` what was reserved."""

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
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class TaskRetried(Event):
    """A task ran out of memory and will run again, alone; `pieces` of its input from now on."""

    pipeline: PipelineId
    task: TaskId
    attempt: int
    pieces: int
    reason: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class OutputDropped(Event):
    """A task ended after its query did, or after nobody wanted its output."""

    pipeline: PipelineId
    task: TaskId
    rows: int
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Noted(Event):
    """A stage did something on its own: a filter skipped, a kernel that fell back."""

    pipeline: PipelineId
    text: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class RoomWanted(Event):
    """Someone needed `nbytes` on a tier that had no room; `held` is what the tier held then."""

    tier: Tier
    nbytes: int
    held: int
    limit: int
    purpose: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Overbooked(Event):
    """A request was let through over the limit, so that work goes on."""

    tier: Tier
    nbytes: int
    over: int
    reason: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Demoted(Event):
    edge: EdgeId
    batch: BatchId
    source: Tier
    target: Tier
    nbytes: int
    seconds: float
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Promoted(Event):
    edge: EdgeId
    batch: BatchId
    source: Tier
    nbytes: int
    seconds: float
    ahead: bool
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class MoveFailed(Event):
    edge: EdgeId
    batch: BatchId
    target: Tier
    reason: str
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Preloaded(Event):
    pipeline: PipelineId
    split: int
    ranges: int
    nbytes: int
    seconds: float
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class BatchSent(Event):
    edge: EdgeId
    batch: BatchId
    peer: WorkerId
    nbytes: int
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class BatchReceived(Event):
    edge: EdgeId
    batch: BatchId
    peer: WorkerId
    nbytes: int
    tier: Tier
    cause: EventId = NO_CAUSE


@dataclass(frozen=True, slots=True)
class DeadlockFound(Event):
    story: str
    cause: EventId = NO_CAUSE
