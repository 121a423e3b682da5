"""Decoding each column of a Parquet file: ours beside pyarrow's, DuckDB's and Polars' readers.

    python bench/micro/scan.py data/lineitem.parquet

The whole file, column by column, from the page cache or (ours and pyarrow) from bytes in memory. Ours is
`Split.decode` with the engine's layout as its result, pyarrow reads row group by row group, Polars makes a frame, and
DuckDB takes the column's minimum, filtered so that statistics cannot answer it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from frame import Case, family_parser, run_family

from bireme.storage.base import ScannableSource
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet import open_parquet


def cases(options: argparse.Namespace) -> Iterator[Case]:
    table, reads, path = open_parquet(str(options.path)), LocalByteSource(), options.path
    with duckdb.connect(config={"threads": 1}) as connection, pq.ParquetFile(pa.memory_map(str(path))) as theirs:
        for index, field in enumerate(table.schema):
            yield case(table, reads, theirs, connection, path, index, f"{field.name} {field.type}")
    reads.close()


def case(
    table: ScannableSource,
    reads: LocalByteSource,
    theirs: pq.ParquetFile,
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    index: int,
    label: str,
) -> Case:
    name = table.schema[index].name
    splits = [(split, [reads.read(wanted) for wanted in split.ranges]) for split in table.splits([index], [])]
    groups = range(theirs.metadata.num_row_groups)
    encoded = sum(buffer.size for _, buffers in splits for buffer in buffers)
    decoded = sum(batch.nbytes for split, buffers in splits for batch in split.decode(buffers))

    def each(decode: object) -> None:
        """Lets go of each piece at once, as a scan does."""

    works = {
        "bireme": lambda: [each(list(split.decode(buffers))) for split, buffers in splits],
        "pyarrow": lambda: [each(theirs.read_row_group(group, columns=[name], use_threads=False)) for group in groups],
        "duckdb": lambda: connection.execute(
            f"select min({name}) filter ({name} is not null) from '{path}'"
        ).fetchall(),
        "polars": lambda: pl.read_parquet(path, columns=[name]),
    }
    return Case(name=label, rows=theirs.metadata.num_rows, floor_bytes=encoded + decoded, works=works)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("path", type=Path)
    run_family("scan", cases, parser)
