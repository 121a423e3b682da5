"""Nanoseconds per value to decode each column of a Parquet file, ours against pyarrow's own reader.

    python bench/micro/scan.py data/lineitem.parquet [row group]

Both decode one row group on one thread from bytes in memory; the least CPU time of several runs counts. `pyarrow` is
`ParquetFile.read_row_group`; ours is `Split.decode`, conversion to the engine's layout included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from bireme.storage.local import LocalByteSource
from bireme.storage.parquet import open_parquet

RUNS = 15


def best_seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("row_group", type=int, nargs="?", default=0)
    arguments = parser.parse_args()
    table = open_parquet(arguments.path)
    reads = LocalByteSource()
    with open(arguments.path, "rb") as file:
        content = pa.py_buffer(file.read())
    theirs = pq.ParquetFile(pa.BufferReader(content))
    print(f"{'column':20} {'type':16} {'ours':>8} {'pyarrow':>8}  ns per value")
    for index, field in [*enumerate(table.schema), (None, None)]:
        columns = list(range(len(table.schema))) if index is None else [index]
        split = table.splits(columns, [])[arguments.row_group]
        buffers = reads.read_all(split.ranges)
        values = split.rows * len(columns)
        names = [table.schema[column].name for column in columns]
        ours = best_seconds(lambda split=split, buffers=buffers: list(split.decode(buffers)))
        other = best_seconds(
            lambda names=names: theirs.read_row_group(arguments.row_group, columns=names, use_threads=False)
        )
        label, kind = ("(all)", "") if field is None else (field.name, str(field.type))
        print(f"{label:20} {kind:16} {ours / values * 1e9:8.2f} {other / values * 1e9:8.2f}")
    reads.close()


if __name__ == "__main__":
    main()
