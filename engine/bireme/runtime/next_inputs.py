"""The next task of a live pipeline over inputs of its source: splits of a table, or batches of an edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bireme.data.tier import Tier
from bireme.plan.physical import Take
from bireme.runtime.compute.policy import inputs_per_task
from bireme.runtime.compute.task import SplitWork, Task, TaskKind

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline

# Splits of one task may decode to this part of the memory of its slot.
_TASKS_IN_MEMORY: Final = 16


def split_task(live: LivePipeline) -> Task:
    """A task over the next split, or the next few short ones."""
    graph, left = live.graph, len(live.splits) - live.next_input
    task = Task(live, live.stage, graph.next_task_id(), TaskKind.SPLIT, live.next_input)
    wanted = inputs_per_task(live.costs.last, left=left, slots=graph.slots, bytes_max=graph.edge_limit(live))
    basis_max = graph.ledger.limits[Tier.DEVICE] // (_TASKS_IN_MEMORY * graph.slots)
    while not task.splits or (len(task.splits) < wanted and live.has_input() and task.basis < basis_max):
        index = live.next_input
        given = live.loaded.pop(index, None)
        task.add_split(SplitWork(index, live.splits[index] if given is None else given.split, given))
        live.next_input += 1
    live.number(task)
    if live.fetch_next < len(live.splits):
        graph.services.want_bytes(live)
    return task


def batch_task(live: LivePipeline) -> Task:
    """A task over the next batch or partition of the edge that it reads; over nothing where it reads none."""
    task = Task(live, live.stage, live.graph.next_task_id(), TaskKind.BATCHES, live.next_input)
    live.next_input += 1
    live.number(task)
    feed, holder = live.feed, live.source
    if feed is not None and holder is not None:
        task.holder = holder
        task.entries = feed.pop_part(task.sequence) if feed.take is Take.PARTITION else (feed.pop(),)
        task.rows_in = sum([entry.batch.rows for entry in task.entries])
        task.bytes_in = task.basis = sum([entry.batch.nbytes for entry in task.entries])
    return task
