"""What kernels ask before they take much memory that nobody reserved: for what they make of values whose sizes show
only then.

Who counts the memory of the process answers; C++ asks the pool of its buffers instead, which is told the same limits.
"""

from __future__ import annotations

from collections.abc import Callable

from bireme.errors import TooMuchAtOnce
from bireme.units import format_bytes

# Whether so many more bytes may be taken.
MayHave = Callable[[int], bool]

_counters: list[MayHave] = []


def count_by(may_have: MayHave) -> None:
    """From here on `may_have` is asked, too."""
    _counters.append(may_have)


def count_no_more(may_have: MayHave) -> None:
    """It is asked no more; nothing happens where it never was."""
    if may_have in _counters:
        _counters.remove(may_have)


def ask(nbytes: int, what: str) -> None:
    """Raises TooMuchAtOnce where nobody who counts has so many bytes to spare for `what`."""
    if _counters and not any(may_have(nbytes) for may_have in tuple(_counters)):
        raise TooMuchAtOnce(f"{what} of some rows take {format_bytes(nbytes)}, and there is no room for it")
