"""Rows of a batch by position or by partition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Bools
from bireme.data import arrays
from bireme.data.hash_range import ALL_HASHES, HashRange, partitions_of
from bireme.data.record import record_batch
from bireme.errors import EngineBug


def split(
    batch: pa.RecordBatch, hashes: npt.NDArray[np.uint64], partitions: int, within: HashRange = ALL_HASHES
) -> list[pa.RecordBatch]:
    """The rows of each partition, in their order."""
    places = partitions_of(hashes, partitions * within.total).astype(np.int64) - partitions * within.number
    if len(places) and not 0 <= places.min() <= places.max() < partitions:
        raise EngineBug("a row to be partitioned is outside of the range that is split")
    if partitions == 1:
        return [batch]
    return [take_rows(batch, np.flatnonzero(places == part)) for part in range(partitions)]


def take_rows(batch: pa.RecordBatch, rows: Rows, missing: Bools | None = None) -> pa.RecordBatch:
    """Rows of a batch by position; NULLs where `missing`."""
    positions = arrays.from_numpy(np.asarray(rows, np.int64), missing=missing)
    columns = [column.take(positions) for column in batch.columns]
    return record_batch(columns, batch.schema.names, len(rows))
