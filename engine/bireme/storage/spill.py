"""The spill store on local files.

Rule: what is written is checksummed, and what cannot be written leaves nothing behind. Batches go to several folders in
turn, so that their disks work side by side; a folder that takes no more is passed over, and only when none takes a
batch has the write failed. The packed layout is in `data.packed`, where batches lie in the segment files in
`spill_space`, how bytes get there in `spill_file`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from bireme.data.packed import pack, packed_length, unpack
from bireme.data.spill_run import Found, Written
from bireme.errors import SpillCorrupt, SpillFailed
from bireme.storage.base import SpillTicket
from bireme.storage.spill_file import PlainSpillFiles, SpillFiles
from bireme.storage.spill_folder import SpillFolder
from bireme.storage.spill_policy import NO_HINT, Compression, CompressionPolicy, SpillHint, Verdict
from bireme.storage.spill_space import Segment, in_blocks
from bireme.units import MIB, format_bytes

SEGMENT_BYTES: Final = 64 * MIB


@dataclass(frozen=True, slots=True)
class _Parcel:
    """What is to be written: `length` bytes of pieces, those that are `chosen` compressed."""

    pieces: Sequence[pa.Buffer]
    length: int
    length_max: int
    verdict: Verdict
    chosen: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a write goes."""

    folder: SpillFolder
    segment: Segment
    offset: int
    room: int
    path: Path
    is_new: bool


class LocalSpillStore:
    """Keeps packed batches in files of own folders below `folders`, at most `bytes_max` of them on disk. Any thread.

    The own folders come into being with the first write. `direct` asks for direct IO, if `files` can give it.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        bytes_max: int,
        segment_bytes: int = SEGMENT_BYTES,
        files: SpillFiles | None = None,
        direct: bool = True,
        compression: Compression = Compression.AUTO,
    ) -> None:
        self._bytes_max = bytes_max
        self._set_aside_bytes = min(segment_bytes, bytes_max)
        self._files = files or PlainSpillFiles()
        direct = direct and self._files.direct
        self._folders = [SpillFolder(Path(one), segment_bytes=segment_bytes, direct=direct) for one in folders]
        self._frames = self._files.frames
        self._policy = CompressionPolicy(Compression.OFF if self._frames is None else compression)
        self._compresses = compression is Compression.LZ4
        self.scratch_bytes = self._files.scratch_bytes
        self._lock = threading.Lock()
        self._owners: dict[int, SpillFolder] = {}
        self._next_segment = 0
        self._next_folder = 0
        self._closed = False
        self._notes: list[str] = []

    def write(self, batch: pa.RecordBatch, hint: SpillHint = NO_HINT) -> SpillTicket:
        parcel = self._packed(batch, hint)
        fault: SpillFailed | None = None
        for folder in self._in_turn():
            try:
                return self._write_to(folder, parcel)
            except OSError as error:
                fault = self._fault(folder, parcel.length, error)
        raise fault or SpillFailed("there is no folder to spill to")

    def read(self, ticket: SpillTicket) -> pa.RecordBatch:
        with self._lock:
            folder, path = self._found(ticket)
            self._policy.reads.start()
        found: Found | None = None
        try:
            descriptor, _ = folder.open(path, os.O_RDONLY)
            try:
                found = self._fetched(descriptor, ticket)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise folder.failed("cannot read a spilled batch from", error) from error
        finally:
            self._note_read(ticket, found)
        if found is None or found.checksum != ticket.checksum:
            raise SpillCorrupt(
                f"a spilled batch in {str(path)!r} no longer matches its checksum; check the disk and run it again"
            )
        return unpack(found.content)

    def _fetched(self, descriptor: int, ticket: SpillTicket) -> Found | None:
        if ticket.compressed and self._frames is not None:
            return self._frames.read(descriptor, ticket.offset, ticket.length, ticket.packed_length)
        return self._files.read(descriptor, ticket.offset, ticket.length)

    def _note_read(self, ticket: SpillTicket, found: Found | None) -> None:
        with self._lock:
            self._policy.reads.end(*((0, 0.0) if found is None else (ticket.length, found.seconds)))
            if found is not None and ticket.compressed:
                self._policy.expands.add(ticket.packed_length, found.codec_seconds)

    def drop(self, ticket: SpillTicket) -> None:
        """Forgets a batch; dropping after `close` does nothing."""
        with self._lock:
            found = self._segment_of(ticket)
            if found is not None:
                self._free(*found, ticket.offset, ticket.stored)

    def close(self) -> None:
        """Drops everything and removes the store's own folders; idempotent."""
        with self._lock:
            self._closed = True
            self._owners.clear()
            for folder in self._folders:
                folder.close()

    def take_notes(self) -> list[str]:
        """What the store did on its own since it was last asked."""
        if not self._notes:
            return []
        with self._lock:
            notes, self._notes = self._notes, []
            return notes

    @property
    def bytes_used(self) -> int:
        """Bytes of all segments, gaps that dropped batches left in them included."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        return sum([folder.space.size for folder in self._folders])

    # ------------------------------------------------------------------------------------ compressing

    def _packed(self, batch: pa.RecordBatch, hint: SpillHint) -> _Parcel:
        """The pieces of the batch, and which of them to compress."""
        pieces = pack(batch)
        length = packed_length(pieces)
        with self._lock:
            prices = self._policy.prices(hint, length)
        if isinstance(prices, Verdict) or self._frames is None:
            return _Parcel(pieces, length, length, prices if isinstance(prices, Verdict) else Verdict.OFF)
        chosen = [prices.pays(sample) for sample in self._frames.sample(pieces)]
        paid = any(chosen)
        with self._lock:
            self._policy.learn(hint.origin, paid=paid)
            if paid and not self._compresses:
                self._compresses = True
                self._notes.append(f"spills are compressed where that pays: {prices}")
        if not paid:
            return _Parcel(pieces, length, length, Verdict.COSTS_MORE)
        return _Parcel(pieces, length, self._frames.length_max(pieces), Verdict.COMPRESSED, chosen)

    # ---------------------------------------------------------------------------------------- writing

    def _in_turn(self) -> list[SpillFolder]:
        """The folders, in the order to try: those that took the last write, the least busy, each in its turn."""
        with self._lock:
            turn = self._next_folder
            self._next_folder = (turn + 1) % len(self._folders)
            rotated = self._folders[turn:] + self._folders[:turn]
            return sorted(rotated, key=lambda folder: (folder.faults, folder.writing))

    def _write_to(self, folder: SpillFolder, parcel: _Parcel) -> SpillTicket:
        place = self._reserve(folder, in_blocks(parcel.length_max))
        try:
            written = self._timed_put(place, parcel)
        except BaseException:
            self._undo(place)
            raise
        stored = in_blocks(written.length)
        with self._lock:
            folder.writing -= 1
            folder.faults = 0
            if stored < place.room:
                self._free(folder, place.segment, place.offset + stored, place.room - stored, trim=True)
        return SpillTicket(
            place.segment.number,
            place.offset,
            written.length,
            written.checksum,
            stored,
            parcel.length,
            parcel.verdict,
            written.codec_seconds,
        )

    def _timed_put(self, place: _Place, parcel: _Parcel) -> Written:
        with self._lock:
            self._policy.writes.start()
        written = Written(0, 0)
        try:
            written = self._put(place, parcel)
            return written
        finally:
            with self._lock:
                self._policy.writes.end(written.length, written.seconds)
                self._policy.note_codec(written.codec_seconds, written.codec_wall_seconds)

    def _put(self, place: _Place, parcel: _Parcel) -> Written:
        """Writes, once more through the page cache where the file system takes no direct IO."""
        folder = place.folder
        descriptor, direct = folder.open(place.path, os.O_WRONLY | os.O_CREAT)
        try:
            if place.is_new:
                self._files.set_aside(descriptor, self._set_aside_bytes)
            written = self._put_pieces(descriptor, place.offset, parcel)
        except OSError as error:
            if not direct or error.errno != errno.EINVAL:
                raise
            self._give_up_direct(folder)
            return self._put(place, parcel)
        finally:
            os.close(descriptor)
        if folder.direct and not direct:
            self._give_up_direct(folder)
        return written

    def _put_pieces(self, descriptor: int, offset: int, parcel: _Parcel) -> Written:
        if parcel.chosen and self._frames is not None:
            return self._frames.write(descriptor, offset, parcel.pieces, parcel.chosen)
        return self._files.write(descriptor, offset, parcel.pieces)

    def _give_up_direct(self, folder: SpillFolder) -> None:
        with self._lock:
            if folder.direct:
                folder.direct = False
                self._notes.append(f"{str(folder.root)!r} has no direct IO, so spills go through the system's cache")

    def _reserve(self, folder: SpillFolder, room: int) -> _Place:
        with self._lock:
            self._check_open()
            try:
                folder.prepare()
            except OSError:
                folder.faults += 1
                raise
            before = folder.space.size
            segment, offset = folder.space.take(room, self._next_segment)
            grown = folder.space.size - before
            if grown and (used := self._used()) > self._bytes_max:
                self._free(folder, segment, offset, room, trim=True)
                raise self._over(room, used - grown)
            is_new = segment.number == self._next_segment
            if is_new:
                self._next_segment += 1
                self._owners[segment.number] = folder
            folder.writing += 1
            return _Place(folder, segment, offset, room, folder.path(segment), is_new)

    def _over(self, room: int, used: int) -> SpillFailed:
        folders = ", ".join(repr(str(folder.root)) for folder in self._folders)
        return SpillFailed(
            f"spilling {format_bytes(room)} more would pass the limit of {format_bytes(self._bytes_max)}, "
            f"{format_bytes(used)} are in use in {folders}; raise the limit or allow more memory"
        )

    def _undo(self, place: _Place) -> None:
        with self._lock:
            place.folder.writing -= 1
            place.folder.faults += 1
            if self._free(place.folder, place.segment, place.offset, place.room, trim=True):
                return
            # What was written of it is taken from the file where nothing else follows.
            with contextlib.suppress(OSError):
                if place.path.stat().st_size > place.segment.size:
                    os.truncate(place.path, place.segment.size)

    def _free(self, folder: SpillFolder, segment: Segment, offset: int, room: int, *, trim: bool = False) -> bool:
        """With the lock held. Says whether the segment is gone."""
        if self._closed:
            return True
        gone = folder.space.give_back(segment, offset, room)
        if gone:
            self._owners.pop(segment.number, None)
            folder.remove(segment)
        elif trim:
            segment.trim()
        return gone

    def _fault(self, folder: SpillFolder, length: int, error: OSError) -> SpillFailed:
        fault = folder.failed(f"cannot write {format_bytes(length)} to", error)
        fault.__cause__ = error
        if len(self._folders) > 1:
            with self._lock:
                self._notes.append(f"{fault}; others are tried")
        return fault

    def _found(self, ticket: SpillTicket) -> tuple[SpillFolder, Path]:
        self._check_open()
        found = self._segment_of(ticket)
        if found is None:
            raise SpillFailed("a spilled batch is gone: it was dropped, or its spill folder was removed")
        folder, segment = found
        return folder, folder.path(segment)

    def _segment_of(self, ticket: SpillTicket) -> tuple[SpillFolder, Segment] | None:
        folder = self._owners.get(ticket.segment)
        segment = None if folder is None else folder.space.segments.get(ticket.segment)
        return None if folder is None or segment is None else (folder, segment)

    def _check_open(self) -> None:
        if self._closed:
            raise SpillFailed("the spill store is closed")
