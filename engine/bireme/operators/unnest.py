"""The elements of lists, one a row: an `UnnestStep` at work.

A batch becomes batches of bounded size, however long its lists are. The loops over rows are Arrow's and numpy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.data.record import plain, record_batch
from bireme.plan.physical import UnnestStep
from bireme.storage.base import BATCH_ROWS_MAX

_Positions = npt.NDArray[np.int64]


def unnested(step: UnnestStep, names: Sequence[str], batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows that those of `batch` become."""
    lists = [_List(plain(batch.column(place))) for place in step.lists]
    longest = np.maximum.reduce([each.lengths for each in lists])
    counts = np.maximum(longest, 1) if step.keeps_empty else longest
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    starts = ends - counts
    for first in range(0, total, BATCH_ROWS_MAX):
        places = np.arange(first, min(first + BATCH_ROWS_MAX, total))
        rows = np.searchsorted(ends, places, side="right")
        within = places - starts[rows]
        at = pa.array(rows)
        columns = [batch.column(place).take(at) for place in step.kept]
        columns += [each.elements(rows, within) for each in lists]
        if step.has_ordinality:
            columns.append(pa.array(within + 1, mask=within >= longest[rows]))
        yield record_batch(columns, names, len(places))


class _List:
    """A column of lists: where the elements of each row are."""

    def __init__(self, column: pa.ListArray) -> None:
        offsets = np.asarray(column.offsets, np.int64)
        self._starts = offsets[:-1]
        lengths = np.diff(offsets)
        # What lies under a NULL are no elements.
        self.lengths = lengths if column.null_count == 0 else np.where(np.asarray(column.is_valid()), lengths, 0)
        self._values = column.values

    def elements(self, rows: _Positions, within: _Positions) -> pa.Array:
        """The elements number `within` (from 0) of `rows`; NULL behind the last."""
        missing = within >= self.lengths[rows]
        places = np.where(missing, 0, self._starts[rows] + within)
        return self._values.take(pa.array(places, mask=missing))
