"""Sharing a batch on DEVICE, wherever it lies: for those who read single batches (the caller, a peer).

Tasks, which bring up all their inputs within one grant, do so in `compute.executor`.
"""

from __future__ import annotations

from bireme.data.tier import Tier
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.state import Access, Entry
from bireme.runtime.memory.ledger import Use
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.room import Purpose, Room


async def lease_up(holder: BatchHolder, entry: Entry, *, room: Room, mover: Mover) -> bool:
    """Shares `entry` on DEVICE until `give_back`. False where the holder was closed meanwhile."""
    while not holder.state.closed:
        if entry.access is Access.EXCLUSIVE:
            await holder.wait_moved(entry)
        elif entry.batch.tier is Tier.DEVICE:
            holder.state.lease(entry)
            return True
        else:
            await _promote(holder, entry, room, mover)
    return False


async def _promote(holder: BatchHolder, entry: Entry, room: Room, mover: Mover) -> None:
    space = await room.reserve(Tier.DEVICE, entry.batch.nbytes, Use.BATCH, purpose=Purpose.CONSUME, query=holder.query)
    if holder.state.closed or entry.access is not Access.IDLE or entry.batch.tier is Tier.DEVICE:
        space.release()
        return
    # A request larger than the tier was cut to it; what the batch takes is a fact.
    space.resize(entry.batch.nbytes)
    holder.state.start_move(entry)
    await mover.promote(holder, entry, space, ahead=False)
