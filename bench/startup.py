"""Seconds of a fresh process that answers one small query from a Parquet file: start, imports, query, end.

    python bench/startup.py path/to/nation.parquet [--runs 9] [--json FILE]

Ours is the command line; DuckDB and Polars are a Python process that imports the library and runs the same query. They
take turns; the median counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bireme.cli.harness.report import QueryReport, write_json

QUERY = "select count(*) as total, min(n_name) as least from nation where n_regionkey = 2"


def commands(file: Path) -> dict[str, list[str]]:
    """A process for each engine."""
    over_file = QUERY.replace("from nation", f"from '{file}'")
    duckdb = f"import duckdb; duckdb.sql({over_file!r}).fetchall()"
    polars = f"import polars as p; p.SQLContext(nation=p.scan_parquet({str(file)!r})).execute({QUERY!r}, eager=True)"
    return {
        "bireme": [sys.executable, "-m", "bireme.cli.main", "sql", "-t", f"nation={file}", QUERY],
        "duckdb": [sys.executable, "-c", duckdb],
        "polars": [sys.executable, "-c", polars],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    reports = {engine: QueryReport("one small query", engine) for engine in commands(options.file)}
    for _ in range(options.runs):
        for engine, command in commands(options.file).items():
            start = time.perf_counter()
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            reports[engine].seconds.append(time.perf_counter() - start)
            if ran.returncode != 0:
                reports[engine].error = ran.stderr.strip().splitlines()[-1]
    for engine, report in reports.items():
        print(f"{engine:8} {median(report.seconds) * 1e3:8.1f} ms  {report.error or ''}")
    if options.json is not None:
        write_json(options.json, reports.values(), suite="startup")


if __name__ == "__main__":
    main()
