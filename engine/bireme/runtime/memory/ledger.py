"""Bytes promised and used on each tier. Pure: counts, never waits. The one authority on how full a tier is.

Memory is held, not counted: every byte belongs to a live `Reservation`, which gives itself back. Facts (a batch
that exists, a state that grew) are recorded even over the limit; requests are refused there, unless someone with a
reason overbooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import TracebackType

from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.units import format_bytes


class Use(IntEnum):
    """What a reservation is for. TASK is a promise; the others are there. CACHE is what goes first, LEAVING a state
    that is being handed over: who waits for room only has to wait for that.
    """

    TASK = 0
    BATCH = 1
    STATE = 2
    BUFFER = 3
    CACHE = 4
    LEAVING = 5


class Reservation:
    """Bytes of one tier that belong to someone. Leaving its block, or `release`, gives them back; twice is harmless."""

    __slots__ = ("_ledger", "nbytes", "tier", "use")

    def __init__(self, ledger: Ledger, tier: Tier, use: Use, nbytes: int) -> None:
        self._ledger = ledger
        self.tier = tier
        self.use = use
        self.nbytes = nbytes

    def __repr__(self) -> str:
        return f"<Reservation {format_bytes(self.nbytes)} of {self.tier.name} for {self.use.name}>"

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        if self._ledger is not None:
            self._ledger._give_back(self)

    def resize(self, nbytes: int) -> None:
        """Records that there are `nbytes` now: a fact, so also over the limit."""
        self._ledger._change(self, nbytes)

    def carve(self, nbytes: int, use: Use) -> Reservation:
        """A reservation of `nbytes` out of this one; what this one lacks is taken as a fact."""
        return self._ledger._carve(self, nbytes, use)

    def absorb(self, other: Reservation) -> None:
        """Takes over the bytes of another of the same tier and use, which is released."""
        self._ledger._absorb(self, other)


class Ledger:
    """`grown` and `shrunk` are called with the tier after its total has changed, `changed` before them; they must not
    reserve.
    """

    def __init__(self, limits: Mapping[Tier, int]) -> None:
        self.limits = [limits.get(tier, 0) for tier in Tier]
        self.totals = [0] * len(Tier)
        self.peaks = [0] * len(Tier)
        self.live = 0
        self.grown: Callable[[Tier], None] = _ignore
        self.shrunk: Callable[[Tier], None] = _ignore
        self.changed: Callable[[], None] = _nothing
        self._uses = [[0] * len(Use) for _ in Tier]

    def __repr__(self) -> str:
        tiers = (
            f"{tier.name.lower()} {format_bytes(self.totals[tier])} of {format_bytes(self.limits[tier])}"
            for tier in (Tier.DEVICE, Tier.PINNED, Tier.DISK)
        )
        return f"<Ledger: {', '.join(tiers)}; {self.live} reservations>"

    def used(self, tier: Tier, use: Use) -> int:
        return self._uses[tier][use]

    def free(self, tier: Tier) -> int:
        """Bytes left under the limit; negative when overbooked."""
        return self.limits[tier] - self.totals[tier]

    def fits(self, tier: Tier, nbytes: int) -> bool:
        return self.totals[tier] + nbytes <= self.limits[tier]

    def reserve(self, tier: Tier, nbytes: int, use: Use) -> Reservation | None:
        """A reservation, or None where it does not fit."""
        return self.take(tier, nbytes, use) if self.totals[tier] + nbytes <= self.limits[tier] else None

    def take(self, tier: Tier, nbytes: int, use: Use) -> Reservation:
        """A reservation whether it fits or not: for facts, and for those who overbook with a reason."""
        if nbytes < 0:
            raise EngineBug(f"a reservation of {nbytes} bytes")
        self.live += 1
        self._add(tier, use, nbytes)
        return Reservation(self, tier, use, nbytes)

    def move_limit(self, tier: Tier, nbytes: int) -> None:
        """From now on there are so many bytes of `tier`; what is reserved stays, also over the limit."""
        lowered = nbytes < self.limits[tier]
        self.limits[tier] = nbytes
        (self.grown if lowered else self.shrunk)(tier)

    def check(self) -> None:
        """Raises EngineBug where totals and uses differ; for tests and the simulation."""
        for tier in Tier:
            if self.totals[tier] != sum(self._uses[tier]) or min(self._uses[tier]) < 0:
                raise EngineBug(f"{tier.name}: uses {self._uses[tier]} against a total of {self.totals[tier]}")

    def _add(self, tier: Tier, use: Use, nbytes: int) -> None:
        self._uses[tier][use] += nbytes
        self.totals[tier] += nbytes
        if self.totals[tier] > self.peaks[tier]:
            self.peaks[tier] = self.totals[tier]
        self.changed()
        if nbytes > 0:
            self.grown(tier)
        elif nbytes < 0:
            self.shrunk(tier)

    def _change(self, reservation: Reservation, nbytes: int) -> None:
        if nbytes < 0 or reservation._ledger is None:
            raise EngineBug(f"{reservation!r} cannot become {nbytes} bytes")
        grown = nbytes - reservation.nbytes
        reservation.nbytes = nbytes
        self._add(reservation.tier, reservation.use, grown)

    def _carve(self, reservation: Reservation, nbytes: int, use: Use) -> Reservation:
        moved = min(nbytes, reservation.nbytes)
        reservation.nbytes -= moved
        self._uses[reservation.tier][reservation.use] -= moved
        self._uses[reservation.tier][use] += moved
        self.live += 1
        self._add(reservation.tier, use, nbytes - moved)
        return Reservation(self, reservation.tier, use, nbytes)

    def _absorb(self, reservation: Reservation, other: Reservation) -> None:
        if (reservation.tier, reservation.use) != (other.tier, other.use) or other._ledger is not self:
            raise EngineBug(f"{reservation!r} cannot take over {other!r}")
        reservation.nbytes, other.nbytes = reservation.nbytes + other.nbytes, 0
        other._ledger = None  # type: ignore[assignment]  # as of one that was given back
        self.live -= 1

    def _give_back(self, reservation: Reservation) -> None:
        nbytes, reservation.nbytes = reservation.nbytes, 0
        reservation._ledger = None  # type: ignore[assignment]  # released: any further use but release is a bug
        self.live -= 1
        self._add(reservation.tier, reservation.use, -nbytes)


def _nothing() -> None:
    """Nobody looks yet."""


def _ignore(tier: Tier) -> None:
    """Nobody listens yet."""
