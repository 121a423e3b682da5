"""A batch as one run of bytes: the one packed layout for spill files, pinned pages and the wire.

The bytes are an Arrow IPC stream of one batch: schema, dictionaries, batch, end. They describe themselves, so whoever
holds them needs no schema to read them. Neither packing nor unpacking copies a column: `pack` gives the pieces,
whoever stores them writes them one after the other, and `unpack` takes them back as one buffer.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyarrow import ipc


class _Pieces:
    """A file-like object that keeps what is written to it; for `pyarrow.PythonFile`, which asks for these names."""

    def __init__(self) -> None:
        self._pieces: list[pa.Buffer] = []
        self._small: list[bytes] = []
        self._length = 0
        self.closed = False

    def write(self, piece: bytes | pa.Buffer) -> int:
        if isinstance(piece, bytes):
            self._small.append(piece)
        else:
            self._join_small()
            self._pieces.append(piece)
        self._length += len(piece)
        return len(piece)

    def pieces(self) -> list[pa.Buffer]:
        self._join_small()
        return self._pieces

    def _join_small(self) -> None:
        if self._small:
            self._pieces.append(pa.py_buffer(b"".join(self._small)))
            self._small.clear()

    def tell(self) -> int:
        return self._length

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def pack(batch: pa.RecordBatch) -> list[pa.Buffer]:
    """The pieces of the packed batch, in order; columns are referred to, not copied. Of a slice only its own rows."""
    written = _Pieces()
    with ipc.new_stream(pa.PythonFile(written, mode="w"), batch.schema) as stream:
        stream.write_batch(batch)
    return written.pieces()


def pack_joined(batch: pa.RecordBatch) -> pa.Buffer:
    """The packed batch in one buffer; its columns are copied."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def packed_length(pieces: Sequence[pa.Buffer]) -> int:
    """Bytes of a packed batch."""
    return sum(map(len, pieces))


def unpack(packed: pa.Buffer) -> pa.RecordBatch:
    """The batch in the bytes of `pack`, without a copy: it keeps `packed` alive.

    The bytes must be intact: check their checksum first. Raises what pyarrow raises where they are not.
    """
    return ipc.open_stream(packed).read_next_batch()


def checksum(pieces: Iterable[pa.Buffer]) -> int:
    """CRC-32 of the pieces as one run of bytes, however it is cut; releases the GIL for large ones."""
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return value
