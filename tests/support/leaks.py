"""Nothing left behind: what a test may not leave when it ends.

`watched()` notes what is there before a test and complains about what is new after it: threads of ours, open files,
and reservations in any ledger that was made meanwhile. Things that live longer than the test (a session shared by a
module) are there before and so not new. `tests/conftest.py` puts it around every test.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bireme.data.tier import Tier
from bireme.runtime.memory import ledger as ledgers

_FOLDER = Path("/proc/self/fd")


class Ledgers:
    """Every ledger that is still alive, known by standing in the way of its constructor."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[ledgers.Ledger] = weakref.WeakSet()
        self._original = ledgers.Ledger.__init__

    def watch(self) -> None:
        original, alive = self._original, self.alive

        def remembered(ledger: ledgers.Ledger, *args: object, **kwargs: object) -> None:
            original(ledger, *args, **kwargs)  # type: ignore[arg-type]
            alive.add(ledger)

        ledgers.Ledger.__init__ = remembered  # type: ignore[method-assign]

    def complaints(self) -> list[str]:
        return [
            f"{ledger!r} still holds reservations"
            for ledger in tuple(self.alive)
            if ledger.live or any(ledger.totals[tier] for tier in Tier)
        ]


def open_files() -> dict[str, str]:
    """Open descriptors of regular files; sockets and pipes belong to whichever library made them."""
    if not _FOLDER.exists():
        return {}
    found = {}
    for link in _FOLDER.iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("/") and not target.startswith(("/dev/", "/proc/")):
            found[link.name] = target
    return found


def our_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("bireme")}


def new_since(files: dict[str, str], threads: set[str], of_interest: Callable[[str], bool]) -> list[str]:
    """Complaints about what is there now and was not there then."""
    complaints = [f"thread {name} still runs" for name in sorted(our_threads() - threads)]
    for number, target in open_files().items():
        if files.get(number) != target and of_interest(target):
            complaints.append(f"{target} is still open")
    return complaints


def _ours(target: str) -> bool:
    # Libraries keep shared objects and databases open for reasons of theirs, and a session that several tests share
    # keeps the files that it has read.
    return "spill" in target or target.endswith((".arrow", ".partial"))


@contextmanager
def watched(known: Ledgers) -> Iterator[None]:
    """Raises AssertionError for whatever its block leaves behind."""
    files, threads = open_files(), our_threads()
    yield
    complaints = new_since(files, threads, _ours) + known.complaints()
    if complaints:
        # What only waits for the garbage collector is not a leak.
        gc.collect()
        complaints = new_since(files, threads, _ours) + known.complaints()
    assert not complaints, "; ".join(complaints)
