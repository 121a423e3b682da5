"""What every transport promises: the kit that real ones and the one in memory pass.

`make` gives the transports of as many workers as asked for, all linked. Each check is a coroutine for any loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from bireme.data.ids import EdgeId, QueryId, WorkerId
from bireme.errors import PeerLost
from bireme.transport.base import Transport
from bireme.transport.frame import Frame, FrameKind

Make = Callable[[int], Awaitable[Sequence[Transport]]]


def frame(sequence: int, payload: bytes = b"") -> Frame:
    return Frame(kind=FrameKind.BATCH, query=QueryId(1), edge=EdgeId(1), producer=0, sequence=sequence, payload=payload)


async def keeps_the_order_of_a_sender(make: Make) -> None:
    one, two = await make(2)

    async def send() -> None:
        for number in range(200):
            await one.send(two.worker, frame(number, bytes(number)))

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        got = [await two.receive() for _ in range(200)]
    assert [sender for sender, _ in got] == [one.worker] * 200
    assert [(each.sequence, len(each.payload)) for _, each in got] == [(number, number) for number in range(200)]
    await one.close()
    await two.close()


async def carries_frames_without_payload(make: Make) -> None:
    one, two = await make(2)
    await one.send(two.worker, frame(7))
    assert (await two.receive()) == (one.worker, frame(7))
    await one.close()
    await two.close()


async def says_who_is_lost_to_one_that_waits(make: Make) -> None:
    one, two, three = await make(3)
    waiting = asyncio.ensure_future(two.receive())
    await asyncio.sleep(0)
    await one.close()
    with pytest.raises(PeerLost) as lost:
        await waiting
    assert lost.value.peer == one.worker
    await three.send(two.worker, frame(1))
    assert (await two.receive())[0] == three.worker
    await two.close()
    await three.close()


async def does_not_send_to_one_that_has_left(make: Make) -> None:
    one, two = await make(2)
    await two.close()
    with pytest.raises(PeerLost):
        await one.send(two.worker, frame(1))
    await one.close()


async def ends_twice_without_harm(make: Make) -> None:
    (one,) = await make(1)
    await one.close()
    await one.close()


async def sending_waits_while_the_link_is_full(make: Make) -> None:
    one, two = await make(2)
    sending = asyncio.ensure_future(_send_many(one, two.worker))
    await asyncio.sleep(0.05)
    assert not sending.done()
    for number in range(10_000):
        assert (await two.receive())[1].sequence == number
    await sending
    await one.close()
    await two.close()


async def a_wait_that_is_cancelled_loses_nothing(make: Make) -> None:
    one, two = await make(2)
    waiting = asyncio.ensure_future(two.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await one.send(two.worker, frame(3))
    assert (await two.receive())[1].sequence == 3
    await one.close()
    await two.close()


async def _send_many(sender: Transport, peer: WorkerId) -> None:
    for number in range(10_000):
        await sender.send(peer, frame(number))


CHECKS = [
    keeps_the_order_of_a_sender,
    carries_frames_without_payload,
    says_who_is_lost_to_one_that_waits,
    does_not_send_to_one_that_has_left,
    ends_twice_without_harm,
    sending_waits_while_the_link_is_full,
    a_wait_that_is_cancelled_loses_nothing,
]
