"""Spilled batches to files and back from aligned, pooled memory, so that direct IO is possible, checksummed on the way.

It is a `storage.spill_file.SpillFiles`: the session gives it to the spill store. All of a batch is one call, so that IO
threads wait for the interpreter's lock once a batch, not once a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.native import _kernels
from bireme.data.spill_run import Found, Sample, Written
from bireme.units import MIB

_CALL_BYTES: Final = 4 * MIB


class NativeSpillFrames:
    """LZ4."""

    def sample(self, pieces: Sequence[pa.Buffer]) -> list[Sample]:
        return [Sample(*one) for one in _kernels.sample_pieces(pieces)]

    def length_max(self, pieces: Sequence[pa.Buffer]) -> int:
        heads = sum([len(piece) // _kernels.FRAME_BYTES + 1 for piece in pieces])
        return sum(map(len, pieces)) + heads * _kernels.FRAME_HEAD_BYTES

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer], chosen: Sequence[bool]) -> Written:
        return Written(*_kernels.write_frames(descriptor, offset, pieces, chosen))

    def read(self, descriptor: int, offset: int, length: int, content_length: int) -> Found | None:
        found = _kernels.read_frames(descriptor, offset, length, content_length)
        return None if found is None else Found(pa.py_buffer(found[0]), *found[1:])


class NativeSpillFiles:
    """Writes through a buffer of four megabytes a call; reads into the memory that the batch then lives in."""

    direct = True
    scratch_bytes = _CALL_BYTES + 2 * _kernels.FRAME_BYTES
    frames = NativeSpillFrames()

    def set_aside(self, descriptor: int, length: int) -> None:
        _kernels.set_aside(descriptor, length)

    def write(self, descriptor: int, offset: int, pieces: Sequence[pa.Buffer]) -> Written:
        return Written(sum(map(len, pieces)), *_kernels.write_run(descriptor, offset, pieces))

    def read(self, descriptor: int, offset: int, length: int) -> Found | None:
        found = _kernels.read_run(descriptor, offset, length)
        return None if found is None else Found(pa.py_buffer(found[0]), *found[1:])
