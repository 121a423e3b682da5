"""Over TPC-H, no more rows leave our joins than DuckDB's, by more than a tenth."""

from __future__ import annotations

import duckdb
from support.join_rows import duckdb_join_rows, joins_of
from support.planning import catalog_of, context_over, parquet_tables
from support.tpc_data import query_texts, tables, tpch_folder

from bireme.frontend.sql import bind_sql
from bireme.plan.optimize import optimize
from bireme.plan.statistics import StatisticsCache

_SLACK = 1.1


def total_rows(scale: str) -> tuple[int, int]:
    folder = tpch_folder(scale)
    sources = parquet_tables(folder)
    known, cache = catalog_of(sources), StatisticsCache()
    ours = theirs = 0
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        for name, path in tables(folder).items():
            connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
        for text in query_texts("tpch").values():
            context = context_over(sources, cache)
            plan = optimize(bind_sql(text, known), context)
            ours += sum(join.rows for join in joins_of(plan, context, connection))
            theirs += duckdb_join_rows(text, connection)
    return ours, theirs


def test_join_orders_over_tpch_are_as_good_as_those_of_duckdb():
    ours, theirs = total_rows("0.1")
    assert theirs > 400_000, "DuckDB's profile no longer has the names that are looked for"
    assert ours <= _SLACK * theirs
