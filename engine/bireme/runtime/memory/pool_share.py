"""How much memory the pool of a backend may keep for reuse: what is left of the limit beside all that is in use.

Rule: what the backend's kernels use, what their pool keeps, and what pyarrow holds stay together below the limit of the
tier, as far as keeping goes. The first two the pool compares itself, whenever it takes or keeps; it is told when what
pyarrow holds has changed by a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import pyarrow as pa

from bireme.data.tier import Tier
from bireme.runtime.memory.ledger import Ledger
from bireme.units import MIB

_STEP_BYTES: Final = 8 * MIB


class Quota(Protocol):
    """What a pool takes its limits from."""

    def set(self, held_max: int, kept_max: int, /) -> None:
        """Keeps at most `kept_max` bytes from now on, and with what is in use at most `held_max`."""
        ...


class PoolShare:
    """Keeps `quota` at the limit of `ledger` less what is `outside` of the backend."""

    def __init__(
        self,
        ledger: Ledger,
        quota: Quota,
        *,
        kept_max: int,
        outside: Callable[[], int] = pa.total_allocated_bytes,
    ) -> None:
        self._ledger = ledger
        self._quota = quota
        self._kept_max = kept_max
        self._outside = outside
        self._allowed = -1
        ledger.changed = self._look
        self._look()

    def __repr__(self) -> str:
        return f"<PoolShare: {self._allowed} bytes>"

    def _look(self) -> None:
        left = max(0, self._ledger.limits[Tier.DEVICE] - self._outside())
        allowed = left // _STEP_BYTES * _STEP_BYTES
        if allowed != self._allowed:
            self._allowed = allowed
            self._quota.set(allowed, self._kept_max)

    def close(self) -> None:
        """The worker needs the pool no more."""
        self._ledger.changed = _unheard
        self._quota.set(0, 0)


def _unheard() -> None:
    """Nobody looks any more."""
