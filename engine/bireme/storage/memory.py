"""Storage in memory: ranged reads and a spill store, with faults on demand. For tests and simulations.

Rule: they pass the same conformance kits as the real ones (`local`, `spill`), so a test that runs on them says
something about those. A fault is asked for before the work is done, so that nothing is left of an operation that fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from bireme.data.packed import checksum, pack, packed_length, unpack
from bireme.errors import BiremeError, SourceChanged, SourceMissing, SpillCorrupt, SpillFailed
from bireme.storage.base import ByteRange, SpillTicket
from bireme.storage.spill_policy import NO_HINT, SpillHint

# Asked with the name of an operation ("read", "write"); an error it gives is raised instead of doing the operation.
Fault = Callable[[str], BiremeError | None]


def _no_fault(_: str) -> BiremeError | None:
    return None


class MemoryByteSource:
    """Ranged reads of byte strings by name. `reads` are the ranges that were asked for, in order."""

    def __init__(self, files: Mapping[str, bytes], *, fault: Fault = _no_fault) -> None:
        self._files: dict[str, pa.Buffer] = {}
        self._fault = fault
        self._writes = 0
        self._versions: dict[str, str] = {}
        self.reads: list[ByteRange] = []
        for path, content in files.items():
            self.write(path, content)

    def write(self, path: str, content: bytes) -> None:
        """Puts a file there, or another content into it: a new version."""
        self._writes += 1
        self._files[path] = pa.py_buffer(content)
        self._versions[path] = str(self._writes)

    def version(self, path: str) -> str:
        """What identifies the content of a file, for the ranges that are planned on it."""
        return self._versions[path]

    def read_all(self, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        return [self.read(one) for one in ranges]

    def is_resident(self, ranges: Sequence[ByteRange]) -> bool:
        return True

    def read(self, byte_range: ByteRange) -> pa.Buffer:
        self.reads.append(byte_range)
        error = self._fault("read")
        if error is not None:
            raise error
        content = self._files.get(byte_range.path)
        if content is None:
            raise SourceMissing(f"there is no file {byte_range.path!r}; check the path")
        if byte_range.end > len(content) or byte_range.version not in ("", self._versions[byte_range.path]):
            raise SourceChanged(f"{byte_range.path!r} changed while the query was reading it; run the query again")
        return content.slice(byte_range.offset, byte_range.length)


class MemorySpillStore:
    """Keeps packed batches in memory, at most `bytes_max` of them."""

    scratch_bytes = 0

    def __init__(self, *, bytes_max: int, fault: Fault = _no_fault) -> None:
        self._bytes_max = bytes_max
        self._fault = fault
        self._lock = threading.Lock()
        self._batches: dict[int, bytes] = {}
        self._next = 0
        self._closed = False

    def write(self, batch: pa.RecordBatch, hint: SpillHint = NO_HINT) -> SpillTicket:
        pieces = pack(batch)
        length = packed_length(pieces)
        with self._lock:
            self._check_open()
            error = self._fault("write")
            if error is not None:
                raise error
            if self._used() + length > self._bytes_max:
                raise SpillFailed(f"spilling {length} bytes would pass the limit of {self._bytes_max} bytes")
            place = self._next
            self._next += 1
            self._batches[place] = b"".join(piece.to_pybytes() for piece in pieces)
        return SpillTicket(place, 0, length, checksum(pieces), length, length)

    def read(self, ticket: SpillTicket) -> pa.RecordBatch:
        with self._lock:
            self._check_open()
            error = self._fault("read")
            if error is not None:
                raise error
            content = self._batches.get(ticket.segment)
        if content is None:
            raise SpillFailed("a spilled batch is gone: it was dropped, or another store wrote it")
        packed = pa.py_buffer(content)
        if len(packed) != ticket.length or checksum([packed]) != ticket.checksum:
            raise SpillCorrupt("a spilled batch no longer matches its checksum")
        return unpack(packed)

    def drop(self, ticket: SpillTicket) -> None:
        with self._lock:
            self._batches.pop(ticket.segment, None)

    def take_notes(self) -> list[str]:
        return []

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._batches.clear()

    @property
    def bytes_used(self) -> int:
        with self._lock:
            return self._used()

    def damage(self, ticket: SpillTicket, position: int) -> None:
        """Turns one bit of a spilled batch, as a failing disk would."""
        with self._lock:
            content = bytearray(self._batches[ticket.segment])
            content[position % len(content)] ^= 1
            self._batches[ticket.segment] = bytes(content)

    def _used(self) -> int:
        return sum(map(len, self._batches.values()))

    def _check_open(self) -> None:
        if self._closed:
            raise SpillFailed("the spill store is closed")
