"""Putting rows of many batches together in C++, in memory of the kernels: it is counted, and reused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bireme.backends.native import _kernels
from bireme.data import record


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows of at least one batch in one, nested columns through pyarrow."""
    if len(batches) == 1:
        return batches[0]
    found = _kernels.concat(batches)
    return record.joined(batches) if found is None else with_entries(*found, batches[0].schema.names)


def with_entries(
    exported: _kernels.Exported, dictionaries: Sequence[tuple[int, _kernels.Exported]], names: Sequence[str]
) -> pa.RecordBatch:
    """Rows that were put together, with the dictionaries of those columns that left as codes."""
    batch = pa.record_batch(exported)
    arrays = batch.columns
    for position, entries in dictionaries:
        arrays[position] = pa.DictionaryArray.from_arrays(arrays[position], pa.array(entries), safe=False)
    return record.record_batch(arrays, names, batch.num_rows)
