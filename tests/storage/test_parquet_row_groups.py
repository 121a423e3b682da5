"""Row groups of rows that are wide or nested: others than of usual rows, but with the same content."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.storage.parquet_row_groups import RowGroupEncoder, RowGroupFile
from bireme.units import KIB, MIB


def written(table: pa.Table, folder: Path) -> pq.ParquetFile:
    """The file of one row group with all rows."""
    path = folder / "t.parquet"
    with path.open("wb") as file:
        made = RowGroupFile(file, table.schema)
        made.add(RowGroupEncoder(table.schema).encode(table.combine_chunks().to_batches()[0]))
        made.finish()
    return pq.ParquetFile(path)


@pytest.mark.parametrize("repeats", [True, False])
def test_wide_values_have_neither_dictionaries_nor_extremes(tmp_path: Path, repeats: bool) -> None:
    wide = [chr(97 + (0 if repeats else row)) * 100 * KIB for row in range(20)]
    table = pa.table({"at": range(20), "wide": wide, "short": [word[:2] for word in wide]})
    file = written(table, tmp_path)
    assert file.read().equals(table)
    at, column, short = (file.metadata.row_group(0).column(index) for index in range(3))
    assert (column.has_dictionary_page, column.is_stats_set) == (False, False)
    assert at.is_stats_set
    assert (short.has_dictionary_page, short.statistics.max) == (True, "aa" if repeats else "tt")


@pytest.mark.parametrize("column", ["wide", "list"])
def test_rows_that_are_many_bytes_become_short_row_groups_in_order(tmp_path: Path, column: str) -> None:
    rows = 12 if column == "wide" else 60_000
    values = [str(row) * MIB for row in range(rows)] if column == "wide" else [[{"x": row}] * 20 for row in range(rows)]
    path = str(tmp_path / "t.parquet")
    with bm.connect(threads=2, memory_limit="32MiB", spill_folder=tmp_path / "spill") as session:
        session.register("t", pa.table({"at": range(rows), column: values}))
        session.sql("select * from t").sink_parquet(path)
    found = pq.ParquetFile(path)
    assert found.num_row_groups > 2
    assert found.read().to_pydict() == {"at": list(range(rows)), column: values}
