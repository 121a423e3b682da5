"""Encoding rows as row groups of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.errors import ValueTooLarge
from bireme.operators.states import QueryStates
from bireme.plan.file_result import nested_bytes_max
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.storage.parquet_row_groups import RowGroupEncoder
from bireme.storage.sink import translated
from bireme.units import GIB, KIB, MIB, format_bytes

# Encoded bytes lie in one value, which has room for less than 2 GiB.
_ROW_GROUP_BYTES_MAX: Final = GIB
# An encoder has each value some times, and a row group as well: of rows as wide as this there are few in one.
_WIDE_ROW_BYTES: Final = 64 * KIB
_WIDE_ROW_GROUP_BYTES: Final = 4 * MIB
# Pages of long values are filled, put together and compressed whole, in memory that doubles as it grows; the file and a
# copy of it are there beside them.
_COPIES_AT_ONCE: Final = 7
# In less memory, what an allocator keeps between two row groups is a noticeable part of it.
_KEPT_BYTES_MIN: Final = GIB


class Encode:
    """An `EncodeStep` at work."""

    def __init__(self, schema: Schema, names: Sequence[str], kernels: Kernels, states: QueryStates) -> None:
        self._names = names
        self._kernels = kernels
        self._states = states
        self._piece_bytes_max = min(_ROW_GROUP_BYTES_MAX, states.memory_bytes // _COPIES_AT_ONCE)
        self._bytes_max = _ROW_GROUP_BYTES_MAX
        if any(field.type.is_nested for field in schema):
            self._bytes_max = min(_ROW_GROUP_BYTES_MAX, nested_bytes_max(states.memory_bytes))
        with translated("parquet"):
            self._encoder = RowGroupEncoder(schema.to_result_arrow())

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row group of all rows; several of equal size where these are many, or so wide that a few of them are many
        bytes, or much beside memory.
        """
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return
        widest = max([measure(batch) // batch.num_rows for batch in found])
        bytes_max = self._bytes_max if widest < _WIDE_ROW_BYTES else _WIDE_ROW_GROUP_BYTES
        # Wide rows gain nothing from being together.
        wholes = [self._kernels.joined(found)] if widest < _WIDE_ROW_BYTES else found
        for whole in wholes:
            yield from self._row_groups(whole, bytes_max)

    def _row_groups(self, whole: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
        rows = whole.num_rows
        # Dictionaries do not get shorter with the rows: they are counted here only.
        dictionaries: set[int] = set()
        nbytes = measure(whole, dictionaries)
        count = min(rows, max(round(rows / BATCH_ROWS_MAX), -(-nbytes // bytes_max), 1))
        cuts = [rows * part // count for part in range(count + 1)]
        for start, end in pairwise(cuts):
            for piece in self._fitting(whole.slice(start, end - start), dictionaries):
                yield self._encoded(piece)
                if count > 1 and self._states.memory_bytes < _KEPT_BYTES_MIN:
                    # The task goes on, and what an encoder took stays with its thread until somebody says so.
                    pa.default_memory_pool().release_unused()

    def _fitting(self, rows: pa.RecordBatch, dictionaries: set[int]) -> Iterator[pa.RecordBatch]:
        """The rows in pieces that can be encoded: those of unequal size are halved until each fits."""
        nbytes = measure(rows, dictionaries)
        if nbytes <= self._piece_bytes_max:
            yield rows
            return
        if rows.num_rows == 1:
            raise ValueTooLarge(
                f"a row of {format_bytes(nbytes)} is to be encoded as Parquet, which takes {_COPIES_AT_ONCE} times as "
                f"much, of {format_bytes(self._states.memory_bytes)}; raise the memory limit, collect the result "
                "instead, or give shorter values"
            )
        half = rows.num_rows // 2
        yield from self._fitting(rows.slice(0, half), dictionaries)
        yield from self._fitting(rows.slice(half), dictionaries)

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._states.check()
        with translated("parquet"):
            group = self._encoder.encode(batch)
        rows = arrays.from_numpy(np.array([group.rows], np.int64))
        made = record_batch([_one(group.chunks), _one(pa.py_buffer(group.metadata)), rows], self._names, 1)
        # A copy of its own, in memory of the kernels: what the encoder took can go as the task ends.
        return self._kernels.take(made, arrays.from_numpy(np.zeros(1, np.int64)))


def _one(content: pa.Buffer) -> pa.Array:
    """An array of one value."""
    ends = pa.py_buffer(np.array([0, len(content)], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, content])
