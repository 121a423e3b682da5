"""The build side of a join: its rows by their hash, so that equal keys are found by bisection and then compared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.backends.hash import hash_rows
from bireme.backends.reference.comparison import same
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Bools, nulls_of
from bireme.data.record import plain


class ReferenceJoinTable:
    """The build side's keys; the first `null_equal_count` match NULL with NULL."""

    fallbacks: tuple[str, ...] = ()
    form = "sorted by hash"
    has_ranges = False

    def __init__(self, keys: pa.RecordBatch, null_equal_count: int) -> None:
        self._null_equal_count = null_equal_count
        self._keys = [plain(column) for column in keys.columns]
        self._rows = int(keys.num_rows)
        self._bytes = keys.get_total_buffer_size()
        missing = self._unmatchable(self._keys, self._rows)
        self._has_null_key = bool(missing.any())
        rows = np.flatnonzero(~missing)
        hashes = hash_rows(self._keys, self._rows)[rows]
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._order: Rows = rows[order]

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        return int(self._bytes + self._hashes.nbytes + self._order.nbytes)

    @property
    def has_null_key(self) -> bool:
        """Whether a build row has a NULL among its keys that are not null-equal."""
        return self._has_null_key

    @property
    def is_unique(self) -> bool:
        """Whether all hashes differ, and so all keys."""
        return bool((self._hashes[1:] != self._hashes[:-1]).all())

    def key_filter(self) -> None:
        """The reference backend filters nothing early."""

    def index_ranges(self, keys: pa.RecordBatch, ranges: pa.RecordBatch, *, is_bounded_above: bool) -> None:
        """The reference backend tests all pairs."""

    def _unmatchable(self, keys: list[pa.Array], rows: int) -> Bools:
        """Rows with a NULL among the keys that are not null-equal."""
        missing = np.zeros(rows, np.bool_)
        for key in keys[self._null_equal_count :]:
            missing |= nulls_of(key)
        return missing

    def match(self, keys: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """All equal pairs (probe row, build row), in the order of probe rows, then build rows."""
        probe, build = self._pairs(keys)
        return pa.array(probe, pa.int64()), pa.array(build, pa.int64())

    def contains(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        """For each probe row whether it has an equal build row."""
        found = np.zeros(keys.num_rows, np.bool_)
        found[self._pairs(keys)[0]] = True
        return pa.array(found, pa.bool_())

    def _pairs(self, keys: pa.RecordBatch) -> tuple[Rows, Rows]:
        columns = [plain(column) for column in keys.columns]
        hashes = hash_rows(columns, keys.num_rows)
        low = np.searchsorted(self._hashes, hashes, "left")
        counts = np.searchsorted(self._hashes, hashes, "right") - low
        counts[self._unmatchable(columns, keys.num_rows)] = 0
        probe = np.repeat(np.arange(keys.num_rows), counts)
        within = np.arange(len(probe)) - np.repeat(np.cumsum(counts) - counts, counts)
        build = self._order[np.repeat(low, counts) + within]
        alike = np.ones(len(probe), np.bool_)
        for own, other in zip(self._keys, columns, strict=True):
            alike &= same(own.take(pa.array(build)), other.take(pa.array(probe)))
        return probe[alike], build[alike]
