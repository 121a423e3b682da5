"""Batches written as Parquet.

Row groups have the size that scans like: batches are gathered until they make one. Decimals of up to 18 digits are
stored as integers, pages carry checksums. How row groups are encoded is in `parquet_row_groups`; files, and what is
left of them after a failure, are the business of `sink`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bireme.data.record import joined
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.storage.parquet_row_groups import EncodedRowGroup, RowGroupEncoder, RowGroupFile


class ParquetFormat:
    """Encodes what comes, and writes to `file`, which has `write`."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0
        self._encoder = RowGroupEncoder(schema)
        self._file = RowGroupFile(file, schema)

    def write(self, batch: pa.RecordBatch) -> int:
        rows = int(batch.num_rows)
        while self._rows + batch.num_rows >= BATCH_ROWS_MAX:
            wanted = BATCH_ROWS_MAX - self._rows
            self._gathered.append(batch.slice(0, wanted))
            batch = batch.slice(wanted)
            self._write_row_group()
        if batch.num_rows:
            self._gathered.append(batch)
            self._rows += batch.num_rows
        return rows

    def finish(self) -> None:
        if self._gathered:
            self._write_row_group()
        self._file.finish()

    def _write_row_group(self) -> None:
        self._file.add(self._encoder.encode(joined(self._gathered)))
        self._gathered, self._rows = [], 0


class RowGroupsFormat:
    """Writes row groups that a query has encoded already (`plan.file_result`)."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._file = RowGroupFile(file, schema)

    def write(self, batch: pa.RecordBatch) -> int:
        rows = 0
        for chunks, metadata, count in zip(*batch.columns, strict=True):
            self._file.add(EncodedRowGroup(count.as_py(), chunks.as_buffer(), metadata.as_py()))
            rows += count.as_py()
        return rows

    def finish(self) -> None:
        self._file.finish()
