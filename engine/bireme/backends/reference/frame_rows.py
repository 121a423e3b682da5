"""The rows of frames: arguments in window order, which rows count, and frames spelt out row by row.

Frames are rows of ends: low, high, and low, high again for each further part, ends exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.frames import Ordered
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Bools, bools, nulls_of
from bireme.plan.expr import WindowCall

_SPELT_ROWS_MAX: Final = 1 << 21


def argument(ordered: Ordered, call: WindowCall, index: int) -> pa.Array:
    """An argument of the call, in window order."""
    return ordered.sorted(ordered.scope.evaluate(call.call.args[index]))


def kept_of(ordered: Ordered, call: WindowCall) -> Bools:
    """Which places the filter of the call keeps."""
    if call.call.filter is None:
        return np.ones(len(ordered), np.bool_)
    return bools(ordered.sorted(ordered.scope.evaluate(call.call.filter)))


def valued(values: pa.Array, call: WindowCall) -> Bools:
    """The places that count where others are to be passed over."""
    return ~nulls_of(values) if call.ignore_nulls else np.ones(len(values), np.bool_)


def portions(frames: Rows) -> Iterator[Rows]:
    """Frames in portions of not too many rows in all."""
    sizes = np.cumsum((frames[:, 1::2] - frames[:, ::2]).sum(axis=1))
    start = 0
    while start < len(frames):
        before = sizes[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(sizes, before + _SPELT_ROWS_MAX, "right")))
        yield frames[start:stop]
        start = stop


def spelt_out(frames: Rows) -> tuple[Rows, Rows]:
    """For each row of each frame the number of the frame, and the row; in the order of rows within a frame."""
    lows, sizes = frames[:, ::2].reshape(-1), (frames[:, 1::2] - frames[:, ::2]).reshape(-1)
    ids = np.repeat(np.repeat(np.arange(len(frames)), frames.shape[1] // 2), sizes)
    rows = np.arange(len(ids)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(lows, sizes)
    return ids, rows
