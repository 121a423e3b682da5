"""Ranges of integer keys, and which part of each of several ranges belongs to it alone.

Values are the integers that columns store: days of a date, the unscaled number of a decimal. Where ranges come from is
in `storage`; what follows for groups, in `operators.group`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


class KeyRange(NamedTuple):
    """Both ends belong to it; it is empty where `low` is above `high`."""

    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


EMPTY: Final = KeyRange(0, -1)


def exclusive(ranges: Sequence[KeyRange | None]) -> list[KeyRange]:
    """For each range a part of it that no other one touches; empty where there is none.

    A range that is not known (None) may hold anything, so then nothing is exclusive. Where one range lies within
    another, the outer one keeps only what is below the inner.
    """
    known = [found for found in ranges if found is not None]
    parts = [EMPTY] * len(ranges)
    if len(known) < len(ranges):
        return parts
    order = [index for index, found in enumerate(known) if not found.is_empty]
    order.sort(key=lambda index: known[index])
    reached = INT64_MIN - 1
    for index, after in pairwise([*order, -1]):
        low, high = known[index]
        end = high if after < 0 else min(high, known[after].low - 1)
        part = KeyRange(max(low, reached + 1), end)
        parts[index] = EMPTY if part.is_empty else part
        reached = max(reached, high)
    return parts
