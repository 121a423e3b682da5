"""How many rows of a stream are paired with build rows at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

# Pairs are made for at most about this many at once, so that a probe with many matches a row stays bounded. How many
# matches a row has shows in the first pieces, which are small for that.
PAIRS_MAX: Final = 1_048_576
_STREAM_ROWS_FIRST: Final = 64
_STREAM_ROWS_MAX: Final = 131_072
_GROWTH: Final = 8


def rows_against_all(build_rows: int) -> int:
    """How many rows to take where each is paired with so many."""
    return max(1, PAIRS_MAX // max(1, build_rows))


class StepRows:
    """How many rows to take next, by the matches of those before."""

    def __init__(self) -> None:
        self.count = _STREAM_ROWS_FIRST

    def adapt(self, rows: int, pairs: int) -> None:
        """So many rows had so many matches."""
        fitting = rows * PAIRS_MAX // max(1, pairs)
        if fitting < rows or rows >= self.count:
            self.count = max(1, min(fitting, rows * _GROWTH, _STREAM_ROWS_MAX))
