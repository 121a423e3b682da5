"""Ranges of an order that hold about equally many rows, as samples of keys tell: of all rows, and of a range again.

Rule: nothing but speed depends on samples. Rows that were cut into ranges carry their position, which no two share; by
it a range of equal keys can be cut too, and stays stable.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.hash_range import HashRange
from bireme.data.record import select
from bireme.data.schema import Schema
from bireme.operators.filter_project import KeyColumns
from bireme.operators.parts import gathered
from bireme.operators.states import KeySample, QueryStates
from bireme.plan.expr import SortKey


class KeyOrder:
    """Sort keys over rows, and cutting rows at some of them."""

    def __init__(self, keys: Sequence[SortKey], schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._kernels = kernels
        self._keys = KeyColumns([key.expr for key in keys], schema, kernels, states)
        self._descending = [key.descending for key in keys]
        self._nulls_first = [key.nulls_first for key in keys]

    def keys_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._keys.run(batch)

    def splitters(self, sample: pa.RecordBatch, parts: int) -> pa.RecordBatch | None:
        """Keys that cut what was sampled into parts of about equal size; None where it is one part."""
        rows = sample.num_rows
        if not rows or parts == 1:
            return None
        order = self._kernels.sort_rows(sample, descending=self._descending, nulls_first=self._nulls_first, limit=None)
        places = arrays.from_numpy(np.arange(1, parts, dtype=np.int64) * rows // parts)
        return self._kernels.take(sample, order.take(places))

    def cut(
        self,
        batch: pa.RecordBatch,
        keys: pa.RecordBatch,
        splitters: pa.RecordBatch | None,
        *,
        is_reversed: bool = False,
    ) -> list[pa.RecordBatch]:
        """The rows of a batch by range, one more than there are splitters; `keys` are all keys or the first ones. With
        `is_reversed` ranges are those of the opposite order, of which splitters are given.
        """
        if splitters is None:
            return [batch]
        count = keys.num_columns
        descending = [each is not is_reversed for each in self._descending[:count]]
        nulls_first = [each is not is_reversed for each in self._nulls_first[:count]]
        return self._kernels.split_by_ranges(batch, keys, splitters, descending=descending, nulls_first=nulls_first)


class RangeCuts:
    """Cuts the ranges of a `RangeSink` into finer ones. Any thread."""

    def __init__(
        self, keys: Sequence[SortKey], sample: KeySample, schema: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        self._order = KeyOrder(keys, schema, kernels, states)
        self._kernels = kernels
        self._states = states
        self._sample = sample
        self._lock = threading.Lock()
        self._sampled: dict[HashRange, pa.RecordBatch] = {}
        self._of_sink: dict[int, pa.RecordBatch] = {}
        self._splitters: dict[tuple[HashRange, int], pa.RecordBatch | None] = {}

    can_cut = True

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some batches of a range, each with the part of it that they belong to."""
        splitters = self._known_splitters(within, into)
        return gathered(self._pieces(batches, splitters), self._kernels)

    def _pieces(
        self, batches: Sequence[pa.RecordBatch], splitters: pa.RecordBatch | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in batches:
            self._states.check()
            yield from enumerate(self._order.cut(batch, self._order.keys_of(batch), splitters))

    def _known_splitters(self, within: HashRange, into: int) -> pa.RecordBatch | None:
        with self._lock:
            if (within, into) not in self._splitters:
                sampled = self._sample_of(within)
                splitters = None if sampled is None else self._order.splitters(sampled, into)
                parts = [] if sampled is None else self._order.cut(sampled, sampled, splitters)
                # Changes only now: what found no memory so far is done again.
                self._splitters[within, into] = splitters
                if self._sampled.pop(within, None) is None:
                    self._of_sink.pop(within.number, None)
                self._sampled.update({within.part(at, into): part for at, part in enumerate(parts)})
            return self._splitters[within, into]

    def _sample_of(self, within: HashRange) -> pa.RecordBatch | None:
        """The keys that were sampled of a range: one of the sink's, or a part of one that was cut."""
        self._take_over()
        found = self._sampled.get(within)
        if found is None:
            found = self._of_sink.get(within.number)
        return found if found is not None and found.num_rows else None

    def _take_over(self) -> None:
        """Takes what the sink has sampled, by range."""
        with self._sample.lock:
            if not self._sample.placed:
                return
            whole = self._kernels.joined(self._sample.placed)
            # The sink knows of no positions, the last key.
            keys = select(whole, range(whole.num_columns - 1), whole.schema.names[:-1])
            self._of_sink.update(enumerate(self._order.cut(whole, keys, self._sample.splitters)))
            self._sample.placed.clear()
