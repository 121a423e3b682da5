"""What a backend that writes spilled batches to files, and reads them, says of a run: its bytes and what they cost."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class Written(NamedTuple):
    """A run: its bytes, their checksum, the seconds that the file took, those of a processor that compressed, and how
    long that took: longer where processors were shared.
    """

    length: int
    checksum: int
    seconds: float = 0.0
    codec_seconds: float = 0.0
    codec_wall_seconds: float = 0.0


class Found(NamedTuple):
    """What a run holds, the checksum of its bytes, and seconds as in Written."""

    content: pa.Buffer
    checksum: int
    seconds: float = 0.0
    codec_seconds: float = 0.0


class Sample(NamedTuple):
    """What a part of some bytes shrank to, as a share, and processor seconds per byte."""

    share: float
    seconds: float
