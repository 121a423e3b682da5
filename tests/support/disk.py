"""Both storage seams in memory, with faults drawn from a seed.

`MemorySource` gives bytes that depend only on the range, so that a reader can tell a wrong byte. `MemorySpill` keeps
packed batches; a fault is a full disk, an IO error, or a flipped bit that reading must notice.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bireme.data.packed import pack_joined, unpack
from bireme.errors import SpillCorrupt, SpillFailed, StorageError
from bireme.storage.base import ByteRange, SpillTicket
from bireme.storage.spill_policy import NO_HINT, SpillHint

# What follows the rows in a packed batch.
_END_BYTES = 8


@dataclass(frozen=True, slots=True)
class DiskFaults:
    """Chances of each fault per call, and the size at which the disk is full (None: never)."""

    read_fails: float = 0.0
    spill_write_fails: float = 0.0
    spill_read_fails: float = 0.0
    flipped_bit: float = 0.0
    full_at: int | None = None

    @classmethod
    def draw(cls, rng: random.Random) -> DiskFaults:
        if rng.random() < 0.6:
            return cls()
        return cls(
            read_fails=rng.choice((0.0, 0.0, 0.02)),
            spill_write_fails=rng.choice((0.0, 0.05, 0.5, 1.0)),
            spill_read_fails=rng.choice((0.0, 0.0, 0.05)),
            flipped_bit=rng.choice((0.0, 0.0, 0.2)),
            full_at=rng.choice((None, None, 0, 2_000, 20_000)),
        )


def bytes_of(byte_range: ByteRange) -> bytes:
    """What a source holds there."""
    start = zlib.crc32(byte_range.path.encode()) + byte_range.offset
    return bytes((start + index) % 251 for index in range(byte_range.length))


class MemorySource:
    """A ByteSource. `faulted` counts the reads that were made to fail."""

    def __init__(self, rng: random.Random | None = None, faults: DiskFaults | None = None) -> None:
        self._rng = rng or random.Random(0)
        self._faults = faults or DiskFaults()
        self.reads = 0
        self.faulted = 0

    def is_resident(self, ranges: Sequence[ByteRange]) -> bool:
        return self._rng.random() < 0.5

    def read_all(self, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        return [self.read(one) for one in ranges]

    def read(self, byte_range: ByteRange) -> pa.Buffer:
        self.reads += 1
        if self._rng.random() < self._faults.read_fails:
            self.faulted += 1
            raise StorageError(f"simulated: {byte_range.path} cannot be read")
        return pa.py_buffer(bytes_of(byte_range))


class MemorySpill:
    """A SpillStore. `faulted` counts the calls that were made to fail, `flipped` the bits that were flipped."""

    scratch_bytes = 0

    def __init__(self, rng: random.Random | None = None, faults: DiskFaults | None = None) -> None:
        self._rng = rng or random.Random(0)
        self._faults = faults or DiskFaults()
        self._kept: dict[int, bytes] = {}
        self._next = 0
        self.writes = 0
        self.faulted = 0
        self.flipped = 0

    def write(self, batch: pa.RecordBatch, hint: SpillHint = NO_HINT) -> SpillTicket:
        data = pack_joined(batch).to_pybytes()
        full = self._faults.full_at is not None and self.bytes_used + len(data) > self._faults.full_at
        if full or self._rng.random() < self._faults.spill_write_fails:
            self.faulted += 1
            raise SpillFailed("simulated: the spill folder is full")
        checksum = zlib.crc32(data)
        if self._rng.random() < self._faults.flipped_bit:
            self.flipped += 1
            # Most bytes of so few rows are their description; half of the bits are of the rows themselves.
            first = 0 if self._rng.random() < 0.5 else max(0, len(data) - _END_BYTES - -(-batch.nbytes // 8) * 8)
            at = self._rng.randrange(first, max(first + 1, first + batch.nbytes) if first else len(data))
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        self._next += 1
        self._kept[self._next] = data
        self.writes += 1
        return SpillTicket(0, self._next, len(data), checksum, len(data), len(data))

    def read(self, ticket: SpillTicket) -> pa.RecordBatch:
        if self._rng.random() < self._faults.spill_read_fails:
            self.faulted += 1
            raise StorageError("simulated: the spill folder cannot be read")
        data = self._kept[ticket.offset]
        if zlib.crc32(data) != ticket.checksum:
            raise SpillCorrupt("simulated: a spilled batch does not match its checksum")
        return unpack(pa.py_buffer(data))

    def drop(self, ticket: SpillTicket) -> None:
        del self._kept[ticket.offset]

    def take_notes(self) -> list[str]:
        return []

    def close(self) -> None:
        self._kept.clear()

    @property
    def bytes_used(self) -> int:
        return sum(map(len, self._kept.values()))
