"""One folder that batches are spilled to: a store's own home in it, locked for as long as its process lives.

Rule: nothing outlives its process for long. Whoever opens a store removes homes without a living owner.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from bireme.errors import SpillFailed
from bireme.storage.spill_space import Segment, Space

_PREFIX: Final = "bireme-spill-"
_LOCK_SUFFIX: Final = ".lock"
_DIRECT: Final = getattr(os, "O_DIRECT", 0)


class SpillFolder:
    """A folder as one store uses it. The store's lock guards all but `open` and `failed`.

    `direct` is whether files are opened for direct IO; it ends where the file system turns out not to take that.
    `faults` counts the writes in a row that failed.
    """

    def __init__(self, root: Path, *, segment_bytes: int, direct: bool) -> None:
        self.root = root
        self.space = Space(segment_bytes)
        self.direct = direct and _DIRECT != 0
        self.faults = 0
        self.writing = 0
        self._home: Path | None = None
        self._owner: int | None = None
        remove_orphans(root)

    def __repr__(self) -> str:
        return f"<SpillFolder {str(self.root)!r}: {len(self.space.segments)} segments, direct: {self.direct}>"

    def prepare(self) -> None:
        """Makes and locks the home, the first time or where somebody has removed it; then what was in it is gone.

        Raises OSError.
        """
        if self._home is not None and not self._home.is_dir():
            self.close()
        if self._home is None:
            self._home, self._owner = _make_home(self.root)

    def path(self, segment: Segment) -> Path:
        return (self._home or self.root) / str(segment.number)

    def remove(self, segment: Segment) -> None:
        with contextlib.suppress(OSError):
            self.path(segment).unlink()

    def close(self) -> None:
        """Removes the home with all that is in it; idempotent. `prepare` makes another one."""
        home, owner = self._home, self._owner
        self._home = self._owner = None
        self.space.segments.clear()
        if home is None or owner is None:
            return
        with contextlib.suppress(OSError):
            if home.exists():
                _remove(home)
            # Only then: a folder that could not be removed keeps its lock file, by which it is found later.
            home.with_suffix(_LOCK_SUFFIX).unlink()
        os.close(owner)

    def open(self, path: Path, flags: int) -> tuple[int, bool]:
        """A descriptor, and whether it is for direct IO. Raises OSError."""
        if self.direct:
            try:
                return os.open(path, flags | os.O_CLOEXEC | _DIRECT, 0o600), True
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        return os.open(path, flags | os.O_CLOEXEC, 0o600), False

    def failed(self, what: str, error: OSError) -> SpillFailed:
        """What to tell the user about an error of this folder."""
        reason = os.strerror(error.errno) if error.errno else str(error)
        advice = "free some space there or" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable or"
        return SpillFailed(
            f"{what} the spill folder {str(self.root)!r}: {reason}; {advice} "
            "choose another folder (spill_folder, BIREME_SPILL_FOLDER)"
        )


def _remove(folder: Path, *, ignore_errors: bool = False) -> None:
    import shutil  # it loads the codecs of archives

    shutil.rmtree(folder, ignore_errors=ignore_errors)


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
        _remove(lock.with_suffix(""), ignore_errors=True)
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
        home = root / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
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
