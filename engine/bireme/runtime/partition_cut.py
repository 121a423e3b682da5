"""Parts of a partition, and cutting one into finer ones: tasks over a few of its batches each spread their rows.

What they make lies in the same holder, in the order of the batches that it was cut from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bireme.data.hash_range import HashRange
from bireme.observe.event import PartitionCut
from bireme.runtime.compute.task import Result, Task, TaskKind
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.runtime.outputs import batch_of

if TYPE_CHECKING:
    from bireme.runtime.pipeline import LivePipeline

# A cut that leaves more than this in one part does not help there.
_HELPS_MAX: Final = 0.8
# The batches of a task of a cut, or of a bit, are up to this part of a partition's share of memory.
_BITS_IN_SHARE: Final = 4


class Part:
    """A partition that is to be taken. `place` is its place in the feed, `partition` that on the edge which it is of;
    `is_stuck` where cutting it does not help, `number` that among the parts of one cut.
    """

    __slots__ = ("is_stuck", "number", "partition", "place", "within")

    def __init__(
        self, place: int, partition: int, within: HashRange, *, is_stuck: bool = False, number: int = 0
    ) -> None:
        self.place = place
        self.partition = partition
        self.within = within
        self.is_stuck = is_stuck
        self.number = number


class Cut:
    """A partition that is being cut `into` so many parts: what its tasks made, by their numbers, as (part, entry)."""

    def __init__(self, part: Part, into: int, nbytes: int) -> None:
        self.part = part
        self.into = into
        self._nbytes = nbytes
        self._tasks = 0
        self._made: dict[int, list[tuple[int, Entry]]] = {}

    def next_number(self) -> int:
        self._tasks += 1
        return self._tasks - 1

    def take(self, number: int, made: list[tuple[int, Entry]]) -> None:
        """Task `number` has ended."""
        self._made[number] = made

    def is_done(self, feed: Feed) -> bool:
        return not feed.parts[self.part.place] and len(self._made) == self._tasks

    def end(self, live: LivePipeline, holder: BatchHolder, feed: Feed) -> list[Part]:
        """The parts that have rows, in order, in place of the partition."""
        entries: list[list[Entry]] = [[] for _ in range(self.into)]
        for number in range(self._tasks):
            for part, entry in self._made[number]:
                entries[part].append(entry)
        sizes = [sum([entry.batch.nbytes for entry in some]) for some in entries]
        event = PartitionCut(live.query, live.pipeline.id, holder.edge.id, self._nbytes, self.into, max(sizes))
        live.graph.recorder.record(event)
        parts: list[Part] = []
        for number, some in enumerate(entries):
            if some:
                within = self.part.within.part(number, self.into)
                is_stuck = sizes[number] > _HELPS_MAX * sum(sizes)
                place = feed.add_part(some)
                parts.append(Part(place, self.part.partition, within, is_stuck=is_stuck, number=number))
        return parts


def is_alike(part: Part) -> bool:
    """Whether all rows of a part of an order have equal keys."""
    return part.number % 2 == 1


def some_of(feed: Feed, part: Part, share: int) -> list[Entry]:
    """The next few batches of a part, for one task."""
    return feed.pop_some(part.place, share // _BITS_IN_SHARE)


def task_over(live: LivePipeline, holder: BatchHolder, kind: TaskKind, sequence: int, entries: list[Entry]) -> Task:
    """A task whose output has no place among those of its pipeline."""
    task = Task(live, live.stage, live.graph.next_task_id(), kind, sequence)
    task.place = -1
    task.take_batches(holder, entries)
    return task


def put_back(
    live: LivePipeline, holder: BatchHolder, part: Part, result: Result, grant: Reservation
) -> list[tuple[int, Entry]]:
    """Puts what a task made of batches of `part` on the edge that these came from: as (part, entry)."""
    made = [batch_of(live, one, grant) for one in result.made]
    entries = holder.spread(part.partition, [(batch, room) for _, batch, room in made])
    return [(number, entry) for (number, _, _), entry in zip(made, entries, strict=True)]
