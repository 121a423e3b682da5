"""Rows by the group they belong to, and what can be done with columns of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Bools, Numbers
from bireme.data import arrays
from bireme.data.record import plain


class Groups:
    """Which group each row belongs to, and how many groups there are."""

    def __init__(self, ids: Rows, count: int) -> None:
        self.ids = ids
        self.count = count
        self._sequence: Rows | None = None

    def counts(self, chosen: Bools) -> Rows:
        """How many of the chosen rows each group has."""
        return np.bincount(self.ids[chosen], minlength=self.count).astype(np.int64)

    def fold(self, values: Numbers, chosen: Bools, combine: np.ufunc) -> tuple[Numbers, Bools]:
        """The values of the chosen rows of each group combined, in row order; and which groups have none."""
        order = self._by_group(chosen)
        sorted_ids = self.ids[order]
        starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
        folded = np.zeros(self.count, values.dtype)
        missing = np.ones(self.count, np.bool_)
        if len(order):
            folded[sorted_ids[starts]] = combine.reduceat(values[order], starts)
            missing[sorted_ids[starts]] = False
        return folded, missing

    def _by_group(self, chosen: Bools) -> Rows:
        """The chosen rows, those of each group together; known from the first call on where all are chosen."""
        if not chosen.all():
            rows = np.flatnonzero(chosen)
            return rows[np.argsort(self.ids[rows], kind="stable")]
        if self._sequence is None:
            self._sequence = np.argsort(self.ids, kind="stable")
        return self._sequence

    def first(self, order: Numbers, chosen: Bools) -> Rows:
        """The chosen row of each group that comes first by `order`, then by position; -1 where there is none."""
        rows = np.flatnonzero(chosen)
        sequence = rows[np.lexsort((order[rows], self.ids[rows]))]
        found = np.full(self.count, -1, np.int64)
        ids = self.ids[sequence]
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        found[ids[starts]] = sequence[starts]
        return found


def picked(array: pa.Array, rows: Rows) -> pa.Array:
    """The values at some rows; NULL for -1."""
    return plain(array).take(arrays.from_numpy(np.asarray(rows, np.int64), missing=rows < 0))
