"""Small queries: the 22 TPC-H queries on little data in a warm process, and one query in a process of its own.

    python bench/small.py DATA_FOLDER [--runs 9] [--engines bireme,duckdb,polars] [--threads 2] [--json FILE]

The folder holds one Parquet file a table (scale 0.01 is meant). Three figures, each a median of the runs, engines
taking turns:

- repeated: a query as a session meets it again, from text to Arrow table, in a process per engine;
- planned anew: the same for bireme with what it keeps of texts and plans forgotten before each query;
- process: seconds, and seconds of processors, from starting a process to the end of it, for one query over one file.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import bireme
from bireme.cli.harness.measure import measure
from bireme.cli.harness.report import QueryReport, write_json
from bireme.cli.harness.workload import Setup, Workload, parse_engines
from bireme.cli.tpch.data import TABLES
from bireme.cli.tpch.selection import QUERY_COUNT, query_text

QUERY = "select n_regionkey, count(*) as nations from {table} where n_name like '%A%' group by n_regionkey order by 1"
DUCKDB = """import duckdb
print(duckdb.sql({query!r}.format(table="read_parquet({file!r})")).fetchall())"""
POLARS = """import polars
print(polars.SQLContext(nation=polars.scan_parquet({file!r})).execute({query!r}.format(table="nation")).collect())"""


def repeated(folder: Path, engines: str, threads: int, runs: int) -> dict[str, dict[str, float]]:
    """Milliseconds by engine and query; answers are checked."""
    tables = {table: folder / f"{table}.parquet" for table in TABLES}
    queries = {f"Q{number}": query_text(number) for number in range(1, QUERY_COUNT + 1)}
    setup = Setup(engines=parse_engines(engines), threads=threads, runs=runs + 1)
    found: dict[str, dict[str, float]] = {}
    for (query, engine), report in measure(Workload("tpch", tables, queries, {}), setup).items():
        if report.error is not None:
            raise SystemExit(f"{engine}, {query}: {report.error}")
        found.setdefault(engine, {})[query] = 1e3 * median(report.seconds[1:])
    return found


def planned_anew(folder: Path, threads: int, runs: int) -> dict[str, float]:
    """Milliseconds by query."""
    taken: dict[str, list[float]] = {}
    with bireme.connect(threads=threads) as session:
        for table in TABLES:
            session.register(table, folder / f"{table}.parquet")
        for run in range(runs + 1):
            for number in range(1, QUERY_COUNT + 1):
                sql = query_text(number)
                session._statements.forget()
                session._planner.forget()
                start = time.perf_counter()
                session.sql(sql).collect()
                if run:
                    taken.setdefault(f"Q{number}", []).append(1e3 * (time.perf_counter() - start))
    return {query: median(times) for query, times in taken.items()}


def commands(file: Path, engines: list[str]) -> dict[str, list[str]]:
    """What is run for the query on `file`, by engine."""
    query = QUERY.format(table="nation")
    known = {
        "bireme": [sys.executable, "-m", "bireme.cli.main", "sql", "-t", f"nation={file}", query],
        "duckdb": [sys.executable, "-c", DUCKDB.format(query=QUERY, file=str(file))],
        "polars": [sys.executable, "-c", POLARS.format(query=QUERY, file=str(file))],
    }
    return {engine: known[engine] for engine in engines if engine in known}


def processes(file: Path, engines: list[str], runs: int) -> dict[str, tuple[float, float]]:
    """Milliseconds on the clock and of processors, by engine, and of Python alone."""
    programs = {"python": [sys.executable, "-c", "pass"], **commands(file, engines)}
    # Compiled modules are kept between runs, as they are wherever a package is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for run in range(runs + 1):
        for name, command in programs.items():
            times = _times(command, environment)
            if run:
                taken[name].append(times)
    return {name: (median(c for c, _ in each), median(p for _, p in each)) for name, each in taken.items()}


def _times(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of one process on the clock, and of the processors that worked for it."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * clock, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _reports(warm: dict[str, dict[str, float]], started: dict[str, tuple[float, float]]) -> Iterator[QueryReport]:
    """The medians as the records of all measurements; that of Python alone is no engine's."""
    for engine, times in warm.items():
        label = engine.replace(", ", ":")
        yield from (QueryReport(query, label, [milliseconds / 1e3]) for query, milliseconds in times.items())
    for engine, (clock, _) in started.items():
        if engine != "python":
            yield QueryReport("a fresh process", engine, [clock / 1e3])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--engines", default="bireme,duckdb,polars")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    warm = repeated(arguments.folder, arguments.engines, arguments.threads, arguments.runs)
    if "bireme" in engines:
        warm["bireme, planned anew"] = planned_anew(arguments.folder, arguments.threads, arguments.runs)
    for engine, times in warm.items():
        worst = max(times, key=lambda query: times[query])
        print(f"{engine:24} median {median(times.values()):7.2f} ms a query, worst {times[worst]:7.2f} ms ({worst})")
    started = processes(arguments.folder / "nation.parquet", engines, arguments.runs)
    for engine, (clock, processor) in started.items():
        print(f"{engine:24} process {clock:7.1f} ms, of which processors worked {processor:7.1f} ms")
    if arguments.json is not None:
        write_json(arguments.json, _reports(warm, started), suite="small", threads=arguments.threads)


if __name__ == "__main__":
    main()
