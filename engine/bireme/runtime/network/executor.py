"""The Network executor: moves batches of an edge between this worker and its peers.

A receiver reserves space first and grants it as credit; only then does the sender load and send. So two full workers
can never wait for each other's receive buffers with payloads in hand. Batches of one flow arrive in the order in which
they were sent, each unpacked on an IO thread. A lost peer ends its flows with PeerLost and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from bireme.data.batch import Batch
from bireme.data.ids import BatchId, QueryId, WorkerId
from bireme.data.packed import pack_joined, unpack
from bireme.data.tier import Tier
from bireme.errors import BiremeError, EngineBug, PeerLost
from bireme.observe.event import BatchReceived, BatchSent
from bireme.observe.recorder import Recorder
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry
from bireme.runtime.memory.bring_up import lease_up
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.room import Purpose, Room
from bireme.runtime.network.flow import FlowKey, Incoming, Outgoing
from bireme.runtime.network.policy import FlowView, choose_send
from bireme.runtime.threads import Threads
from bireme.transport.base import Transport
from bireme.transport.frame import Frame, FrameKind

# A flow, and whether its sending end is meant.
FlowEnd = tuple[FlowKey, bool]


class NetworkExecutor:
    """`window` is how many bytes of receive space each flow usually has granted."""

    name = "network"

    def __init__(
        self,
        transport: Transport,
        *,
        io: Threads,
        room: Room,
        mover: Mover,
        recorder: Recorder,
        window: int,
        batch_ids: Iterator[int],
    ) -> None:
        self._transport = transport
        self._io = io
        self._room = room
        self._mover = mover
        self._recorder = recorder
        self._window = window
        self._batch_ids = batch_ids
        self._outgoing: dict[FlowKey, Outgoing] = {}
        self._incoming: dict[FlowKey, Incoming] = {}
        self._early: dict[FlowEnd, list[Frame]] = {}
        self._ended: dict[FlowEnd, None] = {}
        self._farewells: deque[tuple[FlowKey, FrameKind, str]] = deque()
        self._lost: dict[WorkerId, PeerLost] = {}
        self._sends = 0
        self.sending = 0
        self._wake = asyncio.Event()

    def __repr__(self) -> str:
        return f"<NetworkExecutor: {len(self._outgoing)} flows out, {len(self._incoming)} in>"

    # ---------------------------------------------------------------------------------------- flows

    def export(
        self,
        holder: BatchHolder,
        feed: Feed,
        *,
        peer: WorkerId,
        producer: int,
        rank: tuple[int, ...],
        partitions: Iterable[int] | None = None,
    ) -> Outgoing:
        """Sends what comes on `feed` to `peer`, where it is producer `producer` of the same edge."""
        key = (peer, holder.query, holder.edge.id, producer)
        flow = self._outgoing[key] = Outgoing(key, holder, feed, rank=rank, partitions=partitions)
        holder.heard = self.notice
        self._replay((key, True))
        self.notice()
        return flow

    def admit(self, holder: BatchHolder, *, peer: WorkerId, producer: int, arrived: Callable[[], None]) -> Incoming:
        """Takes what `peer` sends as producer `producer` of `holder`'s edge."""
        key = (peer, holder.query, holder.edge.id, producer)
        flow = Incoming(key, holder, producer=producer, window=self._window, arrived=arrived)
        self._incoming[key] = flow
        self._replay((key, False))
        self.notice()
        return flow

    def stop(self, flow: Outgoing | Incoming, error: BiremeError) -> None:
        """Ends a flow of ours early; the peer hears why."""
        kind = FrameKind.FAIL if isinstance(flow, Outgoing) else FrameKind.STOP
        self._end(flow, error)
        self._farewells.append((flow.key, kind, str(error)))
        self.notice()

    def notice(self) -> None:
        """Something changed: a holder that is exported has more, a flow got credit."""
        self._wake.set()

    # --------------------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Serves until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._receive(), name="network/receive")
            group.create_task(self._send(), name="network/send")

    async def _receive(self) -> None:
        while True:
            try:
                peer, frame = await self._transport.receive()
            except PeerLost as error:
                self._lose(WorkerId(error.peer), error)
                continue
            self._hear((peer, frame.query, frame.edge, frame.producer), frame)

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for incoming in tuple(self._incoming.values()):
                self._top_up(incoming)
            while (flow := self._choose()) is not None:
                flow.busy = True
                self.sending += 1
                self._sends += 1
                flow.sent_at = self._sends
                self._group.create_task(self._send_next(flow))
            for outgoing in tuple(self._outgoing.values()):
                await self._ask_or_end(outgoing)
            while self._farewells:
                key, kind, reason = self._farewells.popleft()
                await self._post(key, kind, payload=reason.encode())

    async def _post(self, key: FlowKey, kind: FrameKind, *, amount: int = 0, payload: bytes = b"") -> None:
        peer, query, edge, producer = key
        frame = Frame(kind=kind, query=query, edge=edge, producer=producer, amount=amount, payload=payload)
        try:
            await self._transport.send(peer, frame)
        except PeerLost as error:
            self._lose(peer, error)

    # --------------------------------------------------------------------------------------- sending

    def _choose(self) -> Outgoing | None:
        views = []
        for flow in self._outgoing.values():
            if not flow.busy and (entry := flow.look()) is not None:
                views.append(FlowView(flow.rank, _cost(entry), flow.credit.available, flow.sent_at, flow))
        chosen = choose_send(views)
        return chosen.handle if chosen is not None else None

    async def _send_next(self, flow: Outgoing) -> None:
        entry = flow.next
        assert entry is not None
        flow.credit.spend(_cost(entry))
        try:
            if await lease_up(flow.holder, entry, room=self._room, mover=self._mover):
                try:
                    packed = await self._io.submit(pack_joined, entry.batch.content)
                finally:
                    flow.holder.give_back(entry)
                await self._transport.send(flow.peer, _batch_frame(flow, entry, packed))
                self._sent(flow, entry)
        except PeerLost as error:
            self._lose(flow.peer, error)
        except BiremeError as error:
            self.stop(flow, error)
        finally:
            flow.busy = False
            self.sending -= 1
            self._room.retry()
            self.notice()

    def _sent(self, flow: Outgoing, entry: Entry) -> None:
        batch = entry.batch
        self._recorder.record(BatchSent(flow.holder.query, flow.holder.edge.id, batch.id, flow.peer, batch.nbytes))
        flow.sequence += 1
        flow.next = None
        flow.holder.consume(entry)

    async def _ask_or_end(self, flow: Outgoing) -> None:
        if flow.busy or flow.done.done():
            return
        if flow.next is not None:
            if flow.credit.ask(_cost(flow.next)):
                await self._post(flow.key, FrameKind.WANT, amount=_cost(flow.next))
        elif flow.exhausted:
            self._end(flow, None)
            await self._post(flow.key, FrameKind.END)

    # ------------------------------------------------------------------------------------- receiving

    def _hear(self, key: FlowKey, frame: Frame) -> None:
        end = (key, frame.kind.to_sender)
        flow = self._outgoing.get(key) if frame.kind.to_sender else self._incoming.get(key)
        if flow is None:
            # Either it has ended, or the other side was faster in starting the query.
            if end not in self._ended:
                self._early.setdefault(end, []).append(frame)
        elif frame.kind in (FrameKind.STOP, FrameKind.FAIL):
            reason = bytes(frame.payload).decode(errors="replace")
            self._end(flow, PeerLost(f"worker {key[0]} ended its part of the query: {reason}", peer=key[0]))
        elif isinstance(flow, Outgoing):
            flow.credit.granted(frame.amount)
        else:
            self._take(flow, frame)
        self.notice()

    def _take(self, flow: Incoming, frame: Frame) -> None:
        if frame.kind is FrameKind.WANT:
            flow.credit.want(frame.amount)
        elif frame.kind is FrameKind.BATCH:
            flow.credit.use(max(frame.amount, 1))
            assert flow.space is not None
            space = flow.space.carve(max(frame.amount, 1), Use.BUFFER)
            future = self._io.submit(unpack, pa.py_buffer(frame.payload))
            flow.unpacking.append((frame, space, future))
            future.add_done_callback(lambda _: self._unpacked(flow))
        elif frame.kind is FrameKind.END:
            flow.ending = True
            self._unpacked(flow)

    def _unpacked(self, flow: Incoming) -> None:
        """Puts what is unpacked, in the order in which it came."""
        while flow.unpacking and flow.unpacking[0][2].done():
            frame, space, future = flow.unpacking.popleft()
            error = future.exception()
            if error is None and not flow.done.done() and not flow.holder.state.closed:
                self._put(flow, frame, space, future.result())
                continue
            space.release()
            if error is not None:
                self._end(flow, PeerLost(f"worker {flow.peer} sent what is no batch: {error}", peer=flow.peer))
        if flow.ending and not flow.unpacking:
            self._end(flow, None)
        self.notice()

    def _put(self, flow: Incoming, frame: Frame, space: Reservation, content: pa.RecordBatch) -> None:
        if content.num_rows != frame.rows:
            raise EngineBug(f"{flow!r}: {frame.rows} rows were announced and {content.num_rows} came")
        batch = Batch(BatchId(next(self._batch_ids)), frame.rows, space.nbytes, Tier.DEVICE, content)
        held = space.carve(space.nbytes, Use.BATCH)
        space.release()
        flow.holder.put(flow.producer, flow.sequence, [(frame.partition, batch, held)])
        flow.sequence += 1
        self._recorder.record(
            BatchReceived(flow.holder.query, flow.holder.edge.id, batch.id, flow.peer, batch.nbytes, batch.tier)
        )
        flow.arrived()

    def _top_up(self, flow: Incoming) -> None:
        missing = flow.credit.shortfall()
        if missing > 0 and not flow.granting and not flow.ending and not flow.done.done():
            flow.granting = True
            self._group.create_task(self._grant(flow, missing))

    async def _grant(self, flow: Incoming, nbytes: int) -> None:
        try:
            space = await self._room.reserve(
                Tier.DEVICE, nbytes, Use.BUFFER, purpose=Purpose.CONSUME, query=flow.holder.query
            )
        except BiremeError as error:
            self.stop(flow, error)
            return
        finally:
            flow.granting = False
        if flow.done.done():
            space.release()
            return
        # A request larger than the tier was cut to it; the batch is let through alone all the same.
        space.resize(nbytes)
        flow.add_space(space)
        flow.credit.grant(nbytes)
        await self._post(flow.key, FrameKind.GRANT, amount=nbytes)

    # ---------------------------------------------------------------------------------------- ending

    def _replay(self, end: FlowEnd) -> None:
        for frame in self._early.pop(end, ()):
            self._hear(end[0], frame)
        peer = end[0][0]
        if peer in self._lost:
            self._lose(peer, self._lost[peer])

    def _end(self, flow: Outgoing | Incoming, error: BiremeError | None) -> None:
        if isinstance(flow, Outgoing):
            self._outgoing.pop(flow.key, None)
        else:
            self._incoming.pop(flow.key, None)
        self._ended[flow.key, isinstance(flow, Outgoing)] = None
        flow.end(error)

    def _lose(self, peer: WorkerId, error: PeerLost) -> None:
        self._lost[peer] = error
        flows: list[Outgoing | Incoming] = [*self._outgoing.values(), *self._incoming.values()]
        for flow in flows:
            if flow.peer == peer:
                self._end(flow, error)
        self.notice()

    def forget(self, query: QueryId) -> None:
        """A query is over on all workers: nothing about it will come any more."""
        self._ended = {end: None for end in self._ended if end[0][1] != query}
        self._early = {end: frames for end, frames in self._early.items() if end[0][1] != query}


def _cost(entry: Entry) -> int:
    """Bytes of receive space that a batch takes; at least one, so that nothing travels without a grant."""
    return max(entry.batch.nbytes, 1)


def _batch_frame(flow: Outgoing, entry: Entry, packed: pa.Buffer) -> Frame:
    return Frame(
        kind=FrameKind.BATCH,
        query=flow.holder.query,
        edge=flow.holder.edge.id,
        producer=flow.key[3],
        partition=entry.partition,
        sequence=flow.sequence,
        rows=entry.batch.rows,
        amount=entry.batch.nbytes,
        payload=memoryview(packed),
    )
