"""The options of `bireme tpch`, apart from the command so that other commands start without what it imports."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bireme tpch`."""
    parser.add_argument(
        "--scale", type=float, default=1.0, help="scale factor; 1 is about 1 GB of raw data (default: 1)"
    )
    parser.add_argument("--queries", default="1-22", help="which queries, such as 1,5-9 (default: all)")
    parser.add_argument("--runs", type=int, default=1, help="how often each query runs; medians are shown (default: 1)")
    parser.add_argument("--threads", type=int, default=None, help="threads of each engine (default: all cores)")
    parser.add_argument("--memory-limit", default=None, help="memory limit of each engine, such as 4GiB")
    parser.add_argument(
        "--engines",
        default="bireme",
        help="comma-separated: bireme,duckdb,polars,datafusion; bireme also as bireme:-clustering "
        "with that lever off (default: bireme)",
    )
    parser.add_argument("--shuffled", action="store_true", help="the rows of every table in random order")
    parser.add_argument(
        "--hot", action="store_true", help="engines load the tables into their own memory before queries are timed"
    )
    parser.add_argument(
        "--cache", action="store_true", help="bireme keeps decoded what it reads; others read the files again"
    )
    parser.add_argument("--json", type=Path, default=None, help="also write JSON lines to this file")
    parser.add_argument("--data", type=Path, default=None, help="folder that keeps the generated data")
