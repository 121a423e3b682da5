"""Rows leaving joins over the TPC-H queries: our order beside DuckDB's, on the same files.

    python bench/join_rows.py DATA_FOLDER [--queries 2,5,9] [--joins]

The folder holds one Parquet file a table. Prints a line a query and the totals; with `--joins` every join of ours with
its estimate, which is where to look when a query does badly.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests")]

from support.join_rows import duckdb_join_rows, joins_of  # noqa: E402
from support.planning import catalog_of, context_over, parquet_tables  # noqa: E402
from support.tpc_data import query_texts, tables  # noqa: E402

from bireme.frontend.sql import bind_sql  # noqa: E402
from bireme.plan.optimize import optimize  # noqa: E402
from bireme.plan.statistics import StatisticsCache  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", default="", help="numbers, separated by commas; all without it")
    parser.add_argument("--joins", action="store_true", help="show every join with its estimate")
    options = parser.parse_args()
    wanted = {f"q{int(number):02}" for number in options.queries.split(",") if number}
    texts = {name: text for name, text in query_texts("tpch").items() if not wanted or name in wanted}
    compare(options.folder, texts, show_joins=options.joins)


def compare(folder: Path, texts: dict[str, str], *, show_joins: bool) -> None:
    """Prints the comparison for the given queries."""
    sources = parquet_tables(folder)
    known, cache = catalog_of(sources), StatisticsCache()
    ours_total = theirs_total = 0
    with duckdb.connect() as connection:
        for name, path in tables(folder).items():
            connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
        print(f"{'query':8}{'ours':>12}{'DuckDB':>12}")
        for query, text in texts.items():
            context = context_over(sources, cache)
            joins = joins_of(optimize(bind_sql(text, known), context), context, connection)
            ours, theirs = sum(join.rows for join in joins), duckdb_join_rows(text, connection)
            ours_total, theirs_total = ours_total + ours, theirs_total + theirs
            print(f"{query:8}{ours:12,}{theirs:12,}", flush=True)
            if show_joins:
                for join in joins:
                    print(f"    {join.kind:6}{join.rows:12,}  expected {join.expected:14,.0f}  {' '.join(join.tables)}")
        print(f"{'all':8}{ours_total:12,}{theirs_total:12,}")


if __name__ == "__main__":
    main()
