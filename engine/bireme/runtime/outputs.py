"""Puts what a task made on the edges of its pipeline, paid for by the task's grant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bireme.data.batch import Batch
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.observe.event import OutputDropped
from bireme.operators.base import Aside
from bireme.plan.physical import ScanSource
from bireme.runtime.compute.task import Made, Result, Task, TaskKind
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.storage.split_run import kept_parts

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline


def put_outputs(pipeline: LivePipeline, task: Task, result: Result, grant: Reservation) -> None:
    """Puts all batches of a task that has ended, in its place among those of its pipeline."""
    place = task.place if task.kind is not TaskKind.FINISH else pipeline.next_place + task.sequence
    if result.made:
        _check_edges(pipeline, task, result)
    for holder, producer in pipeline.sinks:
        made = [one for one in result.made if one.edge == holder.edge.id]
        if holder.state.closed:
            # All readers have enough; it only goes on because something comes after it.
            note_dropped(pipeline, task, sum([one.content.num_rows for one in made]))
            continue
        holder.put(producer, place, [batch_of(pipeline, one, grant) for one in made])
    for one in result.made:
        if isinstance(one.edge, Aside):
            _put_aside(pipeline, one, one.edge, place, grant)


def _put_aside(pipeline: LivePipeline, made: Made, aside: Aside, place: int, grant: Reservation) -> None:
    holder = pipeline.graph.asides.holder(aside, pipeline.pipeline.id)
    if not holder.state.closed:
        holder.put(0, place, [batch_of(pipeline, made, grant)])


def put_nothing(pipeline: LivePipeline, task: Task) -> None:
    """Fills the place, if any, of a task that will not run; an ordered edge would wait for its outputs for ever."""
    if task.place < 0:
        return
    for holder, producer in pipeline.sinks:
        if not holder.state.closed:
            holder.put(producer, task.place, ())


def keep_columns(pipeline: LivePipeline, task: Task, grant: Reservation) -> None:
    """Has the column cache keep what the task decoded of a table that is kept."""
    source = pipeline.pipeline.source
    if isinstance(source, ScanSource):
        for part in kept_parts(task.split):
            pipeline.graph.cache.keep(part, grant, table=source.table, query=pipeline.query)


def note_dropped(pipeline: LivePipeline, task: Task, rows: int) -> None:
    """Records that nobody wants the output of a task any more."""
    pipeline.graph.recorder.record(OutputDropped(pipeline.query, pipeline.pipeline.id, task.id, rows))


def _check_edges(pipeline: LivePipeline, task: Task, result: Result) -> None:
    known = [holder.edge.id for holder, _ in pipeline.sinks]
    strange = [made.edge for made in result.made if made.edge not in known and not isinstance(made.edge, Aside)]
    if strange:
        name = pipeline.pipeline.name
        raise EngineBug(f"{task!r} emitted to edge {strange[0]}, which {name} does not produce for")


def batch_of(pipeline: LivePipeline, made: Made, grant: Reservation) -> tuple[int, Batch, Reservation]:
    """Partition, batch and room of what a task made."""
    batch = Batch(pipeline.graph.next_batch_id(), made.content.num_rows, made.nbytes, Tier.DEVICE, made.content)
    return made.partition, batch, grant.carve(made.nbytes, Use.BATCH)
