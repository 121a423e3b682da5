"""How many bytes a sender may have under way. Pure: no sockets. The one authority on who may send how much.

Credit is receive space: the receiver reserves bytes first and then grants them, so a payload is only ever loaded when
there is a place for it. A batch larger than the usual window is asked for by its size and granted that.
"""

from __future__ import annotations

from bireme.errors import EngineBug


class SendCredit:
    """The sender's side of one flow."""

    __slots__ = ("_asked", "available")

    def __init__(self) -> None:
        self.available = 0
        self._asked = 0

    def __repr__(self) -> str:
        return f"<SendCredit: {self.available} B>"

    def granted(self, nbytes: int) -> None:
        self.available += nbytes
        self._asked = 0

    def covers(self, nbytes: int) -> bool:
        return nbytes <= self.available

    def ask(self, nbytes: int) -> bool:
        """Whether to ask the receiver for `nbytes` now; once per shortage."""
        if self.covers(nbytes) or self._asked >= nbytes:
            return False
        self._asked = nbytes
        return True

    def spend(self, nbytes: int) -> None:
        if nbytes > self.available:
            raise EngineBug(f"{nbytes} bytes were sent on a credit of {self.available}")
        self.available -= nbytes


class ReceiveCredit:
    """The receiver's side of one flow: what is granted and not yet used. `window` is what it usually keeps granted."""

    __slots__ = ("needed", "outstanding", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.outstanding = 0
        self.needed = 0

    def __repr__(self) -> str:
        return f"<ReceiveCredit: {self.outstanding} of {max(self.window, self.needed)} B granted>"

    def shortfall(self) -> int:
        """Bytes to reserve and grant next. While nobody waits and half of the window is granted, none: large grants are
        fewer messages.
        """
        if self.outstanding >= self.needed and 2 * self.outstanding > self.window:
            return 0
        return max(self.window, self.needed) - self.outstanding

    def want(self, nbytes: int) -> None:
        """The sender needs `nbytes` for its next batch."""
        self.needed = nbytes

    def grant(self, nbytes: int) -> None:
        self.outstanding += nbytes

    def use(self, nbytes: int) -> None:
        """A batch of `nbytes` came. Raises EngineBug where it was never granted."""
        if nbytes > self.outstanding:
            raise EngineBug(f"a peer sent {nbytes} bytes on a grant of {self.outstanding}")
        self.outstanding -= nbytes
        self.needed = 0
