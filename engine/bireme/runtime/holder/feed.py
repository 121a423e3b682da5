"""One consumer's queue of the batches of an edge. Pure: `state` says when they come and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bireme.plan.physical import Take

if TYPE_CHECKING:
    from bireme.runtime.holder.state import Entry


class Run(NamedTuple):
    """Entries that follow each other in part number `part` of all feeds; or one alone, and -1, wherever it is."""

    part: int
    entries: Sequence[Entry]


class Feed:
    """One consumer's queue: by batch for STREAM and SERIAL, by partition, at the end, for PARTITION."""

    __slots__ = ("closed", "parts", "queue", "take", "waiting")

    def __init__(self, take: Take, partitions: int) -> None:
        self.take = take
        self.queue: deque[Entry] = deque()
        self.parts: list[list[Entry]] = [[] for _ in range(partitions)] if take is Take.PARTITION else []
        self.closed = False
        self.waiting = 0

    def push(self, entry: Entry) -> None:
        self.waiting += 1
        if self.take is Take.PARTITION:
            self.parts[entry.partition].append(entry)
        else:
            self.queue.append(entry)

    def pop(self) -> Entry:
        self.waiting -= 1
        return self.queue.popleft()

    def pop_part(self, partition: int) -> list[Entry]:
        entries, self.parts[partition] = self.parts[partition], []
        self.waiting -= len(entries)
        return entries

    def pop_some(self, partition: int, nbytes: int) -> list[Entry]:
        """The first entries of a partition: at least one, and no more from `nbytes` on."""
        part, taken, held = self.parts[partition], 0, 0
        while taken < len(part) and (taken == 0 or held + part[taken].batch.nbytes <= nbytes):
            held += part[taken].batch.nbytes
            taken += 1
        entries, self.parts[partition] = part[:taken], part[taken:]
        self.waiting -= taken
        return entries

    def replace(self, run: Run, entry: Entry) -> None:
        """Puts one entry in place of those of a run."""
        part = self.parts[run.part]
        first = part.index(run.entries[0])
        part[first : first + len(run.entries)] = [entry]
        self.waiting -= len(run.entries) - 1

    def add_part(self, entries: list[Entry]) -> int:
        """Adds a partition after all others; returns its place."""
        self.parts.append(entries)
        self.waiting += len(entries)
        return len(self.parts) - 1

    def drain(self) -> list[Entry]:
        entries = [*self.queue, *(entry for part in self.parts for entry in part)]
        self.queue.clear()
        self.parts = [[] for _ in self.parts]
        self.waiting = 0
        return entries
