"""Cutting rows into ranges of an order, so that each can be sorted alone: all slots at once, and in little memory.

Rule: where to cut is learnt from a sample of the keys of all rows, taken while they are gathered; nothing but speed
depends on it. Rows take their position along, so pieces of a range may come in any order. Small pieces are kept until
there are enough rows, since each costs its readers, and a spill store, something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.record import compact, plain, record_batch, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.operators.base import Emission, Relievable, Unrelieved
from bireme.operators.filter_project import KeyColumns
from bireme.operators.group import SEQUENCE_SHIFT
from bireme.operators.key_ranges import KeyOrder
from bireme.operators.states import QueryStates
from bireme.plan.physical import RangeSink, SampleSink
from bireme.plan.window_order import NotedKeys
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.units import KIB

# One row in so many is in the sample: ranges differ in size by less than a tenth where each has 50,000 rows.
_SAMPLED_EVERY: Final = 512
# Of a few splits, which stand for many, more.
_SAMPLED_EVERY_OF_FEW: Final = 64
# Of wide rows one in so many bytes, since ranges are cut again by their bytes.
_SAMPLED_BYTES: Final = 64 * KIB
# Pieces of fewer rows are kept until there are more.
_PIECE_ROWS_MIN: Final = 4_096
# Larger dictionaries would be copied with every piece.
_ENTRIES_MAX: Final = 256


class Sample(Unrelieved):
    """A `SampleSink` at work."""

    nbytes = 0
    fallbacks: tuple[str, ...] = ()

    def __init__(self, sink: SampleSink, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._edge = sink.edge
        self._kernels = kernels
        self._keys = KeyColumns([key.expr for key in sink.keys], schema, kernels, states)
        self._sample = states.sample(sink.sample)

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        emissions: list[Emission] = []
        for batch in batches:
            every = _SAMPLED_EVERY if self._edge is not None else _SAMPLED_EVERY_OF_FEW
            some = self._kernels.take(batch, _some(batch.num_rows, every))
            self._sample.keys.append(_on_its_own(self._keys.run(some)))
            if self._edge is not None:
                emissions += [Emission(self._edge, 0, piece) for piece in slices(batch, BATCH_ROWS_MAX)]
        return emissions

    def finish_parts(self) -> int:
        return 0

    def finish(self, part: int) -> list[Emission]:
        return []


class NotedRows:
    """Keeps the keys of some rows that pass, so that a partition of them can be cut by their order."""

    def __init__(self, noted: NotedKeys, schema: Schema, kernels: Kernels, states: QueryStates, slots: int) -> None:
        self._kernels = kernels
        self._keys = KeyColumns([key.expr for key in noted.keys], schema, kernels, states)
        self._sample = states.sample(noted.sample)
        # By slot, how many rows have passed since one was noted.
        self._passed = [_SAMPLED_EVERY // 2] * (slots + 1)

    def passing(self, batches: Iterable[pa.RecordBatch], slot: int) -> Iterator[pa.RecordBatch]:
        """The batches as they come."""
        for batch in batches:
            self._note(batch, slot)
            yield batch

    def _note(self, batch: pa.RecordBatch, slot: int) -> None:
        first = _SAMPLED_EVERY - 1 - self._passed[slot]
        chosen = np.arange(first, batch.num_rows, _SAMPLED_EVERY, dtype=np.int64)
        self._passed[slot] = (self._passed[slot] + batch.num_rows) % _SAMPLED_EVERY
        if len(chosen):
            keys = _on_its_own(self._keys.run(self._kernels.take(batch, arrays.from_numpy(chosen))))
            with self._sample.lock:
                self._sample.keys.append(keys)


class _Kept:
    """Pieces of one slot, by range, that are to become longer ones."""

    def __init__(self) -> None:
        self.pieces: dict[int, list[pa.RecordBatch]] = {}
        self.nbytes = 0

    def add(self, parts: Sequence[pa.RecordBatch]) -> None:
        for index, part in enumerate(parts):
            if part.num_rows:
                self.pieces.setdefault(index, []).append(part)
        self.nbytes += sum([measure(part) for part in parts])

    def clear(self) -> None:
        self.pieces.clear()
        self.nbytes = 0


class Ranges(Unrelieved):
    """A `RangeSink` at work."""

    fallbacks: tuple[str, ...] = ()

    def __init__(
        self, sink: RangeSink, partitions: int, schema: Schema, kernels: Kernels, states: QueryStates, slots: int
    ) -> None:
        self._edge = sink.edge
        self._kept_bytes_max = sink.kept_bytes_max
        self._kernels = kernels
        self._names = (*schema.names, "position")
        self._order = KeyOrder(sink.keys, schema, kernels, states)
        self._sample = states.sample(sink.sample)
        found = [batch for batch in self._sample.keys if batch.num_rows]
        self._splitters = self._order.splitters(kernels.joined(found), partitions) if found else None
        self._sample.splitters = self._splitters
        self._sample.keys.clear()
        self._slots = [_Kept() for _ in range(slots + 1)]

    @property
    def nbytes(self) -> int:
        return sum([kept.nbytes for kept in self._slots])

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        emissions: list[Emission] = []
        kept = self._slots[slot]
        position = sequence << SEQUENCE_SHIFT
        for batch in batches:
            positions = arrays.from_numpy(np.arange(position, position + batch.num_rows, dtype=np.int64))
            position += batch.num_rows
            columns = [_light(column) for column in batch.columns]
            # Else each piece would keep the whole batch in memory that its dictionaries came with.
            whole = with_own_dictionaries(record_batch([*columns, positions], self._names, batch.num_rows))
            keys = self._order.keys_of(batch)
            self._note(batch, keys, positions)
            parts = self._order.cut(whole, keys, self._splitters)
            if batch.num_rows >= _PIECE_ROWS_MIN * len(parts):
                emissions += [Emission(self._edge, index, part) for index, part in enumerate(parts) if part.num_rows]
                continue
            kept.add(parts)
            if kept.nbytes >= self._kept_bytes_max:
                emissions += self._let_go(slot)
        return emissions

    def _note(self, batch: pa.RecordBatch, keys: pa.RecordBatch, positions: pa.Array) -> None:
        """Keeps keys and positions of some rows, by which a range that turns out too large is cut again."""
        rows = batch.num_rows
        every = max(1, min(_SAMPLED_EVERY, _SAMPLED_BYTES * rows // max(1, measure(batch))))
        chosen = _some(rows, every)
        some_keys = _on_its_own(self._kernels.take(keys, chosen))
        columns = [*some_keys.columns, positions.take(chosen)]
        some = record_batch(columns, [f"k{index}" for index in range(len(columns))], len(chosen))
        with self._sample.lock:
            self._sample.placed.append(some)

    def _let_go(self, slot: int) -> list[Emission]:
        kept = self._slots[slot]
        emissions: list[Emission] = []
        for index, pieces in sorted(kept.pieces.items()):
            # Joined, they take the place of the pieces: those of one range only are there twice, and a call that runs
            # out of memory has lost nothing.
            pieces[:] = [self._kernels.joined(pieces)]
            emissions.append(Emission(self._edge, index, pieces[0]))
        kept.clear()
        return emissions

    def relievable(self) -> Relievable:
        return Relievable(self.nbytes, max([kept.nbytes for kept in self._slots]))

    def relief_parts(self) -> int:
        return len(self._slots)

    def relieve(self, part: int) -> list[Emission]:
        return self._let_go(part)

    def finish_parts(self) -> int:
        return len(self._slots)

    def finish(self, part: int) -> list[Emission]:
        return self._let_go(part)


def _on_its_own(some: pa.RecordBatch) -> pa.RecordBatch:
    """A few rows of a batch, which keep no dictionary of it, and with that the batch, in memory."""
    return with_own_dictionaries(compact(some))


def _some(rows: int, every: int) -> pa.Array:
    """The positions of one row in so many."""
    return arrays.from_numpy(np.arange(rows // 2 % every, rows, every, dtype=np.int64))


def _light(column: pa.Array) -> pa.Array:
    """The column without a dictionary that is large beside a piece."""
    is_large = isinstance(column, pa.DictionaryArray) and len(column.dictionary) > _ENTRIES_MAX
    return plain(column) if is_large else column
