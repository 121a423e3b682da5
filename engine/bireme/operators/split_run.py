"""Several small splits as one, so that a task has enough work to be worth its hand-over.

Rule: splits that follow each other stay in order, and one of them is decoded at a time, so a run needs little more
memory than a split. Only scans of many splits are joined: there must be tasks enough for all slots to end at about one
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa

from bireme.data.key_range import EMPTY, KeyRange
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.storage.base import ByteRange, ChunkKey, Split
from bireme.units import MIB

# Decompressing and decoding this much takes some milliseconds; handing a task over, a few tenths of one.
_RUN_BYTES_MAX: Final = 4 * MIB
_RUN_COUNT_MIN: Final = 24


@dataclass(frozen=True, slots=True)
class SplitRun:
    """Splits that one task reads, one after the other."""

    splits: tuple[Split, ...]
    ranges: tuple[ByteRange, ...]

    @property
    def sharers(self) -> int:
        return 1

    @property
    def schema(self) -> Schema:
        return self.splits[0].schema

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        return ()

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
        for split in self.splits:
            end = start + len(split.ranges)
            yield split, buffers[start:end]
            start = end

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(split.decode(own) for split, own in self.pieces(buffers))

    def encoded(self) -> str:
        """A run is encoded split by split: see `pieces`."""
        return ""

    def damage(self, column: int, story: str) -> EngineBug:
        return EngineBug(f"column {column} of a run of splits was decoded as a whole: {story}")


def run_lengths(splits: Sequence[Split]) -> list[int]:
    """How many splits each task should take."""
    count_max = len(splits) // _RUN_COUNT_MIN
    if count_max < 2:
        return [1] * len(splits)
    lengths: list[int] = []
    nbytes = 0
    for split in splits:
        own = sum([wanted.length for wanted in split.ranges])
        is_alone = split.sharers > 1 or not split.ranges
        if lengths and not is_alone and lengths[-1] < count_max and nbytes + own <= _RUN_BYTES_MAX:
            lengths[-1] += 1
            nbytes += own
        else:
            lengths.append(1)
            nbytes = _RUN_BYTES_MAX if is_alone else own
    return lengths


def in_runs(splits: Sequence[Split], lengths: Sequence[int]) -> list[Split]:
    """The splits, joined to runs of the given lengths."""
    joined: list[Split] = []
    start = 0
    for length in lengths:
        joined.append(splits[start] if length == 1 else _run(splits[start : start + length]))
        start += length
    return joined


def _run(splits: Sequence[Split]) -> SplitRun:
    return SplitRun(tuple(splits), tuple([one for split in splits for one in split.ranges]))


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
