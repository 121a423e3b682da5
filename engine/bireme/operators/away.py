"""Build rows that are not in their join table, and the rows of streams that wait for them.

A build side that became too large for memory is cut by the hash of its keys. Some partitions may stay in the table; the
rows of the others are on an aside edge, and a stream sends rows of these partitions to an aside of its own. Which bits
of the hash: those above the ones that tables use. What becomes of both is in `join_rounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import Kernels, KeyFilter
from bireme.data import arrays
from bireme.data.hash_range import ALL_HASHES, HashRange, partitions_of
from bireme.data.record import compact, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.errors import Unsupported
from bireme.operators.base import Aside, Emission
from bireme.plan.expr import Column, Expr
from bireme.plan.physical import BuildSink

# Enough for a build side of about twice the memory limit, at an eighth of it for each partition. More are made where
# more is expected: to cut a partition later costs writing and reading it, and the rows of streams with it, once more.
_PARTITIONS_MIN: Final = 16
_PARTITIONS_MAX: Final = 64
_PARTITIONS_IN_MEMORY: Final = 10


@dataclass(frozen=True, slots=True)
class Away:
    """Which rows of a build side are not in its table: those of partitions `kept` and further, of `rows.partitions`, by
    the first `hashed` keys.

    `has_null_key` and `key_filter`, if there is one, are of the whole build side, of which there is at least one row.
    """

    sink: BuildSink
    schema: Schema
    rows: Aside
    kept: int
    hashed: int
    has_null_key: bool
    key_filter: KeyFilter | None = None

    @property
    def can_cut(self) -> bool:
        return self.hashed > 0


def partitions_for(nbytes: int, memory_bytes: int) -> int:
    """Into how many partitions a build side goes of which so many bytes are expected."""
    wanted = -(-_PARTITIONS_IN_MEMORY * nbytes // max(1, memory_bytes))
    return max(_PARTITIONS_MIN, min(_PARTITIONS_MAX, wanted))


def hashed_keys(sink: BuildSink, kernels: Kernels, keys: pa.RecordBatch) -> int:
    """How many of the keys, the first ones, decide the partition of a row; 0 where rows cannot be cut by their keys.

    A null-aware join compares its last keys with those of all rows that the first, NULL-equal ones select, unless it
    has no others: then what NULL means is known without looking at rows.
    """
    count = sink.null_equal_count if sink.null_aware and not is_plain_in(sink) else len(sink.keys)
    try:
        kernels.hash_rows(keys.slice(0, 0), range(count))
    except Unsupported:
        return 0
    return count


def is_plain_in(sink: BuildSink) -> bool:
    """Whether a null-aware join has one key and nothing else that selects rows."""
    return sink.null_aware and not sink.has_residual and len(sink.keys) == 1 and sink.null_equal_count == 0


class Cutter:
    """Cuts batches by the hash of the first `count` of their `keys`; without any, all rows are of partition 0.

    Each piece has memory of its own and none but that of its columns, so that it can be given up alone.
    """

    def __init__(self, keys: Sequence[Expr], count: int, kernels: Kernels) -> None:
        self._count = count
        self._kernels = kernels
        self._places = [key.index for key in keys[:count] if isinstance(key, Column)]

    def numbers(self, keys: pa.RecordBatch, partitions: int) -> npt.NDArray[np.uint64]:
        """The partition of each row."""
        if self._count == 0:
            return np.zeros(keys.num_rows, np.uint64)
        return partitions_of(arrays.to_numpy(self._kernels.hash_rows(keys, range(self._count))), partitions)

    def parts(
        self, batch: pa.RecordBatch, keys: pa.RecordBatch, partitions: int, within: HashRange = ALL_HASHES
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each of the partitions of a range that has some."""
        if self._count == 0 or partitions == 1:
            if batch.num_rows:
                yield 0, compact(batch)
            return
        batch = with_own_dictionaries(batch)
        if len(self._places) < self._count:
            yield from self._by_numbers(batch, keys, partitions, within)
            return
        for index, part in enumerate(self._kernels.partition(batch, self._places, partitions, within)):
            if part.num_rows:
                yield index, compact(part)

    def _by_numbers(
        self, batch: pa.RecordBatch, keys: pa.RecordBatch, count: int, within: HashRange
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        first = within.part(0, count)
        chosen = self.numbers(keys, first.total) - np.uint64(first.number)
        order = np.argsort(chosen, kind="stable")
        ends = np.searchsorted(chosen[order], np.arange(count + 1, dtype=np.uint64))
        for index in range(count):
            if ends[index] < ends[index + 1]:
                rows = np.ascontiguousarray(order[ends[index] : ends[index + 1]])
                yield index, compact(self._kernels.take(batch, arrays.from_numpy(rows)))


class Router:
    """Tells the rows of a stream whose partition is in the table from those that have to wait."""

    def __init__(self, away: Away, keys: Sequence[Expr], waiting: Aside, kernels: Kernels) -> None:
        self._away = away
        self._cutter = Cutter(keys, away.hashed, kernels)
        self._waiting = waiting
        self._kernels = kernels

    def route(self, batch: pa.RecordBatch, keys: pa.RecordBatch, aside: list[Emission]) -> pa.RecordBatch | None:
        """The rows to go on with; None for none. The others are added to `aside`."""
        kept = self._away.kept
        if kept == 0:
            self._put(batch, keys, aside)
            return None
        stays = self._cutter.numbers(keys, self._away.rows.partitions) < np.uint64(kept)
        if stays.all():
            return batch
        gone = arrays.from_numpy(np.flatnonzero(~stays))
        self._put(self._kernels.take(batch, gone), self._kernels.take(keys, gone), aside)
        return self._kernels.take(batch, arrays.from_numpy(np.flatnonzero(stays)))

    def _put(self, batch: pa.RecordBatch, keys: pa.RecordBatch, aside: list[Emission]) -> None:
        for index, part in self._cutter.parts(batch, keys, self._waiting.partitions):
            aside.append(Emission(self._waiting, index, part))
