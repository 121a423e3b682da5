"""Joins by inequalities: our seconds beside DuckDB's, on the same tables in memory.

    python bench/range_joins.py [--threads 2] [--runs 3] [--only overlap]

Prints a line a query: rows of the answer, the best of some runs of each engine, and how many times DuckDB's ours is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import bireme as bm

OVERLAP = "a.s < b.e and b.s < a.e"
QUERIES = {
    "overlap 30 k x 30 k": ("a30k", "b30k", "select count(*), sum(a.id + b.id) from a join b on " + OVERLAP),
    "overlap, one in a thousand": ("a30k", "wide", "select count(*), sum(a.id + b.id) from a join b on " + OVERLAP),
    "overlap left": ("a30k", "b30k", f"select count(*), sum(b.id) from a left join b on {OVERLAP}"),
    "overlap full": ("a30k", "b30k", f"select count(*), sum(b.id), sum(a.id) from a full join b on {OVERLAP}"),
    "exists overlap": ("a30k", "b30k", f"select count(*) from a where exists (select 1 from b where {OVERLAP})"),
    "points 1 M in intervals 10 k": (
        "points", "intervals", "select count(*), sum(b.id) from a join b on a.x between b.s and b.e",
    ),
    "10 M x 1 k": ("many", "few", "select count(*), sum(b.id) from a join b on a.x >= b.s and a.x < b.e"),
    "one inequality 20 k x 20 k": ("a20k", "b20k", "select count(*), sum(a.id) from a join b on a.s < b.s"),
    "equality of 5 values": ("a30k", "b30k", f"select count(*), sum(a.id) from a join b on a.k = b.k and {OVERLAP}"),
    "residual beside": ("a30k", "b30k", f"select count(*), sum(a.id) from a join b on {OVERLAP} and a.k <> b.k"),
    "positional 1 M": ("points", "points", "select count(*), sum(a.id - b.id) from a positional join b"),
}  # fmt: skip


def intervals(seed: int, rows: int, domain: int, reach: int) -> pa.Table:
    """Intervals [s, e) and points x in a domain, with a key of five values."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, domain, rows)
    columns = {"s": starts, "e": starts + 1 + rng.integers(0, reach, rows), "x": rng.integers(0, domain, rows)}
    return pa.table({"id": np.arange(rows), "k": rng.integers(0, 5, rows), **columns})


def made() -> dict[str, pa.Table]:
    return {
        "a30k": intervals(1, 30_000, 1_000_000, 100),
        "b30k": intervals(2, 30_000, 1_000_000, 100),
        "a20k": intervals(3, 20_000, 1_000_000, 100),
        "b20k": intervals(4, 20_000, 1_000_000, 100),
        "wide": intervals(5, 30_000, 1_000_000, 2_000),
        "points": intervals(6, 1_000_000, 10_000_000, 100),
        "intervals": intervals(7, 10_000, 10_000_000, 1_000),
        "many": intervals(8, 10_000_000, 10_000_000, 100),
        "few": intervals(9, 1_000, 10_000_000, 1_000),
    }


def best(runs: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of some runs, and what the last one gave."""
    seconds, answer = [], None
    for _ in range(runs):
        begun = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), answer


def compare(name: str, query: str, session: bm.Session, connection: duckdb.DuckDBPyConnection, runs: int) -> bool:
    """Prints a line; says whether both engines gave the same."""
    ours, found = best(runs, lambda: [*zip(*session.sql(query).collect().to_pydict().values(), strict=True)])
    theirs, expected = best(runs, lambda: connection.execute(query).fetchall())
    verdict = "" if found == expected else f"  WRONG: {found} instead of {expected}"
    print(f"{name:32}{found[0][0]:>14,}{ours:9.3f} s{theirs:9.3f} s{ours / theirs:8.1f} x{verdict}", flush=True)
    return found == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="queries whose names hold this")
    options = parser.parse_args()
    tables = made()
    with bm.connect(threads=options.threads) as session, duckdb.connect(config={"threads": options.threads}) as duck:
        print(f"{'query':32}{'rows':>14}{'bireme':>11}{'DuckDB':>11}{'ratio':>10}")
        are_equal = True
        for name, (left, right, query) in QUERIES.items():
            if options.only not in name:
                continue
            for alias, table in (("a", tables[left]), ("b", tables[right])):
                session.register(alias, table)
                duck.register("given", table)
                duck.execute(f"create or replace table {alias} as from given")
            are_equal &= compare(name, query, session, duck, options.runs)
    return int(not are_equal)


if __name__ == "__main__":
    sys.exit(main())
