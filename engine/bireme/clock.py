"""The only place that asks for the time.

Everything that needs it takes a `Clock`, so that the simulated loop can hand in its own.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that never run backwards; the zero point means nothing."""

    def now(self) -> float: ...


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()
