"""What memory this process may use: the machine's, or less where a control group or a limit of the process says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_STATM: Final = "/proc/self/statm"
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_GROUPS: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
# By the controllers named in a line of the membership: none for the one hierarchy of version 2.
_LIMIT_FILES: Final = {"": ("memory.max", "memory.high"), "memory": ("memory.limit_in_bytes",)}


def memory_bytes(groups: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """The least of what the machine has and of what the process's control groups, and those above them, allow."""
    total = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_group_limits(groups, membership)])


def resident_bytes() -> int:
    """What of this process is in memory now; 0 where the system does not tell."""
    try:
        descriptor = os.open(_STATM, os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, 100).split()[1]) * _PAGE_BYTES
    finally:
        os.close(descriptor)


def _group_limits(groups: Path, membership: Path) -> Iterator[int]:
    for controller, path in _memberships(membership):
        root = groups / controller
        # In a container its own group may be mounted as the root, and then the path leads nowhere below it.
        for place in (PurePosixPath(path), *PurePosixPath(path).parents):
            for name in _LIMIT_FILES[controller]:
                limit = _number_in(root / str(place).lstrip("/") / name)
                if limit is not None:
                    yield limit


def _memberships(membership: Path) -> Iterator[tuple[str, str]]:
    """The hierarchies that can limit memory, and the process's group in each: lines of `number:controllers:path`."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if controller in _LIMIT_FILES:
                yield controller, path


def _number_in(path: Path) -> int | None:
    """The number in a file; None where there is no such file, or it says "max"."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
