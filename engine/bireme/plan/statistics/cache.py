"""What was learned from samples, kept across queries: selectivities, distinct counts, moments.

Keys name the version of a table, so that nothing outlives a change of its data. Bounded: the oldest entry goes first.
"""

from __future__ import annotations

from typing import Any, Final

ENTRY_COUNT_MAX: Final = 4096


class StatisticsCache:
    """A bounded mapping. Safe to share between threads: every step is one dictionary operation."""

    def __init__(self, entry_count_max: int = ENTRY_COUNT_MAX) -> None:
        self._entry_count_max = entry_count_max
        self._entries: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Any) -> Any:
        """What is kept under `key`, or None."""
        return self._entries.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Keeps `value`, and forgets the oldest entries beyond the limit."""
        self._entries[key] = value
        while len(self._entries) > self._entry_count_max:
            try:
                self._entries.pop(next(iter(self._entries)), None)
            except (StopIteration, RuntimeError):  # another thread got there first
                return
