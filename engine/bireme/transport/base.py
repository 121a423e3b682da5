"""The seam to other workers: ordered, reliable delivery of frames between peers.

What a frame says is in `frame`; how many bytes may be under way, in `credit`; what to send when, in
`runtime.network`. Implementations move frames and know nothing of queries. They deliver the frames of one sender in
order and whole, or report the peer as lost; a frame that arrives damaged loses its peer too.
"""

from __future__ import annotations

from typing import Protocol

from bireme.data.ids import WorkerId
from bireme.transport.frame import Frame


class Transport(Protocol):
    """One worker's end of all links."""

    @property
    def worker(self) -> WorkerId: ...

    async def send(self, peer: WorkerId, frame: Frame) -> None:
        """Hands a frame to the link; waits while the link is full. Raises PeerLost."""
        ...

    async def receive(self) -> tuple[WorkerId, Frame]:
        """The next frame of any peer, and who sent it. Raises PeerLost, naming the peer, once for each that is lost."""
        ...

    async def close(self) -> None:
        """Ends all links; peers see this worker as lost, and it them. Idempotent."""
        ...
