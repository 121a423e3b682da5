"""Which splits to fetch and which demoted batches to bring up before they are asked for. Decides only.

Rule: in the order in which Compute will want them; each scan has at most its hint's depth ahead, all scans together
at most a count and a number of bytes. But a scan with nothing ahead may always fetch one, or a full budget could
block the only scan that others wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

# With more, tasks of a small tier would stand in line for memory that their own inputs take.
_FETCH_SHARE_MAX: Final = 1 / 8


class ScanView(NamedTuple):
    """A scan as this policy sees it: `next_bytes` are those of the split it would fetch next."""

    rank: tuple[int, ...]
    ahead: int
    depth: int
    next_bytes: int
    handle: Any


def choose_fetch(scans: Sequence[ScanView], *, count_left: int, bytes_left: int) -> ScanView | None:
    """The scan whose next split should be fetched now, or None."""
    eligible = [
        scan
        for scan in scans
        if scan.ahead == 0 or (scan.ahead < scan.depth and count_left > 0 and scan.next_bytes <= bytes_left)
    ]
    return min(eligible, key=lambda scan: scan.rank, default=None)


def fetch_bytes_max(configured: int, limit: int) -> int:
    """Bytes that all scans together may have ahead of need in a tier of `limit` bytes: what is read early and waits
    takes room from the tasks that would use it up.
    """
    return min(configured, int(limit * _FETCH_SHARE_MAX))


def promotion_room(held: int, limit: int, *, stop: float) -> int:
    """Bytes that may be brought up ahead of need without nearing the level where demotion starts."""
    return max(0, int(limit * stop) - held)
