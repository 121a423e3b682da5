"""The spill store on local files.

Rule: what is written is checksummed, what cannot be written leaves nothing behind, and nothing outlives its process for
long: a store's folder is locked while its process lives, and whoever opens a store next to it removes folders without
a living owner. The packed layout is in `data.packed`.

Batches are appended to segment files. A segment goes when its last batch is dropped; until then dropped batches
inside it still take room on disk, which is why segments are small and `bytes_used` counts whole segments.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from bireme.data.packed import checksum, pack, packed_length, unpack
from bireme.errors import SpillCorrupt, SpillFailed
from bireme.storage.base import SpillTicket
from bireme.units import MIB, format_bytes

_PREFIX: Final = "bireme-spill-"
_LOCK_SUFFIX: Final = ".lock"
_PIECES_A_CALL: Final = 512  # IOV_MAX is 1024 on Linux
SEGMENT_BYTES: Final = 64 * MIB


@dataclass(slots=True)
class _Segment:
    """A file: bytes appended, batches that live in it, and writes under way."""

    number: int
    size: int = 0
    live: int = 0
    writing: int = 0


class LocalSpillStore:
    """Keeps packed batches in files of an own folder below `folder`, at most `bytes_max` of them. Any thread.

    The folder comes into being with the first write.
    """

    def __init__(self, folder: Path, *, bytes_max: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._root = Path(folder)
        self._bytes_max = bytes_max
        self._segment_bytes = segment_bytes
        self._lock = threading.Lock()
        self._home: Path | None = None
        self._owner: int | None = None
        self._segments: dict[int, _Segment] = {}
        self._next_segment = 0
        self._closed = False
        remove_orphans(self._root)

    def write(self, batch: pa.RecordBatch) -> SpillTicket:
        pieces = pack(batch)
        length = packed_length(pieces)
        segment, offset, path = self._reserve(length)
        try:
            _write_all(path, offset, pieces)
        except OSError as error:
            self._give_back(segment, offset, length, path)
            raise self._failed(f"cannot write {format_bytes(length)} to", error) from error
        except BaseException:
            self._give_back(segment, offset, length, path)
            raise
        with self._lock:
            segment.writing -= 1
            segment.live += 1
        return SpillTicket(segment.number, offset, length, checksum(pieces))

    def read(self, ticket: SpillTicket) -> pa.RecordBatch:
        with self._lock:
            path = self._path_of(ticket.segment)
        try:
            packed = _read_all(path, ticket)
        except OSError as error:
            raise self._failed("cannot read a spilled batch from", error) from error
        if len(packed) != ticket.length or checksum([packed]) != ticket.checksum:
            raise SpillCorrupt(
                f"a spilled batch in {str(path)!r} no longer matches its checksum; check the disk and run it again"
            )
        return unpack(packed)

    def drop(self, ticket: SpillTicket) -> None:
        """Forgets a batch; dropping after `close` does nothing."""
        with self._lock:
            segment = self._segments.get(ticket.segment)
            if segment is None:
                return
            segment.live -= 1
            self._remove_if_empty(segment)

    def close(self) -> None:
        """Drops everything and removes the store's own folder; idempotent."""
        with self._lock:
            self._closed = True
            self._segments.clear()
            home, owner = self._home, self._owner
            self._home = self._owner = None
        if home is None or owner is None:
            return
        with contextlib.suppress(OSError):
            shutil.rmtree(home)
            # Only then: a folder that could not be removed keeps its lock file, by which it is found later.
            home.with_suffix(_LOCK_SUFFIX).unlink()
        os.close(owner)

    @property
    def bytes_used(self) -> int:
        """Bytes of all segments, those of dropped batches in them included."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        return sum(segment.size for segment in self._segments.values())

    def _reserve(self, length: int) -> tuple[_Segment, int, Path]:
        """Room for a write at the end of a segment."""
        with self._lock:
            if self._closed:
                raise SpillFailed("the spill store is closed")
            used = self._used()
            if used + length > self._bytes_max:
                raise SpillFailed(
                    f"spilling {format_bytes(length)} more would pass the limit of {format_bytes(self._bytes_max)}, "
                    f"{format_bytes(used)} are in use in {str(self._root)!r}; raise the limit or allow more memory"
                )
            home = self._own_folder()
            segment = self._segments.get(self._next_segment - 1)
            if segment is None or (segment.size and segment.size + length > self._segment_bytes):
                segment = _Segment(self._next_segment)
                self._segments[segment.number] = segment
                self._next_segment += 1
            offset = segment.size
            segment.size += length
            segment.writing += 1
            return segment, offset, home / str(segment.number)

    def _give_back(self, segment: _Segment, offset: int, length: int, path: Path) -> None:
        """Undoes `_reserve` after a write that failed: a hole stays only where another write already follows it."""
        with self._lock:
            segment.writing -= 1
            if segment.size == offset + length:
                segment.size = offset
                with contextlib.suppress(OSError):
                    os.truncate(path, offset)
            self._remove_if_empty(segment)

    def _remove_if_empty(self, segment: _Segment) -> None:
        """With the lock held."""
        if segment.live or segment.writing or self._home is None:
            return
        self._segments.pop(segment.number, None)
        with contextlib.suppress(OSError):
            (self._home / str(segment.number)).unlink()

    def _path_of(self, number: int) -> Path:
        if self._closed:
            raise SpillFailed("the spill store is closed")
        if number not in self._segments or self._home is None:
            raise SpillFailed("a spilled batch is gone: it was dropped, or another store wrote it")
        return self._home / str(number)

    def _own_folder(self) -> Path:
        """This store's folder, made and locked at the first call; with the lock held."""
        if self._home is None:
            try:
                self._home, self._owner = _make_home(self._root)
            except OSError as error:
                raise self._failed("cannot make a spill folder in", error) from error
        return self._home

    def _failed(self, what: str, error: OSError) -> SpillFailed:
        reason = os.strerror(error.errno) if error.errno else str(error)
        advice = "free some space there or" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable or"
        return SpillFailed(
            f"{what} the spill folder {str(self._root)!r}: {reason}; {advice} "
            "choose another folder (BIREME_SPILL_FOLDER)"
        )


def remove_orphans(root: Path) -> None:
    """Removes the folders of stores whose process is gone. What cannot be removed stays; that is no error."""
    try:
        locks = sorted(root.glob(f"{_PREFIX}*{_LOCK_SUFFIX}"))
    except OSError:
        return
    for lock in locks:
        with contextlib.suppress(OSError):
            _remove_if_orphan(lock)


def _remove_if_orphan(lock: Path) -> None:
    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
        lock.unlink()
    except BlockingIOError:
        return  # its owner lives
    finally:
        os.close(descriptor)


def _make_home(root: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that holds its lock.

    The lock comes first, so that no folder is ever without one. Between making the lock file and locking it another
    process may take it for an orphan's; then it is gone, or locked by that process, and a new name is tried.
    """
    root.mkdir(parents=True, exist_ok=True)
    while True:
        home = root / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock = home.with_suffix(_LOCK_SUFFIX)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if _holds(descriptor, lock):
                home.mkdir(mode=0o700)
                return home, descriptor
        except BaseException:
            with contextlib.suppress(OSError):
                lock.unlink()
            os.close(descriptor)
            raise
        os.close(descriptor)


def _holds(descriptor: int, lock: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == lock.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _write_all(path: Path, offset: int, pieces: Sequence[pa.Buffer]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        views = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        while views:
            written = os.pwritev(descriptor, views[:_PIECES_A_CALL], offset)
            offset += written
            views = _after(views, written)
    finally:
        os.close(descriptor)


def _after(views: list[memoryview], written: int) -> list[memoryview]:
    """What is left to write of `views` after their first `written` bytes."""
    for index, view in enumerate(views):
        if written < len(view):
            return [view[written:], *views[index + 1 :]]
        written -= len(view)
    return []


def _read_all(path: Path, ticket: SpillTicket) -> pa.Buffer:
    """The bytes of a ticket; fewer where the file is shorter."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        packed = pa.allocate_buffer(ticket.length)
        view = memoryview(packed).cast("B")
        done = 0
        while done < ticket.length:
            count = os.preadv(descriptor, [view[done:]], ticket.offset + done)
            if count == 0:
                return packed.slice(0, done)
            done += count
        return packed
    finally:
        os.close(descriptor)
