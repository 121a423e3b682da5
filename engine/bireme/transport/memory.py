"""Transport inside one process: a local cluster, a test. Frames travel as the bytes that a real link would carry.

A link holds a bounded number of frames, so senders wait as they would on a socket.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bireme.data.ids import WorkerId
from bireme.errors import PeerLost
from bireme.transport.frame import Frame, FrameDamaged, FrameReader, encode

_LINK_FRAMES_MAX: Final = 64

_Wire = tuple[WorkerId, bytes | None]


class MemoryNetwork:
    """All links between the workers of one process."""

    def __init__(self) -> None:
        self._inboxes: dict[WorkerId, asyncio.Queue[_Wire]] = {}

    def __repr__(self) -> str:
        return f"<MemoryNetwork: {len(self._inboxes)} workers>"

    def join(self, worker: WorkerId) -> MemoryTransport:
        """The transport of a new worker."""
        self._inboxes[worker] = asyncio.Queue(_LINK_FRAMES_MAX)
        return MemoryTransport(worker, self)

    async def deliver(self, sender: WorkerId, peer: WorkerId, data: bytes | None) -> None:
        """Puts bytes into a worker's inbox; None says that the sender is gone."""
        inbox = self._inboxes.get(peer)
        if inbox is None:
            raise lost(peer, "it has left")
        await inbox.put((sender, data))

    def inbox(self, worker: WorkerId) -> asyncio.Queue[_Wire]:
        return self._inboxes[worker]

    async def leave(self, worker: WorkerId) -> None:
        own = self._inboxes.pop(worker, None)
        if own is None:
            return
        for peer, inbox in tuple(self._inboxes.items()):
            await inbox.put((worker, None))
            await own.put((peer, None))


class MemoryTransport:
    """One worker's end."""

    def __init__(self, worker: WorkerId, network: MemoryNetwork) -> None:
        self._worker = worker
        self._network = network
        self._inbox = network.inbox(worker)

    def __repr__(self) -> str:
        return f"<MemoryTransport of worker {self._worker}>"

    @property
    def worker(self) -> WorkerId:
        return self._worker

    async def send(self, peer: WorkerId, frame: Frame) -> None:
        header, payload = encode(frame)
        await self._network.deliver(self._worker, peer, header + bytes(payload))

    async def receive(self) -> tuple[WorkerId, Frame]:
        sender, data = await self._inbox.get()
        if data is None:
            raise lost(sender, "it has left")
        try:
            frames = list(FrameReader().feed(data))
        except FrameDamaged as error:
            raise lost(sender, str(error)) from error
        if len(frames) != 1:
            raise lost(sender, f"{len(data)} bytes came that are not one whole frame")
        return sender, frames[0]

    async def close(self) -> None:
        await self._network.leave(self._worker)


def lost(peer: WorkerId, reason: str) -> PeerLost:
    """The error for a peer that is gone; it says which."""
    return PeerLost(f"worker {peer} is lost: {reason}", peer=peer)
