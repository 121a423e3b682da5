"""Reading ranges of an open file into the memory that kernels use again and again.

It is a `storage.local.RangeReader`: the session gives it to the source of local files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bireme.backends.native import _kernels


def read_ranges(descriptor: int, offsets: Sequence[int], lengths: Sequence[int]) -> list[pa.Buffer] | None:
    """The ranges, a buffer each; None where the file ends before one of them does. Raises OSError."""
    found = _kernels.read_ranges(descriptor, offsets, lengths)
    return None if found is None else [pa.py_buffer(each) for each in found]
