"""The next task of a live pipeline over inputs of its source: splits of a table, or batches of an edge."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from bireme.data.record import SHORT_ROWS
from bireme.data.tier import Tier
from bireme.plan.physical import EdgeSource, Take
from bireme.runtime.compute.policy import rows_per_task
from bireme.runtime.compute.task import Task, TaskKind
from bireme.units import KIB, MIB

if TYPE_CHECKING:
    from bireme.runtime.holder.batch_holder import BatchHolder
    from bireme.runtime.holder.feed import Feed
    from bireme.runtime.holder.state import Entry
    from bireme.runtime.pipeline import LivePipeline

# A run of batches ends with the one that brings it to so many rows.
_RUN_ROWS: Final = 98_304
# Short batches of one task have no more bytes than this: it joins them.
_JOINED_BYTES_MAX: Final = 4 * MIB
# What a pipeline keeps, of the memory limit as well, for its last input to end it: more is worth all slots, or has to
# be looked at before.
_END_BYTES_MAX: Final = 512 * KIB
_ENDS_IN_MEMORY: Final = 64


def split_task(live: LivePipeline) -> Task:
    """A task over the next split."""
    index = live.next_input
    task = Task(live, live.stage, live.graph.next_task_id(), TaskKind.SPLIT, index)
    given = live.loaded.pop(index, None)
    task.take_split(live.splits[index] if given is None else given.split, given)
    live.next_input += 1
    live.number(task)
    if live.fetch_next < len(live.splits):
        live.graph.services.want_bytes(live)
    return _may_end(live, task)


def batch_task(live: LivePipeline) -> Task:
    """A task over the next batch of the edge that it reads, or the next few short ones, or the next partition; over
    nothing where it reads none.
    """
    if live.partitions is not None:
        return _may_end(live, live.partitions.next_task())
    task = Task(live, live.stage, live.graph.next_task_id(), TaskKind.BATCHES, live.next_input)
    live.number(task)
    feed, holder = live.feed, live.source
    if feed is None:
        live.next_input += 1
    if feed is not None and holder is not None:
        if feed.take is Take.RUNS:
            entries = [feed.pop() for _ in range(_run_length(live, feed) or len(feed.queue))]
        else:
            entries = _next_batches(feed, rows_per_task(live.costs.row_seconds))
        task.take_batches(holder, entries)
        live.next_input += len(entries)
    return _may_end(live, task)


def _may_end(live: LivePipeline, task: Task) -> Task:
    """The task, which ends its pipeline if that keeps little, where it is the last one and runs alone: a task for that
    would cost more than what it does.
    """
    if live.in_flight == 1 and task.kind in (TaskKind.SPLIT, TaskKind.BATCHES) and live.are_inputs_over():
        task.end_bytes_max = min(_END_BYTES_MAX, live.graph.ledger.limits[Tier.DEVICE] // _ENDS_IN_MEMORY)
    return task


def next_batches(live: LivePipeline, count: int) -> list[tuple[BatchHolder, Entry]]:
    """Up to `count` batches that the next tasks will take, each with the holder that it lies in."""
    if live.rounds is not None:
        return live.rounds.upcoming(count)
    feed, holder = live.feed, live.source
    if feed is None or holder is None or live.graph.closed:
        return []
    if live.partitions is not None:
        return live.partitions.upcoming(count)
    return [(holder, entry) for entry in islice(feed.queue, count)]


def run_is_due(live: LivePipeline) -> bool:
    """Whether the next run of batches is there; a part of one is where no more will come before it is taken."""
    feed, holder = live.feed, live.source
    assert feed is not None
    assert holder is not None
    if not feed.queue:
        return False
    return holder.state.finished or _run_length(live, feed) > 0 or live.graph.is_full(holder)


def _run_length(live: LivePipeline, feed: Feed) -> int:
    """How many batches make the next run; 0 where more are needed and may come."""
    source = live.pipeline.source
    bytes_max = source.run_bytes_max if isinstance(source, EdgeSource) else 0
    rows = nbytes = 0
    for count, entry in enumerate(feed.queue, 1):
        rows, nbytes = rows + entry.batch.rows, nbytes + entry.batch.nbytes
        if rows >= _RUN_ROWS or nbytes >= bytes_max:
            return count
    return 0


def _next_batches(feed: Feed, rows_max: int) -> list[Entry]:
    """The next batch, and where it is short those that follow, while they are."""
    taken = [feed.pop()]
    rows, nbytes = taken[0].batch.rows, taken[0].batch.nbytes
    while feed.queue and taken[-1].batch.rows < SHORT_ROWS:
        batch = feed.queue[0].batch
        rows, nbytes = rows + batch.rows, nbytes + batch.nbytes
        if batch.rows >= SHORT_ROWS or rows > rows_max or nbytes > _JOINED_BYTES_MAX:
            break
        taken.append(feed.pop())
    return taken
