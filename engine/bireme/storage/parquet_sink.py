"""Batches written as Parquet.

Row groups have the size that scans like: batches are gathered until they make one. Decimals of up to 18 digits are
stored as integers, pages carry checksums. Files, and what is left of them after a failure, are the business of `sink`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bireme.storage.base import BATCH_ROWS_MAX


class ParquetFormat:
    """Writes to `file`, which has `write` and `tell`."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer = pq.ParquetWriter(
            file,
            schema,
            compression="snappy",
            store_decimal_as_integer=True,
            write_page_checksum=True,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        self._gathered.append(batch)
        self._rows += batch.num_rows
        if self._rows >= BATCH_ROWS_MAX:
            self._write_row_groups(keep_rest=True)

    def finish(self) -> None:
        self._write_row_groups(keep_rest=False)
        self._writer.close()

    def _write_row_groups(self, *, keep_rest: bool) -> None:
        if not self._gathered:
            return
        table = pa.Table.from_batches(self._gathered)
        rows = table.num_rows - table.num_rows % BATCH_ROWS_MAX if keep_rest else table.num_rows
        self._writer.write_table(table.slice(0, rows), row_group_size=BATCH_ROWS_MAX)
        self._gathered = table.slice(rows).to_batches() if rows < table.num_rows else []
        self._rows = table.num_rows - rows
