"""Where each batch of one edge is, who reads it, and who may have it next. Pure: knows, never waits.

A batch is an *entry* here. Tasks share it, a mover has it alone; what may follow what is the table `TRANSITIONS`.
Each consumer of the edge has a *feed*, its own queue of the same entries. An entry is freed when every feed is
done with it and nobody reads or moves it.

Rules: choosing and marking are one step (`start_move` ends candidacy before anything awaits). A put on a closed
edge is an error that is seen. On an ordered edge entries reach the feeds in the order of producers, of the
producers' inputs, and of each input's outputs, whatever the order in which they were put.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import groupby
from typing import Final

from bireme.data.batch import Batch
from bireme.data.ids import BatchId
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.plan.physical import Take
from bireme.runtime.holder.feed import Feed, Run


class Access(Enum):
    """Who has an entry. Its tier is another matter."""

    IDLE = "idle"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    GONE = "gone"


class Step(Enum):
    """What can happen to an entry."""

    LEASED = "leased"
    RETURNED = "returned"
    LAST_RETURNED = "returned by its last reader"
    MOVE_STARTED = "chosen for a move"
    MOVE_ENDED = "moved"
    JOINED = "made part of another"
    FREED = "freed"


TRANSITIONS: Final = {
    (Access.IDLE, Step.LEASED): Access.SHARED,
    (Access.IDLE, Step.MOVE_STARTED): Access.EXCLUSIVE,
    (Access.IDLE, Step.FREED): Access.GONE,
    (Access.IDLE, Step.JOINED): Access.GONE,
    (Access.SHARED, Step.LEASED): Access.SHARED,
    (Access.SHARED, Step.RETURNED): Access.SHARED,
    (Access.SHARED, Step.LAST_RETURNED): Access.IDLE,
    (Access.EXCLUSIVE, Step.MOVE_ENDED): Access.IDLE,
}


class Entry:
    """One batch on an edge. `place` is its position among all that reached the feeds, or -1 before; `kind` is a number
    for the names of its columns, or -1 while nobody has asked.
    """

    __slots__ = ("access", "batch", "kind", "partition", "place", "readers", "unread")

    def __init__(self, batch: Batch, partition: int, feeds: int) -> None:
        self.batch = batch
        self.partition = partition
        self.place = -1
        self.kind = -1
        self.access = Access.IDLE
        self.readers = 0
        self.unread = feeds

    def __repr__(self) -> str:
        return f"<Entry {self.batch!r}, {self.access.value}, {self.readers} readers, {self.unread} feeds to go>"

    def follow(self, step: Step) -> None:
        after = TRANSITIONS.get((self.access, step))
        if after is None:
            raise EngineBug(f"{self!r} cannot be {step.value}")
        self.access = after


class _Lane:
    """What one producer of an ordered edge has put ahead of its turn."""

    __slots__ = ("done", "held", "next")

    def __init__(self) -> None:
        self.held: dict[int, list[Entry]] = {}
        self.next = 0
        self.done = False


class HolderState:
    """All entries of one edge."""

    def __init__(self, *, producers: int, feeds: Sequence[Take], partitions: int, ordered: bool) -> None:
        self.ordered = ordered
        self.partitions = partitions
        self.feeds = [Feed(take, partitions) for take in feeds]
        self.entries: dict[BatchId, Entry] = {}
        self.closed = False
        self.rows_put = 0
        self.bytes_put = 0
        self.count_put = 0
        self.nbytes = 0
        self.tier_bytes = [0] * len(Tier)
        self.tier_count = [0] * len(Tier)
        self.moving = 0
        self._kinds: dict[tuple[str, ...], int] = {}
        self._lanes = [_Lane() for _ in range(producers)]
        self._turn = 0
        self._open_feeds = len(self.feeds)
        self._places = 0

    # ------------------------------------------------------------------------------------- producing

    def put(self, producer: int, sequence: int, outputs: Iterable[tuple[int, Batch]]) -> list[Entry]:
        """Takes all outputs (partition, batch) of one input of a producer, also when there are none."""
        if self.closed:
            raise EngineBug(f"producer {producer} put the outputs of input {sequence} on a closed edge")
        lane = self._lanes[producer]
        if lane.done or sequence < lane.next or sequence in lane.held:
            raise EngineBug(f"producer {producer} put the outputs of input {sequence} twice, or after its end")
        outputs = tuple(outputs)
        for partition, batch in outputs:
            if not 0 <= partition < self.partitions:
                raise EngineBug(f"{batch!r} is for partition {partition} of an edge with {self.partitions}")
        entries = [self._admit(partition, batch) for partition, batch in outputs]
        if not self.ordered:
            self._release(entries)
        elif sequence != lane.next or self._lanes[self._turn] is not lane:
            lane.held[sequence] = entries
        else:
            # The usual case: it is its turn.
            self._release(entries)
            lane.next += 1
            if lane.held:
                self._advance()
        return entries

    def spread(self, partition: int, batches: Iterable[Batch]) -> list[Entry]:
        """Takes batches into which ones of a partition were cut. They reach the only feed by `Feed.add_part`."""
        if self.closed:
            raise EngineBug(f"a cut of partition {partition} put its batches on a closed edge")
        entries = [self._hold(partition, batch) for batch in batches]
        for entry in entries:
            entry.place = self._places
            self._places += 1
        return entries

    def finish(self, producer: int) -> None:
        """Producer `producer` will put nothing more."""
        if not self.closed:
            self._lanes[producer].done = True
            self._advance()

    def awaited(self) -> tuple[int, int] | None:
        """Producer and input whose outputs an ordered edge waits for; None when all have ended."""
        if self._turn >= len(self._lanes):
            return None
        return self._turn, self._lanes[self._turn].next

    @property
    def finished(self) -> bool:
        """Whether all producers have ended."""
        return self._turn >= len(self._lanes)

    def _admit(self, partition: int, batch: Batch) -> Entry:
        self.rows_put += batch.rows
        self.bytes_put += batch.nbytes
        self.count_put += 1
        return self._hold(partition, batch)

    def _hold(self, partition: int, batch: Batch) -> Entry:
        entry = Entry(batch, partition, self._open_feeds)
        self.entries[batch.id] = entry
        self._count(batch, 1)
        return entry

    def _count(self, batch: Batch, sign: int) -> None:
        self.nbytes += sign * batch.nbytes
        self.tier_bytes[batch.tier] += sign * batch.nbytes
        self.tier_count[batch.tier] += sign

    def _release(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.place = self._places
            self._places += 1
            for feed in self.feeds:
                if not feed.closed:
                    feed.push(entry)

    def _advance(self) -> None:
        while self._turn < len(self._lanes):
            lane = self._lanes[self._turn]
            if self.ordered:
                while lane.next in lane.held:
                    self._release(lane.held.pop(lane.next))
                    lane.next += 1
            if not lane.done:
                return
            if lane.held:
                raise EngineBug(f"a producer ended without the outputs of its input {lane.next}")
            self._turn += 1

    # ------------------------------------------------------------------------------------- consuming

    def consume(self, entry: Entry) -> Entry | None:
        """One feed is done with `entry`. Returns it when it is now freed."""
        if self.closed:
            return None
        entry.unread -= 1
        return self._free_if_done(entry)

    def close_feed(self, feed: Feed) -> list[Entry]:
        """The consumer wants nothing more. Returns entries that are now freed; the last feed closes the edge."""
        if feed.closed:
            return []
        feed.closed = True
        freed = [entry for entry in map(self.consume, feed.drain()) if entry is not None]
        for lane in self._lanes:
            for entry in (entry for entries in lane.held.values() for entry in entries):
                entry.unread -= 1
        self._open_feeds -= 1
        return freed + self.close() if self._open_feeds == 0 else freed

    def close(self) -> list[Entry]:
        """Nobody reads on. Returns entries that are now freed; those read or moved are freed when that ends."""
        if self.closed:
            return []
        self.closed = True
        for feed in self.feeds:
            feed.closed = True
            feed.drain()
        self._lanes, self._turn, self._open_feeds = [], 0, 0
        freed = []
        for entry in tuple(self.entries.values()):
            entry.unread = 0
            if self._free_if_done(entry) is not None:
                freed.append(entry)
        return freed

    # --------------------------------------------------------------------------------- leases and moves

    def lease(self, entry: Entry) -> None:
        """A reader shares `entry`; not while it is moved."""
        entry.follow(Step.LEASED)
        entry.readers += 1

    def give_back(self, entry: Entry) -> Entry | None:
        """A reader is done. Returns the entry when it is now freed."""
        entry.readers -= 1
        entry.follow(Step.RETURNED if entry.readers else Step.LAST_RETURNED)
        return self._free_if_done(entry)

    def movable(self, tier: Tier) -> Iterator[Entry]:
        """Entries on `tier` that nobody has, in the order in which they were put."""
        for entry in self.entries.values():
            if _is_movable(entry, tier):
                yield entry

    def runs(self, tier: Tier) -> Iterator[Run]:
        """The same entries: together where they might as well be one. Once all producers have ended, none are: readers
        may count on batches as they are, such as those that a window has surveyed.
        """
        if not self.tier_count[tier]:
            return
        found: set[BatchId] = set()
        for run in self._runs_of_parts(tier):
            found.update([entry.batch.id for entry in run.entries])
            yield run
        for entry in self.movable(tier):
            if entry.batch.id not in found:
                yield Run(-1, [entry])

    def _runs_of_parts(self, tier: Tier) -> Iterator[Run]:
        feeds = [feed for feed in self.feeds if not feed.closed]
        if self.finished or not feeds or any(feed.take is not Take.PARTITION for feed in feeds):
            return
        for number, part in enumerate(feeds[0].parts):
            if not part or any(number >= len(feed.parts) or feed.parts[number] != part for feed in feeds[1:]):
                continue
            for kind, entries in groupby(part, lambda entry: self._kind(entry) if _is_movable(entry, tier) else -1):
                if kind >= 0:
                    yield Run(number, list(entries))

    def _kind(self, entry: Entry) -> int:
        """Groups and rows as they came share an edge, and only their names tell them apart."""
        if entry.kind < 0:
            entry.kind = self._kinds.setdefault(entry.batch.names, len(self._kinds))
        return entry.kind

    def join(self, run: Run, batch: Batch) -> Entry:
        """Has one entry in place of those of a run of a part: `batch` has their rows."""
        first = run.entries[0]
        joined = Entry(batch, first.partition, first.unread)
        joined.place = first.place
        for entry in run.entries:
            entry.follow(Step.JOINED)
            del self.entries[entry.batch.id]
            self._count(entry.batch, -1)
        self.entries[batch.id] = joined
        self._count(batch, 1)
        for feed in self.feeds:
            if not feed.closed:
                feed.replace(run, joined)
        return joined

    def start_move(self, entry: Entry) -> None:
        """A mover has `entry` alone from now on; it is no candidate any more."""
        entry.follow(Step.MOVE_STARTED)
        self.moving += 1

    def end_move(self, entry: Entry, batch: Batch) -> Entry | None:
        """The move gave `batch`, or failed and gives the old one back. Returns the entry when it is now freed."""
        if (batch.id, batch.rows) != (entry.batch.id, entry.batch.rows):
            raise EngineBug(f"{entry!r} came back from a move as {batch!r}")
        entry.follow(Step.MOVE_ENDED)
        self.moving -= 1
        self._count(entry.batch, -1)
        entry.batch = batch
        self._count(batch, 1)
        return self._free_if_done(entry)

    def _free_if_done(self, entry: Entry) -> Entry | None:
        if entry.unread > 0 or entry.access is not Access.IDLE:
            return None
        entry.follow(Step.FREED)
        del self.entries[entry.batch.id]
        self._count(entry.batch, -1)
        return entry

    def check(self) -> None:
        """Raises EngineBug where what is counted and what is there differ; for tests and the simulation."""
        nbytes, counts = [0] * len(Tier), [0] * len(Tier)
        for entry in self.entries.values():
            nbytes[entry.batch.tier] += entry.batch.nbytes
            counts[entry.batch.tier] += 1
            if (entry.readers > 0) is not (entry.access is Access.SHARED) or entry.unread < 0:
                raise EngineBug(f"{entry!r} contradicts itself")
        if (nbytes, counts, sum(nbytes)) != (self.tier_bytes, self.tier_count, self.nbytes):
            raise EngineBug(f"the tiers hold {nbytes} bytes but count {self.tier_bytes}")


def _is_movable(entry: Entry, tier: Tier) -> bool:
    return entry.access is Access.IDLE and entry.batch.tier is tier
