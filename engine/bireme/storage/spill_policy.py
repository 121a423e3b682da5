"""Whether to compress what is spilled. Decides only: a backend's `spill_file.SpillFrames` compress, `spill` measures.

Rule: bytes are compressed where the disk saves more time, on their way down and up, than processors spend on them, and
only on processors that would stand idle. What both take is measured, not assumed, so that the same rule leaves a fast
disk alone and helps a slow one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from enum import Enum
from math import inf
from typing import Final, NamedTuple

from bireme.data.spill_run import Sample
from bireme.units import KIB, MIB

# Smaller batches wait for the disk's latency, which compression does not shorten.
_BATCH_BYTES_MIN: Final = 64 * KIB
# How much must have gone to the disk before its speed is known, and after how much old figures count half.
_KNOWN_BYTES_MIN: Final = 8 * MIB
_MEMORY_BYTES: Final = 256 * MIB
# A gain must be clear: neither figure is exact, and processors do not come back at once.
_GAIN_MIN: Final = 1.25
_IDLE_MIN: Final = 0.25
# Until batches have been expanded: LZ4 gives about 1 GB/s of columns on an old core.
_EXPAND_SECONDS_PER_BYTE: Final = 1e-9
# How soon it is forgotten that processors were shared, batch by batch.
_CROWD_KEPT: Final = 0.9
# An origin whose batches did not pay so many times is asked only now and then.
_MISSES_MAX: Final = 4
_ASKED_AGAIN: Final = 16
_ORIGINS_MAX: Final = 256


class Compression(Enum):
    """The setting."""

    AUTO = "auto"
    OFF = "off"
    LZ4 = "lz4"


class Verdict(Enum):
    """What was decided for a batch, in words for people."""

    COMPRESSED = "compressed"
    OFF = "compression is off"
    SMALL = "too small"
    UNMEASURED = "the speed of the disk is not known yet"
    BUSY = "no processor is idle"
    COSTS_MORE = "compressing would take longer than it saves"


class SpillHint(NamedTuple):
    """What the caller knows of a batch: where it comes from, and how many processors have nothing to do."""

    origin: Hashable = None
    idle: float = 0.0


NO_HINT: Final = SpillHint()


class Prices(NamedTuple):
    """Seconds per byte: of the disk, down and up; of a processor that expands. `idle` processors have nothing to do;
    a second of theirs takes `crowd` seconds, as others want them too.
    """

    disk: float
    expand: float
    idle: float
    crowd: float = 1.0

    def __str__(self) -> str:
        return f"a byte takes {self.disk * 1e9:.2f} ns of the disk down and up, and {self.idle:.1f} processors are idle"

    def pays(self, sample: Sample) -> bool:
        saved = (1 - sample.share) * self.disk
        spent = (sample.seconds + self.expand) * self.crowd / self.idle
        return saved > spent * _GAIN_MIN


# Whatever becomes shorter pays.
_ALWAYS: Final = Prices(inf, 0.0, 1.0)


class Rate:
    """Seconds per byte of a device that several threads wait for at once, each as long as its own bytes take.

    The seconds of a thread are shared among those that were there when it ended. Where some of them did other things
    meanwhile the device looks faster than it is, so that less is compressed: the side to err on.
    """

    def __init__(self) -> None:
        self._nbytes = 0
        self._seconds = 0.0
        self._active = 0

    def __repr__(self) -> str:
        return f"<Rate: {self._nbytes} bytes in {self._seconds:.3f} s, {self._active} active>"

    def start(self) -> None:
        self._active += 1

    def end(self, nbytes: int, seconds: float) -> None:
        """Both are 0 where the work failed."""
        self.add(nbytes, seconds / self._active)
        self._active -= 1

    def add(self, nbytes: int, seconds: float) -> None:
        self._nbytes += nbytes
        self._seconds += seconds
        if self._nbytes > _MEMORY_BYTES:
            self._nbytes //= 2
            self._seconds /= 2

    @property
    def seconds_per_byte(self) -> float | None:
        """None while too little was seen."""
        return self._seconds / self._nbytes if self._nbytes >= _KNOWN_BYTES_MIN else None


class CompressionPolicy:
    """Not locked: its store's lock guards it."""

    def __init__(self, mode: Compression) -> None:
        self.mode = mode
        self.writes = Rate()
        self.reads = Rate()
        self.expands = Rate()
        self._crowd = 1.0
        # How many batches of an origin did not pay, one after the other.
        self._misses: OrderedDict[Hashable, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<CompressionPolicy {self.mode.value}: writes {self.writes!r}, reads {self.reads!r}>"

    def prices(self, hint: SpillHint, length: int) -> Prices | Verdict:
        """What to weigh the samples of a batch of `length` bytes by; or why it is written as it is."""
        if self.mode is Compression.OFF:
            return Verdict.OFF
        if self.mode is Compression.LZ4:
            return _ALWAYS
        if length < _BATCH_BYTES_MIN:
            return Verdict.SMALL
        down = self.writes.seconds_per_byte
        if down is None:
            return Verdict.UNMEASURED
        if hint.idle < _IDLE_MIN:
            return Verdict.BUSY
        if not self._is_asked(hint.origin):
            return Verdict.COSTS_MORE
        up = self.reads.seconds_per_byte
        expand = self.expands.seconds_per_byte
        disk = down + (down if up is None else up)
        return Prices(disk, _EXPAND_SECONDS_PER_BYTE if expand is None else expand, hint.idle, self._crowd)

    def note_codec(self, seconds: float, wall_seconds: float) -> None:
        """What a processor took to compress a batch, and how long that took."""
        if seconds > 0:
            self._crowd += (max(1.0, wall_seconds / seconds) - self._crowd) * (1 - _CROWD_KEPT)

    def learn(self, origin: Hashable, *, paid: bool) -> None:
        """What the samples of a batch gave."""
        if not paid:
            self._crowd = 1 + (self._crowd - 1) * _CROWD_KEPT
        self._misses[origin] = 0 if paid else self._misses.get(origin, 0) + 1
        self._misses.move_to_end(origin)
        if len(self._misses) > _ORIGINS_MAX:
            self._misses.popitem(last=False)

    def _is_asked(self, origin: Hashable) -> bool:
        misses = self._misses.get(origin, 0)
        if misses < _MISSES_MAX or (misses - _MISSES_MAX) % _ASKED_AGAIN == _ASKED_AGAIN - 1:
            return True
        self._misses[origin] = misses + 1
        return False
