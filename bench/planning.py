"""Milliseconds to plan each TPC-H query: parse and bind, rules, lowering; beside sqlglot's own parsing as a yardstick.

    python bench/planning.py DATA_FOLDER [--runs 9] [--fresh]

The folder holds one Parquet file a table. Statistics and samples are read before the clock runs, as for the second
query of a session; plans kept from earlier runs are not used, and with `--fresh` nor are nodes (`data.node`). Time is
processor time of the one thread that plans; the least of the runs counts; the last line is the median over the queries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import sqlglot

from bireme.backends.native import NativeKernels
from bireme.cli.tpch.data import TABLES
from bireme.cli.tpch.selection import QUERY_COUNT, query_text
from bireme.collector import collector_at_rest
from bireme.config import config_from
from bireme.data.node import drop_unused
from bireme.errors import Unsupported
from bireme.frontend.catalog import Catalog, Table
from bireme.frontend.sql import bind_sql
from bireme.plan.lower import lower
from bireme.plan.optimize import optimize
from bireme.plan.relation import Rel
from bireme.plan.rules.share import shared
from bireme.session.planning import Planner
from bireme.session.tables import SessionTables

STEPS = ("bind", "rules", "lower", "all", "sqlglot")


class Registered:
    """The tables of a session, as the binder asks for them."""

    def __init__(self, tables: SessionTables) -> None:
        self._tables = tables

    def find(self, name: str) -> Table | None:
        found = self._tables.find(name)
        return None if found is None else found[0]

    def names(self) -> Iterable[str]:
        return self._tables.names()

    def values(self, plan: Rel) -> Sequence[object]:
        raise Unsupported("nothing runs while planning is measured")


def stages(planner: Planner, tables: Catalog, sql: str) -> tuple[float, ...]:
    """Seconds of one planning run, by step, and of sqlglot's parsing alone."""
    times = [time.thread_time()]

    def mark() -> None:
        times.append(time.thread_time())

    plan: Rel = bind_sql(sql, tables)
    mark()
    context = planner.context()
    optimized = optimize(plan, context)
    mark()
    lower(optimized, estimates=context.estimates, shared=shared(optimized), partitions_max=4)
    mark()
    sqlglot.parse_one(sql, read="duckdb")
    mark()
    bind, rules, lowering, parsing = [end - start for start, end in pairwise(times)]
    return bind, rules, lowering, bind + rules + lowering, parsing


def least(run: Callable[[], tuple[float, ...]], runs: int, *, fresh: bool) -> tuple[float, ...]:
    """The least of each step, after one run that is not counted."""
    times = []
    for _ in range(runs + 1):
        if fresh:
            drop_unused()
        times.append(run())
    return tuple(map(min, zip(*times[1:], strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--fresh", action="store_true")
    arguments = parser.parse_args()
    tables = SessionTables()
    for table in TABLES:
        tables.register(table, arguments.folder / f"{table}.parquet")
    planner = Planner(tables, NativeKernels(), config_from(threads=2, environment={}))
    known, rows = Registered(tables), []
    print(f"{'ms':4}", *[f"{step:>8}" for step in STEPS])
    for query in range(1, QUERY_COUNT + 1):
        sql = query_text(query)
        with collector_at_rest():  # as in a session
            rows.append(least(lambda sql=sql: stages(planner, known, sql), arguments.runs, fresh=arguments.fresh))
        print(f"q{query:<3}", *[f"{seconds * 1e3:8.2f}" for seconds in rows[-1]])
    print("mid ", *[f"{median(column) * 1e3:8.2f}" for column in zip(*rows, strict=True)])


if __name__ == "__main__":
    main()
