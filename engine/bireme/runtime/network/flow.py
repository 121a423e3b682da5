"""One flow between two workers: the batches of one edge, or of some partitions of it, from one producer to one peer.

The two ends as the Network executor keeps them. `Outgoing` reads a feed of a local holder; `Incoming` is a producer of
one. Both end exactly once, with or without an error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

import pyarrow as pa

from bireme.data.ids import EdgeId, QueryId, WorkerId
from bireme.errors import BiremeError
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.ledger import Reservation
from bireme.transport.credit import ReceiveCredit, SendCredit
from bireme.transport.frame import Frame

FlowKey = tuple[WorkerId, QueryId, EdgeId, int]


class Outgoing:
    """The sending end. `partitions` are those that this peer gets; None means all."""

    def __init__(
        self, key: FlowKey, holder: BatchHolder, feed: Feed, *, rank: tuple[int, ...], partitions: Iterable[int] | None
    ) -> None:
        self.key = key
        self.holder = holder
        self.feed = feed
        self.rank = rank
        self.partitions = None if partitions is None else frozenset(partitions)
        self.credit = SendCredit()
        self.next: Entry | None = None
        self.sequence = 0
        self.sent_at = 0
        self.busy = False
        self.done: asyncio.Future[BiremeError | None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"<Outgoing {self.holder.edge.name} to worker {self.key[0]}: {self.sequence} sent, {self.credit!r}>"

    @property
    def peer(self) -> WorkerId:
        return self.key[0]

    def look(self) -> Entry | None:
        """The next batch for this peer; batches of other partitions are passed over."""
        while self.next is None and self.feed.queue:
            entry = self.feed.pop()
            if self.partitions is None or entry.partition in self.partitions:
                self.next = entry
            else:
                self.holder.consume(entry)
        return self.next

    @property
    def exhausted(self) -> bool:
        return self.next is None and not self.feed.queue and self.holder.state.finished

    def end(self, error: BiremeError | None) -> None:
        if not self.done.done():
            if self.next is not None and not self.busy:
                self.holder.consume(self.next)
            self.holder.close_feed(self.feed)
            self.done.set_result(error)


class Incoming:
    """The receiving end: producer `producer` of a local holder. `arrived` is called after each put and at the end."""

    def __init__(
        self, key: FlowKey, holder: BatchHolder, *, producer: int, window: int, arrived: Callable[[], None]
    ) -> None:
        self.key = key
        self.holder = holder
        self.producer = producer
        self.credit = ReceiveCredit(window)
        self.space: Reservation | None = None
        self.granting = False
        self.sequence = 0
        self.arrived = arrived
        self.done: asyncio.Future[BiremeError | None] = asyncio.get_running_loop().create_future()
        self.ending = False
        self.unpacking: deque[tuple[Frame, Reservation, asyncio.Future[pa.RecordBatch]]] = deque()

    def __repr__(self) -> str:
        return f"<Incoming {self.holder.edge.name} from worker {self.key[0]}: {self.sequence} came, {self.credit!r}>"

    @property
    def peer(self) -> WorkerId:
        return self.key[0]

    def add_space(self, space: Reservation) -> None:
        """More reserved bytes to receive into."""
        if self.space is None:
            self.space = space
        else:
            total = self.space.nbytes + space.nbytes
            space.release()
            self.space.resize(total)

    def end(self, error: BiremeError | None) -> None:
        if not self.done.done():
            if self.space is not None:
                self.space.release()
                self.space = None
            if error is None:
                self.holder.finish(self.producer)
            self.done.set_result(error)
            self.arrived()
