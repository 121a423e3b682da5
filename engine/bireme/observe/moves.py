"""What went from one tier to another: sums, for the statistics of a session and the profile of a query."""

from __future__ import annotations

from bireme.records import dataclass


@dataclass(slots=True)
class Moves:
    """Moves in one direction. `nbytes` are those in memory, `stored_bytes` those on the lower tier; `ahead_count` came
    up before anybody waited for them, and short ones, `joined_count`, went down as parts of longer ones. `seconds` are
    those of all moves, also where they ran side by side. Of what went to disk, `compressed_count` batches were
    compressed, in `compress_seconds` of processors.
    """

    count: int = 0
    nbytes: int = 0
    stored_bytes: int = 0
    seconds: float = 0.0
    ahead_count: int = 0
    joined_count: int = 0
    failed: int = 0
    compressed_count: int = 0
    compressed_bytes: int = 0
    compressed_stored_bytes: int = 0
    compress_seconds: float = 0.0

    def add(self, nbytes: int, stored_bytes: int, seconds: float, *, ahead: bool = False, pieces: int = 1) -> None:
        self.count += 1
        self.nbytes += nbytes
        self.stored_bytes += stored_bytes
        self.seconds += seconds
        self.ahead_count += ahead
        self.joined_count += pieces if pieces > 1 else 0

    def add_compressed(self, nbytes: int, stored_bytes: int, seconds: float) -> None:
        """Of what was added, a batch that was compressed."""
        self.compressed_count += 1
        self.compressed_bytes += nbytes
        self.compressed_stored_bytes += stored_bytes
        self.compress_seconds += seconds
