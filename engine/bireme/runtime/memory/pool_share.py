"""How much memory the pool of a backend may keep for reuse: only what nobody has reserved.

Rule: what is reserved and what is pooled together stay below the limit of the tier. The pool is told whenever what is
left changes by a step, so that it gives pages back before a query has to wait for room.
"""

from __future__ import annotations

from typing import Final, Protocol

from bireme.data.tier import Tier
from bireme.runtime.memory.ledger import Ledger
from bireme.units import MIB

_STEP_BYTES: Final = 8 * MIB


class Quota(Protocol):
    """What a pool takes its limit from."""

    def set(self, nbytes: int, /) -> None:
        """Keeps at most so much from now on; what is above it goes back to the operating system."""
        ...


class PoolShare:
    """Keeps `quota` at what is free of `ledger`, at most `bytes_max`."""

    def __init__(self, ledger: Ledger, quota: Quota, *, bytes_max: int) -> None:
        self._ledger = ledger
        self._quota = quota
        self._bytes_max = bytes_max
        self._allowed = -1
        ledger.changed = self._look
        self._look()

    def __repr__(self) -> str:
        return f"<PoolShare: {self._allowed} bytes>"

    def _look(self) -> None:
        free = self._ledger.free(Tier.DEVICE)
        allowed = self._bytes_max if free >= self._bytes_max else max(0, free) // _STEP_BYTES * _STEP_BYTES
        if allowed != self._allowed:
            self._allowed = allowed
            self._quota.set(allowed)

    def close(self) -> None:
        """The worker needs the pool no more."""
        self._ledger.changed = _unheard
        self._quota.set(0)


def _unheard() -> None:
    """Nobody looks any more."""
