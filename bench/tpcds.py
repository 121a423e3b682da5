"""The 99 TPC-DS queries from Parquet files, as the generator of the benchmark numbers them.

    python bench/tpcds.py [--scale 1] [--queries q14,q67] [--engines bireme,duckdb,polars] [--runs 5]

The texts are in `queries/tpcds`. The data is tpcgen-cli's, one file a table. Every answer is compared with DuckDB's;
what an engine cannot answer is said below the table and left out.
"""

from __future__ import annotations

import sys
from typing import Final

from suite import run_suite, suite_parser

from bireme.cli.tpch.data import generated_folder

TABLES: Final = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address"),
    *("customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion"),
    *("reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page"),
    *("web_returns", "web_sales", "web_site"),
)


def main() -> int:
    parser = suite_parser(__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    command = ["tpcgen-cli", "tpcds", "parquet", "--scale-factor", f"{options.scale:g}"]
    folder = generated_folder(options.data / f"tpcds-sf{options.scale:g}", TABLES, command)
    files = {table: folder / f"{table}.parquet" for table in TABLES}
    return run_suite("tpcds", f"TPC-DS at scale {options.scale:g}", files, options, scale=options.scale)


if __name__ == "__main__":
    sys.exit(main())
