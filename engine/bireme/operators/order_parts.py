"""Cutting rows into parts of an order, as samples of their keys tell, and each part again.

Parts are numbered as they follow each other: even ones are ranges, and an odd one has the rows of one key, where those
are so many that they would fill ranges of their own; nothing is left to bring into order there. Rule: nothing but speed
depends on samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.hash_range import HASH_PARTS_MAX, HashRange, partitions_of
from bireme.data.record import record_batch, select, with_own_dictionaries
from bireme.operators.base import ordered_parts
from bireme.operators.key_ranges import KeyOrder
from bireme.operators.parts import gathered
from bireme.operators.states import KeySample, QueryStates

# Gives what was noted of the rows of a partition, keys as those of the order, None for nothing.
Noted = Callable[[HashRange], pa.RecordBatch | None]


class OrderParts:
    """Parts of the order `keys`. `noted` is asked for keys of some rows of what no cut has given. Any thread."""

    def __init__(self, keys: KeyOrder, noted: Noted, kernels: Kernels, states: QueryStates) -> None:
        self._keys = keys
        self._noted = noted
        self._kernels = kernels
        self._states = states
        self._lock = threading.Lock()
        self._sampled: dict[HashRange, pa.RecordBatch] = {}
        self._splitters: dict[tuple[HashRange, int], _Splitters] = {}

    def clear(self) -> None:
        """Forgets the partitions that were cut so far."""
        with self._lock:
            self._sampled.clear()
            self._splitters.clear()

    def cut(
        self, batches: Iterable[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a part, each with the part of it that they belong to."""
        splitters = self._known_splitters(within, into)
        return gathered(self._pieces(batches, splitters), self._kernels)

    def _pieces(self, batches: Iterable[pa.RecordBatch], splitters: _Splitters) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in map(with_own_dictionaries, batches):
            self._states.check()
            yield from self._parted(batch, self._keys.keys_of(batch), splitters)

    def _parted(
        self, batch: pa.RecordBatch, keys: pa.RecordBatch, splitters: _Splitters
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        if splitters.keys is None:
            yield 0 if keys.num_columns else 1, batch
            return
        if not any(splitters.is_common):
            for number, piece in enumerate(self._keys.cut(batch, keys, splitters.keys)):
                yield 2 * number, piece
            return
        # Keys go with the rows, since some ranges are looked at again.
        both = record_batch([*batch.columns, *keys.columns], [*batch.schema.names, *keys.schema.names], batch.num_rows)
        width = batch.num_columns
        for number, piece in enumerate(self._keys.cut(both, keys, splitters.keys)):
            rows = select(piece, range(width), batch.schema.names)
            if number == 0 or not splitters.is_common[number - 1]:
                yield 2 * number, rows
                continue
            own = select(piece, range(width, piece.num_columns), keys.schema.names)
            further, equal = self._keys.cut(rows, own, splitters.keys.slice(number - 1, 1), is_reversed=True)
            yield 2 * number - 1, equal
            yield 2 * number, further

    def _known_splitters(self, within: HashRange, into: int) -> _Splitters:
        with self._lock:
            found = self._splitters.get((within, into))
            if found is None:
                sampled = self._sampled[within] if within in self._sampled else self._noted(within)
                found = self._splitters_of(sampled, into)
                parts = {} if sampled is None else dict(self._parted(sampled, sampled, found))
                # Changes only now: what found no memory so far is done again.
                self._splitters[within, into] = found
                self._sampled.pop(within, None)
                total = ordered_parts(into)
                self._sampled.update({within.part(at, total): part for at, part in parts.items()})
            return found

    def _splitters_of(self, sampled: pa.RecordBatch | None, into: int) -> _Splitters:
        """Keys that cut what was sampled into parts of about equal size, and which of them are those of many rows."""
        if sampled is None or sampled.num_rows < 2 or not sampled.num_columns:
            return _UNCUT
        found = self._keys.splitters(sampled, into)
        if found is None:
            return _UNCUT
        distinct = [0]
        counts = [1]
        for place in range(1, found.num_rows):
            if self._are_equal(found, place - 1):
                counts[-1] += 1
            else:
                distinct.append(place)
                counts.append(1)
        rows = arrays.from_numpy(np.array(distinct, np.int64))
        return _Splitters(self._kernels.take(found, rows), tuple([count > 1 for count in counts]))

    def _are_equal(self, keys: pa.RecordBatch, place: int) -> bool:
        """Whether a row of keys, which come in order, equals the next one."""
        before, _ = self._keys.cut(keys.slice(place, 1), keys.slice(place, 1), keys.slice(place + 1, 1))
        return not before.num_rows


class _Splitters(NamedTuple):
    """Keys to cut at, None for none, and which of them are those of so many rows that they get a part of their own."""

    keys: pa.RecordBatch | None
    is_common: tuple[bool, ...]


_UNCUT = _Splitters(None, ())


class NotedOfPartitions:
    """What a sink noted of rows, by the partition that they went to by the hash of their columns `hashed`."""

    def __init__(self, sample: KeySample, hashed: list[int], kernels: Kernels) -> None:
        self._sample = sample
        self._hashed = hashed
        self._kernels = kernels

    def of(self, within: HashRange) -> pa.RecordBatch | None:
        """Of the rows of one partition."""
        noted = self._all()
        if noted is None or within.total == 1:
            return noted
        if within.total > HASH_PARTS_MAX:
            return None  # no range of hashes, but of an order that nothing was noted of
        hashes = arrays.to_numpy(self._kernels.hash_rows(noted, self._hashed))
        rows = np.flatnonzero(partitions_of(hashes, within.total) == within.number)
        return self._kernels.take(noted, arrays.from_numpy(rows.astype(np.int64, copy=False)))

    def _all(self) -> pa.RecordBatch | None:
        """All that was noted, in one batch from the first time on."""
        with self._sample.lock:
            noted = self._sample.keys
            if len(noted) > 1:
                noted[:] = [self._kernels.joined(noted)]
            return noted[0] if noted else None
