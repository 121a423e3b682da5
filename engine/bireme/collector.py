"""The garbage collector at rest, for a few milliseconds in which much is made and nothing is garbage.

Planning a query makes thousands of small objects that all live to its end; the collector would walk them again and
again meanwhile. Whoever finds it at work puts it back to work, so with several threads it is never left at rest; one
of them may just see it return early.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No collections by this process until the end, if it makes any."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
