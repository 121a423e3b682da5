"""A build side that does not fit in memory: its rows by partition of their keys, some kept, the others emitted.

Memory is given back in steps: at first half of the partitions go, then half of those left, until none is kept. What is
emitted goes to one aside edge, which every pipeline that probes the table reads for itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels, KeyFilter
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.record import empty
from bireme.data.schema import Schema
from bireme.operators.away import Away, Cutter, hashed_keys, is_plain_in, partitions_for
from bireme.operators.base import Aside, Emission
from bireme.operators.build_table import STEP_BYTES, bytes_to_build
from bireme.operators.join_keys import BuildKeys
from bireme.operators.states import QueryStates
from bireme.plan.physical import BuildSink

Chunk = tuple[int, pa.RecordBatch]

# Pieces of fewer rows are joined when there are so many of a partition: what describes a column takes as much as some
# hundred values.
_SHORT_ROWS: Final = 8_192
_JOINED_ROWS: Final = 65_536
# The filter of all keys takes such a part of the memory.
_FILTERS_IN_MEMORY: Final = 64


class Kept:
    """The rows of a partition that is kept, in pieces that are not short but for some."""

    def __init__(self) -> None:
        self._long: list[Chunk] = []
        self._short: list[Chunk] = []
        self._short_rows = 0

    def chunks(self) -> list[Chunk]:
        return self._long + self._short

    def add(self, chunk: Chunk, kernels: Kernels) -> None:
        rows = chunk[1].num_rows
        if rows >= _SHORT_ROWS:
            self._long.append(chunk)
            return
        self._short.append(chunk)
        self._short_rows += rows
        if self._short_rows < _JOINED_ROWS:
            return
        # What cannot be joined for want of memory stays as it is.
        with contextlib.suppress(MemoryError):
            self._short = [(chunk[0], kernels.joined([batch for _, batch in self._short]))]
        self._long += self._short
        self._short, self._short_rows = [], 0


class SpilledBuild:
    """The rows of one build side since it was first asked for memory; `chunks` are those it had by then.

    Calls of `take` may be made by many threads at once; of `relieve` too, but not between those.
    """

    def __init__(
        self, sink: BuildSink, schema: Schema, keys: BuildKeys, kernels: Kernels, states: QueryStates,
        chunks: Sequence[Chunk], bytes_expected: int,
    ) -> None:  # fmt: skip
        count = hashed_keys(sink, kernels, keys.run(empty(schema)))
        self._bytes, self._rows = _size(chunks)
        partitions = partitions_for(max(bytes_expected, self._bytes), states.memory_bytes) if count else 1
        self._sink = sink
        self._schema = schema
        self._keys = keys
        self._hashed = count
        self._cutter = Cutter(sink.keys, count, kernels)
        self._aside = Aside(f"{sink.table}: build rows", partitions, states.uses.probers.get(sink.table, ()))
        self._kernels = kernels
        self._kept = [Kept() for _ in range(partitions // 2)]
        self._groups: list[list[Chunk]] = list(_grouped(chunks))
        self._lock = threading.Lock()
        self._has_null_key = False
        # Scans that look the table up may ask for the whole build side, although it is not kept.
        has_filter = sink.table in states.uses.looked_up and sink.null_equal_count == 0
        self._seen = kernels.key_filter_build(states.memory_bytes // _FILTERS_IN_MEMORY) if has_filter else None
        self._key_filter: KeyFilter | None = None
        self._leaving: list[tuple[int, list[Chunk]]] = []

    @property
    def nbytes(self) -> int:
        """Bytes that it will take to put a table of the rows together that are here."""
        seen = 0 if self._seen is None else self._seen.nbytes
        return bytes_to_build(self._sink, self._bytes, self._rows) + seen

    @property
    def kept_count(self) -> int:
        return len(self._kept)

    @property
    def group_count(self) -> int:
        """How many calls of `relieve` cut all that came before."""
        return len(self._groups)

    def away(self) -> Away:
        """What a probe is told, once nothing more comes."""
        if self._seen is not None:
            self._key_filter, self._seen = self._seen.finish(), None
        kept = len(self._kept)
        return Away(self._sink, self._schema, self._aside, kept, self._hashed, self._has_null_key, self._key_filter)

    def kept_rows(self) -> list[Chunk]:
        """The rows that stay."""
        return [chunk for part in self._kept for chunk in part.chunks()]

    def forget(self) -> None:
        """The rows that stay are in a table now."""
        self._kept = []
        self._bytes = self._rows = 0

    def relieve(self, part: int) -> list[Emission]:
        """One call of a relief: of the first, which cuts, or of one that halves what is kept."""
        return self._cut_first(part) if self._groups else self._give_up(part)

    def take(self, sequence: int, batches: Sequence[pa.RecordBatch]) -> list[Emission]:
        """Rows that come: what goes, and the rest is kept."""
        return self._commit([(sequence, batch) for batch in batches], (0, 0))

    def _cut_first(self, group: int) -> list[Emission]:
        """Cuts a group of the rows that came before it was asked for memory."""
        chunks = self._groups[group]
        emissions = self._commit(chunks, _size(chunks))
        self._groups[group] = []
        return emissions

    def _commit(self, chunks: Sequence[Chunk], freed: tuple[int, int]) -> list[Emission]:
        # Cut first and kept afterwards, so that a call that runs out of memory has changed nothing.
        emissions: list[Emission] = []
        kept: list[tuple[int, Chunk]] = []
        has_null_key = False
        for sequence, batch in chunks:
            keys = self._keys.run(batch)
            if self._seen is not None:
                self._seen.add(keys)
            has_null_key |= is_plain_in(self._sink) and not arrays.is_valid(keys.column(0)).all()
            for index, part in self._cutter.parts(batch, keys, self._aside.partitions):
                if index < len(self._kept):
                    kept.append((index, (sequence, part)))
                else:
                    emissions.append(Emission(self._aside, index, part))
        nbytes, rows = _size([chunk for _, chunk in kept])
        with self._lock:
            for index, chunk in kept:
                self._kept[index].add(chunk, self._kernels)
            self._bytes += nbytes - freed[0]
            self._rows += rows - freed[1]
            self._has_null_key |= has_null_key
        return emissions

    def start_giving(self) -> int:
        """Halves what is kept. Returns how many calls of `relieve` there are to make."""
        self._groups = []
        half = len(self._kept) // 2
        self._leaving = [(half + place, part.chunks()) for place, part in enumerate(self._kept[half:])]
        del self._kept[half:]
        return len(self._leaving)

    def _give_up(self, part: int) -> list[Emission]:
        """Emits the rows of one of the partitions that are kept no longer."""
        index, chunks = self._leaving[part]
        emissions = [Emission(self._aside, index, batch) for _, batch in chunks]
        self._leaving[part] = (index, [])
        nbytes, rows = _size(chunks)
        with self._lock:
            self._bytes -= nbytes
            self._rows -= rows
        return emissions


def _size(chunks: Sequence[Chunk]) -> tuple[int, int]:
    return sum([measure(batch) for _, batch in chunks]), sum([batch.num_rows for _, batch in chunks])


def _grouped(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Chunks in groups of about `STEP_BYTES`."""
    groups: list[list[Chunk]] = []
    held = STEP_BYTES
    for chunk in chunks:
        if held >= STEP_BYTES:
            groups.append([])
            held = 0
        groups[-1].append(chunk)
        held += measure(chunk[1])
    return groups
