"""Codecs of Parquet pages that C++ has no kernel for, through pyarrow."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

# Numbers of parquet.thrift. Number 5, the LZ4 of old writers, is framed in ways that only pyarrow's own reader knows.
_NAMES: Final = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


def decompress(codec: int, data: memoryview, size: int) -> pa.Buffer:
    """The `size` bytes that `data` stands for; raises what pyarrow raises where it does not stand for so many."""
    return pa.Codec(_NAMES[codec]).decompress(data, size)
