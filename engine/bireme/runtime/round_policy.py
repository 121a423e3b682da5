"""How much of joins is in memory, and how a partition is done that is not. Decides only."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

# Of the memory limit: the build rows of the rounds that are under way, of which each also takes a table while it lasts.
_SHARE: Final = 1 / 8
_WAYS_MAX: Final = 16
_CUTS_MAX: Final = 5
# A partition that holds so much of what was cut has a key that no cut divides.
_UNDIVIDED: Final = 0.75


# Of the memory limit: join tables that are whole. Once they are probed they cannot be given up, and those who probe
# them need room too.
_TABLES_SHARE: Final = 0.7


# Of the memory limit: rows that one task cuts, and rows that one task joins. What becomes of them is there beside them,
# in as many tasks as there are slots; joined rows are mostly longer, and whoever reads on should find them in memory.
_CUT_SHARE: Final = 1 / 16
_JOINED_SHARE: Final = 1 / 32


class How(Enum):
    """What becomes of a partition."""

    SKIP = "skipped"
    JOIN = "joined"
    CUT = "cut"
    LOOP = "joined block by block"


def tables_bytes_max(limit: int) -> int:
    """Bytes that join tables may have together when no more rows come for them."""
    return int(limit * _TABLES_SHARE)


def round_bytes_max(limit: int) -> int:
    """Bytes of build rows that rounds may have in tables at once."""
    return max(1, int(limit * _SHARE))


def cut_bytes_max(limit: int) -> int:
    """Up to how many bytes of batches, or a batch, a task cuts into finer partitions."""
    return int(limit * _CUT_SHARE)


def joined_bytes_max(limit: int) -> int:
    """The same for a task that joins rows of a stream."""
    return int(limit * _JOINED_SHARE)


def how(*, build_bytes: int, cut_bytes: int, cuts: int, can_cut: bool, bytes_max: int) -> How:
    """How to join a partition with `build_bytes`, which `cuts` cuts led to, the last of one with `cut_bytes`."""
    if build_bytes <= bytes_max:
        return How.JOIN
    if can_cut and cuts < _CUTS_MAX and build_bytes <= cut_bytes * _UNDIVIDED:
        return How.CUT
    return How.LOOP


def ways(build_bytes: int, bytes_max: int) -> int:
    """Into how many partitions one that is too large is cut: each should fit although keys are not spread evenly."""
    return max(2, min(_WAYS_MAX, -(-2 * build_bytes // bytes_max)))


def blocks(sizes: Sequence[int], bytes_max: int) -> list[slice]:
    """Batches of these sizes in blocks that fit, at least a batch each."""
    found: list[slice] = []
    start, held = 0, 0
    for place, nbytes in enumerate(sizes):
        if place > start and held + nbytes > bytes_max:
            found.append(slice(start, place))
            start, held = place, 0
        held += nbytes
    return [*found, slice(start, len(sizes))] if len(sizes) else [slice(0, 0)]
