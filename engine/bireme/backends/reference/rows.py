"""Rows of a batch by position or by partition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import partitions_of
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import Bools
from bireme.data.record import record_batch


def split(batch: pa.RecordBatch, hashes: npt.NDArray[np.uint64], partitions: int) -> list[pa.RecordBatch]:
    """The rows of each partition, in their order."""
    chosen = partitions_of(hashes, partitions)
    return [take_rows(batch, np.flatnonzero(chosen == np.uint64(part))) for part in range(partitions)]


def take_rows(batch: pa.RecordBatch, rows: Rows, missing: Bools | None = None) -> pa.RecordBatch:
    """Rows of a batch by position; NULLs where `missing`."""
    positions = pa.array(rows, pa.int64(), mask=missing)
    columns = [column.take(positions) for column in batch.columns]
    return record_batch(columns, batch.schema.names, len(rows))
