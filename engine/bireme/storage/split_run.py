"""Several small splits as one, so that a task has enough work to be worth its hand-over.

Rule: splits that follow each other stay in order, and one of them is decoded at a time, so a run needs little more
memory than a split. Only scans of many splits are joined: there must be tasks enough for all slots to end at about one
time.

What goes into a run is told by bytes, which are known beforehand, and not by what earlier tasks took: measured alone,
that made tasks as many as without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import pyarrow as pa

from bireme.data.key_range import EMPTY, KeyRange
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.storage.base import ByteRange, ChunkKey, Split
from bireme.storage.kept_split import KeptSplit
from bireme.units import MIB

# Decompressing and decoding this much takes some milliseconds; handing a task over, a few tenths of one.
_RUN_BYTES_MIN: Final = 4 * MIB
_RUN_BYTES_MAX: Final = 32 * MIB
# So many tasks a slot are enough, so that the slots end at about the same time. Of short ones fewer: what a task costs
# beside its work is then more than what a slot loses that ends first. The last ones are half as long, against that.
_RUNS_PER_SLOT: Final = 16
_RUNS_PER_SLOT_MIN: Final = 2
# Where a task keeps a table of its own, which should stay in the second-level cache.
_RUNS_PER_SLOT_KEEPING_MIN: Final = 6
# A run may decode to this part of the memory of its slot.
_RUNS_IN_MEMORY: Final = 16


class RunLimits(NamedTuple):
    """What bounds runs: compute slots, and the bytes that all of them have."""

    slots: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class SplitRun:
    """Splits that one task reads, one after the other; `ranges` are those of all, `counts` how many each has."""

    splits: tuple[Split, ...]
    ranges: tuple[ByteRange, ...]
    counts: tuple[int, ...]

    @property
    def sharers(self) -> int:
        return 1

    @property
    def schema(self) -> Schema:
        return self.splits[0].schema

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        return tuple([key for split in self.splits for key in split.chunk_keys])

    def part(self, columns: Sequence[int]) -> Split:
        return _run([split.part(columns) for split in self.splits])

    @property
    def first_row(self) -> int:
        return self.splits[0].first_row

    @property
    def rows(self) -> int:
        return sum([split.rows for split in self.splits])

    @property
    def decoded_bytes(self) -> int:
        return sum([split.decoded_bytes for split in self.splits])

    def pieces(self, buffers: Sequence[pa.Buffer]) -> Iterator[tuple[Split, Sequence[pa.Buffer]]]:
        """Each split with its part of the bytes of `ranges`."""
        start = 0
        for split, count in zip(self.splits, self.counts, strict=True):
            yield split, buffers[start : start + count]
            start += count

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(split.decode(own) for split, own in self.pieces(buffers))

    def encoded(self) -> str:
        """A run is encoded split by split: see `pieces`."""
        return ""

    def damage(self, column: int, story: str) -> EngineBug:
        return EngineBug(f"column {column} of a run of splits was decoded as a whole: {story}")


def run_lengths(splits: Sequence[Split], limits: RunLimits, *, keeps_rows: bool = False) -> list[int]:
    """How many splits each task should take; with `keeps_rows` it keeps what it makes of them until it ends."""
    runs_min = _RUNS_PER_SLOT_KEEPING_MIN if keeps_rows else _RUNS_PER_SLOT_MIN
    count_max = len(splits) // (runs_min * limits.slots)
    if count_max < 2:
        return [1] * len(splits)
    sizes = [_bytes_of(split) for split in splits]
    bytes_max = min(max(_RUN_BYTES_MIN, sum(sizes) // (_RUNS_PER_SLOT * limits.slots)), _RUN_BYTES_MAX)
    decoded_max = limits.memory_bytes // (_RUNS_IN_MEMORY * limits.slots)
    lengths: list[int] = []
    nbytes = decoded = 0
    last = len(splits) - count_max
    for place, (split, own) in enumerate(zip(splits, sizes, strict=True)):
        own_decoded = split.decoded_bytes
        nbytes, decoded = nbytes + own, decoded + own_decoded
        is_full = nbytes > bytes_max or decoded > decoded_max or split.sharers > 1 or place == last
        if lengths and not is_full and lengths[-1] < (count_max if place < last else -(-count_max // 2)):
            lengths[-1] += 1
        else:
            lengths.append(1)
            nbytes, decoded = (bytes_max if split.sharers > 1 else own), own_decoded
    return lengths


def _bytes_of(split: Split) -> int:
    """Stored bytes; of what is in memory, decoded ones."""
    return sum([wanted.length for wanted in split.ranges]) if split.ranges else split.decoded_bytes


def in_runs(splits: Sequence[Split], lengths: Sequence[int]) -> list[Split]:
    """The splits, joined to runs of the given lengths."""
    joined: list[Split] = []
    start = 0
    for length in lengths:
        joined.append(splits[start] if length == 1 else _run(splits[start : start + length]))
        start += length
    return joined


def _run(splits: Sequence[Split]) -> SplitRun:
    counts = tuple([len(split.ranges) for split in splits])
    return SplitRun(tuple(splits), tuple([one for split in splits for one in split.ranges]), counts)


def kept(split: Split, found: Mapping[int, pa.ChunkedArray]) -> Split:
    """A split with the columns `found`, by the positions of their keys, each split of a run with its own."""
    if not isinstance(split, SplitRun):
        return KeptSplit(split, found)
    parts: list[Split] = []
    start = 0
    for part in split.splits:
        count = len(part.chunk_keys)
        own = {column: found[start + column] for column in range(count) if start + column in found}
        parts.append(KeptSplit(part, own))
        start += count
    return _run(parts)


def kept_parts(split: Split | None) -> list[KeptSplit]:
    """The splits in one whose columns are to be kept."""
    parts = split.splits if isinstance(split, SplitRun) else (split,)
    return [part for part in parts if isinstance(part, KeptSplit)]


def hulls(ranges: Sequence[KeyRange | None], lengths: Sequence[int]) -> list[KeyRange | None]:
    """The smallest range around those of each run; None where one of them is not known."""
    found: list[KeyRange | None] = []
    start = 0
    for length in lengths:
        run = ranges[start : start + length]
        start += length
        known = [one for one in run if one is not None]
        full = [one for one in known if not one.is_empty]
        if len(known) < length:
            found.append(None)
        else:
            found.append(KeyRange(min(one.low for one in full), max(one.high for one in full)) if full else EMPTY)
    return found
