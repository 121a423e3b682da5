"""What a task takes of memory while it runs, as far as its backend can tell."""

from __future__ import annotations

from typing import Protocol


class Meter(Protocol):
    """Measures what the kernels take of memory on the thread that calls it."""

    def start(self) -> None: ...

    def peak(self) -> int:
        """How much more they held since `start`, at the peak."""
        ...

    def rest(self) -> None:
        """The thread has ended a task. Where memory is short, it gives back what allocators keep for it."""
        ...


class Unmetered:
    """A backend of which nobody knows what it takes."""

    def start(self) -> None:
        """Nothing is measured."""

    def peak(self) -> int:
        return 0

    def rest(self) -> None:
        """Nothing is known to be kept."""
