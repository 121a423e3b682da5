"""Merging byte ranges: which requests to make so that all wanted bytes come in few of them. Pure.

Rule: every wanted range lies within exactly one of the merged ones, and merged ones bridge no gap above the limit.
Fetching them is `ByteSource`; serving readers from what was fetched, `fetched`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bireme.storage.base import ByteRange
from bireme.units import KIB, MIB

# A request costs a thread hand-over and a system call, about 15 µs; a local disk reads some 64 KiB in that time.
GAP_BYTES_MAX: Final = 64 * KIB
# Merging stops here so that several IO threads have something to do; a larger single range stays whole.
MERGED_BYTES_MAX: Final = 16 * MIB


def coalesce(
    ranges: Iterable[ByteRange], *, gap_bytes_max: int = GAP_BYTES_MAX, merged_bytes_max: int = MERGED_BYTES_MAX
) -> tuple[ByteRange, ...]:
    """The fewest ranges, in order of path, version and offset, that cover `ranges` without bridging a larger gap.

    Empty ranges vanish. Ranges that overlap or touch are merged whatever the size of the result, so that no byte is
    asked for twice.
    """
    merged: list[ByteRange] = []
    for wanted in sorted(ranges, key=_place):
        if wanted.length == 0:
            continue
        if merged and _joins(merged[-1], wanted, gap_bytes_max, merged_bytes_max):
            last = merged[-1]
            end = max(last.end, wanted.end)
            merged[-1] = ByteRange(last.path, last.offset, end - last.offset, last.version)
        else:
            merged.append(wanted)
    return tuple(merged)


def _place(wanted: ByteRange) -> tuple[str, str, int]:
    return wanted.path, wanted.version, wanted.offset


def _joins(last: ByteRange, wanted: ByteRange, gap_bytes_max: int, merged_bytes_max: int) -> bool:
    if (last.path, last.version) != (wanted.path, wanted.version):
        return False
    if wanted.offset < last.end:
        return True
    return wanted.offset - last.end <= gap_bytes_max and wanted.end - last.offset <= merged_bytes_max
