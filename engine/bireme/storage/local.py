"""Ranged reads of local files.

Rule: a read gives exactly the bytes asked for, of the version that was planned with, or a StorageError. Which ranges
to read is decided in `byte_range` and by the sources; this module also says what identifies a file's content.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from typing import Final

import pyarrow as pa

from bireme.errors import SourceChanged, SourceMissing, StorageError
from bireme.storage.base import ByteRange

_OPEN_FILES_MAX: Final = 64


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

    __slots__ = ("cached", "descriptor", "users")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.users = 1
        self.cached = True


class LocalByteSource:
    """Reads local files through a bounded number of open descriptors. Any thread."""

    def __init__(self, *, open_files_max: int = _OPEN_FILES_MAX) -> None:
        self._open_files_max = open_files_max
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _OpenFile] = OrderedDict()
        self._closed = False

    def read(self, byte_range: ByteRange) -> pa.Buffer:
        """Exactly the bytes asked for; SourceMissing, SourceChanged or StorageError otherwise."""
        try:
            file = self._checked(byte_range)
        except OSError as error:
            raise translate(error, byte_range.path) from error
        try:
            content = _read_exactly(file.descriptor, byte_range)
            # Once more: somebody may have written to it in the meantime.
            if not _is_version(file, byte_range.version):
                raise _changed(byte_range.path)
            return content
        except OSError as error:
            raise translate(error, byte_range.path) from error
        finally:
            self._release(file)

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

    def _checked(self, byte_range: ByteRange) -> _OpenFile:
        """An open file whose content is the planned one; a cached descriptor may be that of a replaced file."""
        file = self._acquire(byte_range.path)
        if _is_version(file, byte_range.version):
            return file
        self._release(file)
        with self._lock:
            self._forget(byte_range.path)
        file = self._acquire(byte_range.path)
        if _is_version(file, byte_range.version):
            return file
        self._release(file)
        raise _changed(byte_range.path)

    def _acquire(self, path: str) -> _OpenFile:
        with self._lock:
            if self._closed:
                raise StorageError(f"cannot read {path!r}: the session is closed")
            file = self._files.get(path)
            if file is not None:
                self._files.move_to_end(path)
                file.users += 1
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


def _read_exactly(descriptor: int, byte_range: ByteRange) -> pa.Buffer:
    buffer = pa.allocate_buffer(byte_range.length)
    view = memoryview(buffer).cast("B")
    done = 0
    while done < byte_range.length:
        count = os.preadv(descriptor, [view[done:]], byte_range.offset + done)
        if count == 0:
            raise _changed(byte_range.path)
        done += count
    return buffer
