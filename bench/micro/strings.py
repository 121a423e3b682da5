"""Tests and functions of texts in memory, beside DuckDB, Polars and pyarrow: one column in, one column out.

    python bench/micro/strings.py [--data FOLDER] [--rows 500000]

The texts are the comments of TPC-H's orders where DATA is a folder with `orders.parquet`, else drawn: words of an
alphabet of ten letters. Engines start from their own columns in memory; DuckDB counts or adds up what it computes,
since handing out columns costs it more.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from frame import Case, family_parser, run_family

from bireme.backends.native import NativeKernels
from bireme.data import types as t
from bireme.data.schema import Schema
from bireme.plan import functions
from bireme.plan.expr import Column, Literal
from bireme.storage.base import BATCH_ROWS_MAX

WORDS = ("special", "requests", "furiously", "final", "deposits", "bold", "packages", "quickly", "the", "accounts")

# Our function and the constants behind the text, and the SQL of it.
OURS: dict[str, tuple[str, tuple[object, ...], str]] = {
    "equal": ("=", ("the",), "s = 'the'"),
    "less": ("<", ("furiously final",), "s < 'furiously final'"),
    "like prefix": ("like", ("fur%",), "s like 'fur%'"),
    "like suffix": ("like", ("%ly",), "s like '%ly'"),
    "like one word": ("like", ("%requests%",), "s like '%requests%'"),
    "like two words": ("like", ("%special%requests%",), "s like '%special%requests%'"),
    "ilike one word": ("ilike", ("%ReQuests%",), "s ilike '%ReQuests%'"),
    "length": ("length", (), "length(s)"),
    "substring": ("substring", (3, 7), "substring(s, 3, 7)"),
    "upper": ("upper", (), "upper(s)"),
}
ARROW: dict[str, Callable[[pa.Array], pa.Array]] = {
    "equal": lambda a: pc.equal(a, "the"),
    "less": lambda a: pc.less(a, "furiously final"),
    "like prefix": lambda a: pc.match_like(a, "fur%"),
    "like suffix": lambda a: pc.match_like(a, "%ly"),
    "like one word": lambda a: pc.match_like(a, "%requests%"),
    "like two words": lambda a: pc.match_like(a, "%special%requests%"),
    "ilike one word": lambda a: pc.match_like(a, "%ReQuests%", ignore_case=True),
    "length": pc.utf8_length,
    "substring": lambda a: pc.utf8_slice_codeunits(a, 2, 9),
    "upper": pc.utf8_upper,
}
POLARS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "equal": lambda e: e == "the",
    "less": lambda e: e < "furiously final",
    "like prefix": lambda e: e.str.starts_with("fur"),
    "like suffix": lambda e: e.str.ends_with("ly"),
    "like one word": lambda e: e.str.contains("requests", literal=True),
    "like two words": lambda e: e.str.contains("special.*requests"),
    "ilike one word": lambda e: e.str.contains("(?i)requests"),
    "length": lambda e: e.str.len_chars(),
    "substring": lambda e: e.str.slice(2, 7),
    "upper": lambda e: e.str.to_uppercase(),
}


def texts(options: argparse.Namespace) -> pa.Array:
    """The column that all engines read."""
    if options.data is not None:
        column = pq.read_table(options.data / "orders.parquet", columns=["o_comment"]).column(0)
        return column.combine_chunks().cast(pa.string()).slice(0, options.rows)
    random = np.random.default_rng(1)
    words = random.choice(WORDS, (options.rows, 7))
    return pa.array([" ".join(row[: 2 + index % 6]) for index, row in enumerate(words.tolist())])


def program(function: str, constants: tuple[object, ...]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Ours: one compiled program."""
    literals = [Literal(each, t.STRING if isinstance(each, str) else t.INT64) for each in constants]
    call = functions.scalar(function, [Column(0, t.STRING), *literals])
    schema = Schema((t.Field("s", t.STRING),))
    made = NativeKernels().program(schema, predicate=None, exprs=[call], names=["x"])
    assert not made.fallbacks, made.fallbacks
    return made.run


def duckdb_work(connection: duckdb.DuckDBPyConnection, name: str, sql: str) -> Callable[[], object]:
    fold = {"length": "sum({})", "substring": "max({})", "upper": "max({})"}.get(name, "count(*) filter ({})")
    return lambda: connection.execute(f"select {fold.format(sql)} from texts").fetchall()


def cases(options: argparse.Namespace) -> Iterator[Case]:
    pa.set_cpu_count(1)
    column = texts(options)
    rows = len(column)
    batches = [
        pa.RecordBatch.from_arrays([column.slice(start, BATCH_ROWS_MAX)], ["s"])
        for start in range(0, rows, BATCH_ROWS_MAX)
    ]
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", pa.table({"s": column}))
    connection.execute("create table texts as select * from source")
    frame = pl.DataFrame({"s": pl.from_arrow(column)})
    for name, (function, constants, sql) in OURS.items():
        run = program(function, constants)
        works = {
            "bireme": lambda run=run: [run(batch) and None for batch in batches],
            "duckdb": duckdb_work(connection, name, sql),
            "polars": lambda polars=POLARS[name]: frame.select(polars(pl.col("s"))),
            "pyarrow": lambda arrow=ARROW[name]: [arrow(batch.column(0)) for batch in batches],
        }
        written = sum(run(batch).nbytes for batch in batches)
        yield Case(name=name, rows=rows, floor_bytes=column.nbytes + written, works=works)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=500_000)
    run_family("strings", cases, parser)
