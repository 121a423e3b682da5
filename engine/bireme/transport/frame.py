"""Messages between workers to bytes and back. Pure: no sockets.

One kind of frame carries everything: a fixed header, then the payload, if any. The header has its own checksum and the
payload's, so that a damaged or foreign byte stream is seen at once instead of being read as rows.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from bireme.data.ids import EdgeId, QueryId
from bireme.errors import BiremeError

_MAGIC: Final = 0xB1_4E_3E_01
# magic, kind, query, edge, producer, partition, sequence, rows, amount, length, payload checksum, header checksum
_HEADER: Final = struct.Struct("<IB3xQIIIQQQQII")
HEADER_BYTES: Final = _HEADER.size
PAYLOAD_BYTES_MAX: Final = 1 << 32


class FrameDamaged(BiremeError):
    """Bytes that are no frame; a transport reports the peer that sent them as lost."""


class FrameKind(IntEnum):
    """What a frame says. `amount` is its number of bytes.

    To the sender of a flow, GRANT: `amount` more bytes of receive space are reserved for you. STOP: I take no more; the
    payload says why. To its receiver, WANT: the next batch needs `amount` bytes of space in all. BATCH: here is one, of
    `amount` bytes in memory. END: no more will come. FAIL: nor will it, because of an error, whose text is the payload.
    """

    GRANT = 1
    STOP = 2
    WANT = 3
    BATCH = 4
    END = 5
    FAIL = 6

    @property
    def to_sender(self) -> bool:
        return self <= FrameKind.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message about one flow: an edge of a query, from one producer on another worker."""

    kind: FrameKind
    query: QueryId
    edge: EdgeId
    producer: int
    partition: int = 0
    sequence: int = 0
    rows: int = 0
    amount: int = 0
    payload: bytes | memoryview = b""


def encode(frame: Frame) -> tuple[bytes, bytes | memoryview]:
    """Header and payload, to be sent one after the other; the payload is not copied."""
    payload = frame.payload
    fields = (
        _MAGIC, frame.kind, frame.query, frame.edge, frame.producer, frame.partition, frame.sequence, frame.rows,
        frame.amount, len(payload), zlib.crc32(payload),
    )  # fmt: skip
    header = _HEADER.pack(*fields, 0)
    return header[:-4] + struct.pack("<I", zlib.crc32(header[:-4])), payload


def decode_header(header: bytes | memoryview) -> tuple[Frame, int, int]:
    """A frame without its payload, and the payload's length and checksum. Raises FrameDamaged."""
    fields = _HEADER.unpack(header)
    if fields[0] != _MAGIC:
        raise FrameDamaged("what came is not a frame of this engine, or of another version of it")
    if zlib.crc32(header[:-4]) != fields[-1]:
        raise FrameDamaged("the header of a frame does not match its checksum")
    _, kind, query, edge, producer, partition, sequence, rows, amount, length, checksum, _ = fields
    if length > PAYLOAD_BYTES_MAX:
        raise FrameDamaged(f"a frame claims {length} bytes; the most is {PAYLOAD_BYTES_MAX}")
    try:
        known = FrameKind(kind)
    except ValueError:
        raise FrameDamaged(f"a frame of unknown kind {kind}") from None
    frame = Frame(
        kind=known,
        query=QueryId(query),
        edge=EdgeId(edge),
        producer=producer,
        partition=partition,
        sequence=sequence,
        rows=rows,
        amount=amount,
    )
    return frame, length, checksum


def with_payload(frame: Frame, payload: bytes | memoryview, checksum: int) -> Frame:
    """The whole frame. Raises FrameDamaged where the payload does not match."""
    if zlib.crc32(payload) != checksum:
        raise FrameDamaged("the payload of a frame does not match its checksum")
    return replace(frame, payload=payload) if len(payload) else frame


class FrameReader:
    """Frames from a stream of bytes that comes in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[Frame, int, int] | None = None

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet; at the end of a stream there must be none."""
        return len(self._buffer) + (HEADER_BYTES if self._head is not None else 0)

    def feed(self, data: bytes | memoryview) -> Iterator[Frame]:
        """The frames that `data` completes. Raises FrameDamaged; the stream is lost then."""
        self._buffer += data
        while True:
            if self._head is None:
                if len(self._buffer) < HEADER_BYTES:
                    return
                self._head = decode_header(bytes(self._buffer[:HEADER_BYTES]))
                del self._buffer[:HEADER_BYTES]
            frame, length, checksum = self._head
            if len(self._buffer) < length:
                return
            payload = bytes(self._buffer[:length])
            del self._buffer[:length]
            self._head = None
            yield with_payload(frame, payload, checksum)
