"""Ranged reads of local files.

Rule: a read gives exactly the bytes asked for, of the version that was planned with, or a StorageError. Which ranges
to read is decided in `byte_range` and by the sources; this module also says what identifies a file's content.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import pyarrow as pa

from bireme.errors import SourceChanged, SourceMissing, StorageError
from bireme.storage.base import ByteRange

_OPEN_FILES_MAX: Final = 64
# The page cache is asked at every so many bytes of a range: what it drops, it drops in runs.
_PROBE_BYTES: Final = 1 << 20
_TRUSTED_COUNT: Final = 8

# Reads ranges of an open file, given by offsets and lengths; None where the file ends before one of them does.
RangeReader = Callable[[int, Sequence[int], Sequence[int]], "list[pa.Buffer] | None"]


def file_version(status: os.stat_result) -> str:
    """Names the content of a file: another one after any write, and after the file was replaced."""
    return f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"


def translate(error: OSError, path: str) -> StorageError:
    """Says what went wrong with `path` in one of our errors."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return SourceMissing(f"there is no file {path!r}; check the path")
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageError(f"cannot read {path!r}: {reason}; give this user the right to read it")
    return StorageError(f"cannot read {path!r}: {reason}")


class _OpenFile:
    """A descriptor with the number of reads that use it; closed when it is neither cached nor used."""

    __slots__ = ("cached", "descriptor", "resident_count", "users")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.users = 1
        self.resident_count = 0
        self.cached = True


class LocalByteSource:
    """Reads local files through a bounded number of open descriptors. Any thread.

    `reader` is how bytes come into memory: into fresh buffers, unless a backend has better ones.
    """

    def __init__(self, *, open_files_max: int = _OPEN_FILES_MAX, reader: RangeReader | None = None) -> None:
        self._open_files_max = open_files_max
        self._reader = reader or read_ranges
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _OpenFile] = OrderedDict()
        self._closed = False

    def read(self, byte_range: ByteRange) -> pa.Buffer:
        """One range; see `read_all`."""
        return self.read_all((byte_range,))[0]

    def read_all(self, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        """Exactly the bytes asked for; SourceMissing, SourceChanged or StorageError otherwise."""
        found: list[pa.Buffer] = []
        for (path, version), wanted in groupby(ranges, key=attrgetter("path", "version")):
            found += self._read_file(path, version, list(wanted))
        return found

    def _read_file(self, path: str, version: str, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        offsets, lengths = [one.offset for one in ranges], [one.length for one in ranges]
        try:
            # A descriptor that was open may be that of a file that has been replaced; another one tells.
            found = self._read_once(path, version, offsets, lengths)
            if found is None:
                found = self._read_once(path, version, offsets, lengths)
        except OSError as error:
            raise translate(error, path) from error
        if found is None:
            raise _changed(path)
        return found

    def _read_once(
        self, path: str, version: str, offsets: Sequence[int], lengths: Sequence[int]
    ) -> list[pa.Buffer] | None:
        """The bytes; None where the open file is not, or no longer, the planned one, which is then open no more."""
        file = self._acquire(path)
        try:
            content = self._reader(file.descriptor, offsets, lengths)
            # Asked afterwards, since somebody may have written to it while it was read.
            if content is not None and _is_version(file, version):
                return content
            with self._lock:
                if self._files.get(path) is file:
                    self._forget(path)
            return None
        finally:
            self._release(file)

    def is_resident(self, ranges: Sequence[ByteRange]) -> bool:
        """Whether the page cache seems to have all of the bytes. Of files that are not open it is not known; of those
        that had all of them some times in a row only the last range is asked for.
        """
        for path, wanted in groupby(ranges, key=attrgetter("path")):
            file = self._acquire_open(path)
            if file is None:
                return False
            try:
                found = list(wanted)
                # Each question lets other threads have the interpreter, and takes as long to get it back.
                asked = found[-1:] if file.resident_count >= _TRUSTED_COUNT else found
                file.resident_count = file.resident_count + 1 if _are_cached(file.descriptor, asked) else 0
                if not file.resident_count:
                    return False
            finally:
                self._release(file)
        return True

    def __enter__(self) -> LocalByteSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every file, at the latest when the reads under way are done. Reads afterwards fail."""
        with self._lock:
            self._closed = True
            for path in list(self._files):
                self._forget(path)

    def _acquire_open(self, path: str) -> _OpenFile | None:
        with self._lock:
            if self._closed:
                raise StorageError(f"cannot read {path!r}: the session is closed")
            file = self._files.get(path)
            if file is not None:
                self._files.move_to_end(path)
                file.users += 1
            return file

    def _acquire(self, path: str) -> _OpenFile:
        file = self._acquire_open(path)
        if file is not None:
            return file
        opened = _OpenFile(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
        with self._lock:
            if self._closed or path in self._files:
                opened.cached = False
                return opened
            self._files[path] = opened
            while len(self._files) > self._open_files_max:
                self._forget(next(iter(self._files)))
            return opened

    def _release(self, file: _OpenFile) -> None:
        with self._lock:
            file.users -= 1
            if file.users == 0 and not file.cached:
                os.close(file.descriptor)

    def _forget(self, path: str) -> None:
        """Takes a file out of the cache; with the lock held."""
        file = self._files.pop(path, None)
        if file is None:
            return
        file.cached = False
        if file.users == 0:
            os.close(file.descriptor)


def _is_version(file: _OpenFile, version: str) -> bool:
    return version == "" or file_version(os.fstat(file.descriptor)) == version


def _changed(path: str) -> SourceChanged:
    return SourceChanged(f"{path!r} changed while the query was reading it; run the query again")


def _are_cached(descriptor: int, ranges: Iterable[ByteRange]) -> bool:
    """Asks the page cache for a byte here and there; a system that cannot tell counts as not having it."""
    if not hasattr(os, "RWF_NOWAIT"):
        return False
    probe = [bytearray(1)]
    try:
        for wanted in ranges:
            for place in range(wanted.end - 1, wanted.offset - 1, -_PROBE_BYTES):
                if not os.preadv(descriptor, probe, place, os.RWF_NOWAIT):
                    return False
    except OSError:
        return False
    return True


def read_ranges(descriptor: int, offsets: Sequence[int], lengths: Sequence[int]) -> list[pa.Buffer] | None:
    """The plain `RangeReader`."""
    found: list[pa.Buffer] = []
    for offset, length in zip(offsets, lengths, strict=True):
        buffer = pa.allocate_buffer(length)
        view = memoryview(buffer).cast("B")
        done = 0
        while done < length:
            count = os.preadv(descriptor, [view[done:]], offset + done)
            if count == 0:
                return None
            done += count
        found.append(buffer)
    return found
