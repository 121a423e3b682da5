"""Decoded column chunks that outlive their query: the cache tier, above the files and below the queries.

Rule: all on the loop. A chunk is whole or not here. It is leased while a task reads it, and only chunks that nobody
leases can be evicted; its bytes are a reservation like any other, so memory that queries need is taken from here first
(`runtime.memory.executor`). What comes in must fit the cache's own limit: chunks that were in use lately stay, since a
cache that always takes the newest keeps nothing of a table that is read over and over and is larger than it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bireme.data.ids import QueryId
from bireme.errors import EngineBug
from bireme.observe.event import CacheEvicted
from bireme.observe.recorder import Recorder
from bireme.runtime.memory.ledger import Reservation, Use
from bireme.storage.base import ChunkKey
from bireme.storage.kept_split import KeptSplit
from bireme.units import format_bytes

# A chunk that this many later queries of the worker had no use for makes way for a newer one.
_IDLE_QUERIES: Final = 64


class _Chunk:
    """One decoded column chunk. `used_by` is the last query that asked for it."""

    __slots__ = ("column", "key", "leases", "reservation", "table", "used_by")

    def __init__(self, key: ChunkKey, table: str, column: pa.ChunkedArray, reservation: Reservation) -> None:
        self.key = key
        self.table = table
        self.column = column
        self.reservation = reservation
        self.leases = 0
        self.used_by = 0


class Lease:
    """The chunks of one split that were found, by position; they stay until `release`, which is idempotent."""

    __slots__ = ("_cache", "_chunks", "found", "hit_bytes")

    def __init__(self, cache: ColumnCache, chunks: dict[int, _Chunk]) -> None:
        self._cache = cache
        self._chunks = chunks
        self.found = {position: chunk.column for position, chunk in chunks.items()}
        self.hit_bytes = sum([chunk.reservation.nbytes for chunk in chunks.values()])

    def release(self) -> None:
        chunks, self._chunks, self.found = self._chunks, {}, {}
        for chunk in chunks.values():
            self._cache._give_back(chunk)


@dataclass(frozen=True, slots=True)
class CachedTable:
    """What is kept of one table."""

    table: str
    chunks: int
    nbytes: int


class ColumnCache:
    """Chunks by key, the least recently used first."""

    def __init__(self, recorder: Recorder, *, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.nbytes = 0
        self._recorder = recorder
        self._chunks: dict[ChunkKey, _Chunk] = {}
        # Of each file that was ever kept, which content.
        self._versions: dict[str, str] = {}

    def __repr__(self) -> str:
        held = f"{format_bytes(self.nbytes)} of {format_bytes(self.bytes_max)}"
        return f"<ColumnCache: {len(self._chunks)} chunks, {held}>"

    def __len__(self) -> int:
        return len(self._chunks)

    def tables(self) -> list[CachedTable]:
        """What is kept, by table."""
        sums: dict[str, tuple[int, int]] = {}
        for chunk in self._chunks.values():
            count, nbytes = sums.get(chunk.table, (0, 0))
            sums[chunk.table] = count + 1, nbytes + chunk.reservation.nbytes
        return [CachedTable(table, *sums[table]) for table in sorted(sums)]

    # ------------------------------------------------------------------------------------- reading

    def lease(self, keys: Sequence[ChunkKey], query: QueryId) -> Lease:
        """What is here of the chunks of a split."""
        found = {}
        for position, key in enumerate(keys):
            chunk = self._chunks.pop(key, None)
            if chunk is not None:
                self._chunks[key] = chunk  # now the most recent
                chunk.leases += 1
                chunk.used_by = query
                found[position] = chunk
        return Lease(self, found)

    def _give_back(self, chunk: _Chunk) -> None:
        chunk.leases -= 1
        if chunk.leases == 0 and self._chunks.get(chunk.key) is not chunk:
            self._free(chunk)

    # ------------------------------------------------------------------------------------- changing

    def keep(self, split: KeptSplit, grant: Reservation, *, table: str, query: QueryId) -> None:
        """Keeps what a task had to decode; its bytes come out of the task's grant."""
        for key, column in split.fresh:
            self.put(key, column, grant.carve(column.nbytes, Use.CACHE), table=table, query=query)

    def put(
        self, key: ChunkKey, column: pa.ChunkedArray, reservation: Reservation, *, table: str, query: QueryId
    ) -> None:
        """Keeps a chunk, whose bytes become the cache's, unless it is here or has no room."""
        self._notice(key)
        if key in self._chunks or not self._makes_way(reservation.nbytes, query):
            reservation.release()
            return
        chunk = _Chunk(key, table, column, reservation)
        chunk.used_by = query
        self._chunks[key] = chunk
        self.nbytes += reservation.nbytes

    def _notice(self, key: ChunkKey) -> None:
        """Gives up what is kept of an earlier content of the file: nothing will ask for it again."""
        if self._versions.get(key.path, key.version) != key.version:
            stale = [chunk for chunk in self._chunks.values() if chunk.key.path == key.path]
            self._note(self._remove(stale), len(stale), "the file was written anew")
        self._versions[key.path] = key.version

    def _makes_way(self, nbytes: int, query: QueryId) -> bool:
        if self.nbytes + nbytes <= self.bytes_max:
            return True
        idle = [chunk for chunk in self._evictable() if chunk.used_by < query - _IDLE_QUERIES]
        self._evict(idle, self.nbytes + nbytes - self.bytes_max, "chunks in use want its place")
        return self.nbytes + nbytes <= self.bytes_max

    def evict(self, shortfall: int) -> int:
        """Gives up chunks, least recently used first, until `shortfall` bytes have come back; says how many did."""
        return self._evict(self._evictable(), shortfall, "queries need the memory")

    def drop(self, tables: Callable[[str], bool]) -> None:
        """Gives up what is kept of the tables; what a task reads, when it has read it."""
        self._remove([chunk for chunk in self._chunks.values() if tables(chunk.table)])

    def clear(self) -> None:
        self.drop(lambda _: True)
        self._versions.clear()

    def check(self) -> None:
        """Raises EngineBug where what is counted and what is there differ; for tests and the simulation."""
        held = sum([chunk.reservation.nbytes for chunk in self._chunks.values()])
        if held != self.nbytes or any(chunk.leases < 0 for chunk in self._chunks.values()):
            raise EngineBug(f"{self!r} holds {held} bytes")

    def _evictable(self) -> Iterable[_Chunk]:
        return (chunk for chunk in self._chunks.values() if chunk.leases == 0)

    def _evict(self, chunks: Iterable[_Chunk], shortfall: int, reason: str) -> int:
        chosen: list[_Chunk] = []
        missing = shortfall
        for chunk in chunks:
            if missing <= 0:
                break
            chosen.append(chunk)
            missing -= chunk.reservation.nbytes
        freed = self._remove(chosen)
        self._note(freed, len(chosen), reason)
        return freed

    def _remove(self, chunks: Sequence[_Chunk]) -> int:
        """Takes chunks out; says how many bytes came back at once."""
        freed = 0
        for chunk in chunks:
            del self._chunks[chunk.key]
            self.nbytes -= chunk.reservation.nbytes
            if chunk.leases == 0:
                freed += chunk.reservation.nbytes
                self._free(chunk)
        return freed

    def _free(self, chunk: _Chunk) -> None:
        # Releasing may wake others at once, so the column is let go first.
        chunk.column = None
        chunk.reservation.release()

    def _note(self, nbytes: int, count: int, reason: str) -> None:
        if count:
            self._recorder.record(CacheEvicted(QueryId(0), nbytes, count, reason))
