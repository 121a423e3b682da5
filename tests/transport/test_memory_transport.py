"""The transport in memory passes the kit, and reports damaged bytes as a lost peer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from support.transport_kit import CHECKS, Make

from bireme.data.ids import WorkerId
from bireme.errors import PeerLost
from bireme.transport.base import Transport
from bireme.transport.memory import MemoryNetwork


async def make(count: int) -> Sequence[Transport]:
    network = MemoryNetwork()
    return [network.join(WorkerId(number)) for number in range(count)]


@pytest.mark.parametrize("check", CHECKS)
def test_kit(check: Callable[[Make], Awaitable[None]]) -> None:
    asyncio.run(check(make))


def test_damaged_bytes_lose_their_sender() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        one, two = network.join(WorkerId(1)), network.join(WorkerId(2))
        for damaged, reason in ((b"x" * 200, "not a frame"), (b"half", "not one whole frame")):
            await network.deliver(WorkerId(1), WorkerId(2), damaged)
            with pytest.raises(PeerLost, match=reason) as lost:
                await two.receive()
            assert lost.value.peer == one.worker

    asyncio.run(main())
