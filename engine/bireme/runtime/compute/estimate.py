"""Bytes a task will need beside its inputs, learnt from finished ones of the same pipeline. Pure.

A record is how many bytes per byte of basis (its input, or what a split decodes to) a task turned out to need. The
estimate is a weighted mean of the last 64, in which tasks of a similar basis weigh more; a shortage counts as a
larger peak at once.
"""

from __future__ import annotations

from collections import deque
from typing import Final

RECORDS_MAX: Final = 64
_REFRESH_EVERY: Final = 32


class History:
    """What the tasks of one pipeline needed; until one has ended, `first_guess` bytes for each of basis."""

    __slots__ = ("_cache", "_first_guess", "_fresh", "_records")

    def __init__(self, first_guess: float = 1.0) -> None:
        self._first_guess = first_guess
        self._records: deque[tuple[int, float]] = deque(maxlen=RECORDS_MAX)
        self._cache: dict[int, float] = {}
        self._fresh = 0

    def estimate(self, basis: int) -> int:
        """Bytes that a task with this basis will need."""
        scale = basis.bit_length()
        ratio = self._cache.get(scale)
        if ratio is None:
            ratio = self._cache[scale] = self._mean(scale)
        return int(ratio * basis)

    def learn(self, basis: int, peak: int) -> None:
        """A task with this basis needed `peak` bytes."""
        if basis <= 0:
            return
        self._records.append((basis.bit_length(), peak / basis))
        self._fresh += 1
        # The mean moves slowly once there is history; computing it anew for every task would cost more than it tells.
        if self._fresh >= min(_REFRESH_EVERY, len(self._records)):
            self._cache.clear()
            self._fresh = 0

    def suffered(self, basis: int, granted: int) -> None:
        """A task with this basis ran out of memory although it had `granted` bytes: it needs twice that."""
        self.learn(basis, max(2 * granted, basis))
        self._cache.clear()

    def _mean(self, scale: int) -> float:
        if not self._records:
            return self._first_guess
        weights = [1.0 / (1 + abs(scale - other)) for other, _ in self._records]
        total = sum(weight * ratio for weight, (_, ratio) in zip(weights, self._records, strict=True))
        return total / sum(weights)
