"""Spilled batches to files and back from aligned, pooled memory, so that direct IO is possible, checksummed on the way.

It is a `storage.spill_file.SpillFiles`: the session gives it to the spill store.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bireme.backends.native import _kernels


class NativeSpillFiles:
    """Writes through a buffer of a megabyte a call; reads into the memory that the batch then lives in."""

    direct = True

    def set_aside(self, descriptor: int, length: int) -> None:
        _kernels.set_aside(descriptor, length)

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> int:
        return _kernels.write_run(descriptor, offset, pieces)

    def read(self, descriptor: int, offset: int, length: int) -> tuple[pa.Buffer, int] | None:
        found = _kernels.read_run(descriptor, offset, length)
        return None if found is None else (pa.py_buffer(found[0]), found[1])
