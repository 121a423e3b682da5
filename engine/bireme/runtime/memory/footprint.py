"""What the process holds in all, against what it was promised to hold; what is too much is taken from pool and ledger.

Rule: the promise is about the process, the ledger only counts what passes through it. So the resident memory of the
process is looked at, while the ledger changes, and while much is held also in between: what libraries allocate in a
long task shows in no ledger. What is above the limit, beside what interpreter and libraries take, the backend's pool
gives up first, as far as it keeps memory for reuse. What neither the pool keeps nor the ledger knows is asked back from
the allocators of libraries, and lowers the limit of the ledger, down to half: whatever is not counted costs room, not
the promise. So does coming close to the promise, for some time: a task that took more than it was granted is no longer
seen when the next one is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

from bireme.clock import Clock
from bireme.config import PROCESS_BYTES
from bireme.data.ids import QueryId
from bireme.data.tier import Tier
from bireme.machine import resident_bytes
from bireme.observe.event import LimitMoved
from bireme.observe.recorder import Recorder
from bireme.runtime.memory.ledger import Ledger
from bireme.units import MIB

# What of `PROCESS_BYTES` comes only with the first queries, where a caller holds more than that before.
_LATE_BYTES: Final = 40 * MIB
# A look takes some microseconds.
_PAUSE_SECONDS: Final = 0.01
# What allocators give back they have to ask for again, page by page.
_TIDY_PAUSE_SECONDS: Final = 0.1
_STEP_BYTES: Final = 4 * MIB
# The promise allows such a part of the limit beside what the ledger counts.
_ALLOWED_SHARE: Final = 0.1
# What allocators of libraries keep in any case.
_UNCOUNTED_BYTES: Final = 16 * MIB
# What may come between two looks; where the limit is large, what is allowed beside the ledger has room for it.
_SURPRISE_BYTES: Final = 16 * MIB
# So close to the promise is too close, and what was seen of that is forgotten at such a pace.
_CLOSE_BYTES: Final = 8 * MIB
_FORGOTTEN_BYTES_PER_SECOND: Final = 4 * MIB
_CLOSE_SHARE_MAX: Final = 1 / 4
# Where the process holds such a part of its limit, it is looked at whether the ledger changes or not.
_WATCHED_SHARE: Final = 0.5
_WATCH_SECONDS: Final = 0.02


Later = Callable[[float, Callable[[], None]], object]


class Quota(Protocol):
    """What a pool takes its limits from."""

    def set(self, held_max: int, kept_max: int, /) -> None:
        """Keeps at most `kept_max` bytes from now on, and with what is in use at most `held_max`."""
        ...

    def hold_to(self, limit: int, share: int, /) -> None:
        """Kernels that ask take together what is left of half of `limit`, but each a `share` whatever is left."""
        ...

    def held(self) -> tuple[int, int]:
        """Bytes in use, and bytes that are kept for reuse."""
        ...

    def ask_tidy(self) -> None:
        """Has each thread that kernels run on give back what other allocators keep for it, when its task ends."""
        ...


class Close:
    """How far above `mark` what the process holds was lately, `most` at the most. Of peaks only some are seen: they
    stand for the others.
    """

    def __init__(self, mark: int, *, most: int) -> None:
        self._mark = mark
        self._most = most
        self._lately = 0.0
        self._at = 0.0

    def seen(self, held: int, now: float) -> int:
        """What it is, now that so much is held."""
        forgotten = _FORGOTTEN_BYTES_PER_SECOND * (now - self._at)
        self._lately, self._at = max(0.0, min(held - self._mark, self._most), self._lately - forgotten), now
        return int(self._lately)


class Footprint:
    """Keeps the process within the limit that `ledger` has on DEVICE when this is made. `later` calls once so many
    seconds have passed; without it, nothing is looked at in between. Kernels may take a `share` each that nobody
    reserved.
    """

    def __init__(
        self,
        ledger: Ledger,
        quota: Quota,
        recorder: Recorder,
        clock: Clock,
        *,
        kept_max: int,
        share: int = 0,
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self._ledger = ledger
        self._quota = quota
        self._recorder = recorder
        self._clock = clock
        self._kept_max = kept_max
        self._share = share
        self._resident = resident
        self.later: Later = _never
        self._is_watched = False
        self._limit = ledger.limits[Tier.DEVICE]
        self._margin = max(0, _SURPRISE_BYTES - int(_ALLOWED_SHARE * self._limit))
        before = resident()
        self._base = PROCESS_BYTES if before <= PROCESS_BYTES else before + _LATE_BYTES
        self._held_max = self._limit
        promised = int((1 + _ALLOWED_SHARE) * self._limit)
        self._close = Close(promised - _CLOSE_BYTES, most=int(_CLOSE_SHARE_MAX * self._limit))
        self._next = 0.0
        self._next_tidy = 0.0
        quota.set(self._held_max, kept_max)
        quota.hold_to(self._limit, share)
        ledger.changed = self._look

    def __repr__(self) -> str:
        return f"<Footprint: {self._ledger.limits[Tier.DEVICE]} of {self._limit} bytes for the ledger>"

    def _look(self) -> None:
        now = self._clock.now()
        if now >= self._next:
            self._see(now)

    def _see(self, now: float) -> None:
        # What it tells makes the ledger change, also where telling takes longer than the pause.
        self._next = math.inf
        try:
            self._tell(now)
        finally:
            self._next = now + _PAUSE_SECONDS

    def _tell(self, now: float) -> None:
        beside = self._resident() - self._base
        in_use, kept = self._quota.held()
        self._tell_pool(in_use + kept + self._limit - self._margin - beside)
        self._tell_ledger(beside - kept - self._ledger.totals[Tier.DEVICE], self._close.seen(beside - kept, now), now)
        if beside > self._limit * _WATCHED_SHARE and not self._is_watched and self._ledger.totals[Tier.DEVICE]:
            self._is_watched = True
            self.later(_WATCH_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._is_watched = False
        if self._ledger.changed == self._look:
            self._see(self._clock.now())

    def _tell_pool(self, left: int) -> None:
        held_max = max(0, min(left, self._limit))
        if abs(held_max - self._held_max) >= _STEP_BYTES or (held_max == self._limit) != (
            self._held_max == self._limit
        ):
            self._held_max = held_max
            self._quota.set(held_max, self._kept_max)

    def spare(self) -> int:
        """How much more the process may hold now, whatever is reserved."""
        return self._limit - (self._resident() - self._base)

    def may_have(self, nbytes: int) -> bool:
        """Whether a kernel may take so much that nobody reserved: its share always, more as far as there is room beside
        the shares of others, for which the pool gives up what it keeps.
        """
        _, kept = self._quota.held()
        return nbytes <= max(self._share, self.spare() + kept - self._limit // 2)

    def _tell_ledger(self, uncounted: int, too_close: int, now: float) -> None:
        allowed = max(int(_ALLOWED_SHARE * self._limit), _UNCOUNTED_BYTES)
        if uncounted > allowed // 2 and now >= self._next_tidy:
            self._next_tidy = now + _TIDY_PAUSE_SECONDS
            self._quota.ask_tidy()
        lowered = min(max(0, uncounted - allowed, too_close), self._limit // 2) // _STEP_BYTES * _STEP_BYTES
        limit = self._limit - lowered
        if limit != self._ledger.limits[Tier.DEVICE]:
            self._recorder.record(LimitMoved(QueryId(0), limit, self._limit, uncounted))
            self._ledger.move_limit(Tier.DEVICE, limit)

    def close(self) -> None:
        """The worker needs the pool no more."""
        self._ledger.changed = _unheard
        self._quota.set(0, 0)
        self._quota.hold_to(0, 0)


def share_of(limit: int, *, slots: int) -> int:
    """What a kernel may take that nobody reserved: of all slots at once, half of the limit."""
    return max(_SURPRISE_BYTES, limit // (2 * slots))


def _never(seconds: float, call: Callable[[], None], /) -> None:
    """Nobody has a clock that calls."""


def _unheard() -> None:
    """Nobody looks any more."""
