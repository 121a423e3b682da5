"""`bireme tpch`: runs the 22 queries, checks every answer, says how long they took.

Engines take turns query by query (interleaved), each in a process of its own, on the same files with the same number
of threads; which engine goes first rotates. Answers are checked against DuckDB, which runs unmeasured when it is not
among the engines.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from bireme.cli.tpch.answers import difference, order_columns
from bireme.cli.tpch.data import tpch_folder
from bireme.cli.tpch.engine_process import EngineProcess
from bireme.cli.tpch.report import QueryReport, print_table, write_json
from bireme.cli.tpch.selection import parse_engines, parse_queries, query_text
from bireme.errors import ConfigError, SinkFailed

ORACLE = "duckdb"


@dataclass(frozen=True, slots=True)
class _Plan:
    folder: Path
    queries: list[int]
    engines: list[str]
    threads: int
    memory_limit: str | None
    runs: int


def run(arguments: argparse.Namespace) -> int:
    """Runs the harness; the exit code is 1 where a query failed or an answer was wrong."""
    plan = _plan(arguments)
    console = Console()
    with tempfile.TemporaryDirectory(prefix="bireme-tpch-") as scratch:
        reports = _measure(plan, Path(scratch))
    print_table(console, plan.engines, reports)
    if arguments.json is not None:
        context = {"scale": arguments.scale, "threads": plan.threads, "memory_limit": plan.memory_limit}
        try:
            write_json(arguments.json, reports.values(), **context)
        except OSError as error:
            raise SinkFailed(f"cannot write {arguments.json}: {error.strerror}") from error
    return int(any(report.failed for (_, engine), report in reports.items() if engine == plan.engines[0]))


def _plan(arguments: argparse.Namespace) -> _Plan:
    if arguments.scale <= 0:
        raise ConfigError(f"the scale must be positive, not {arguments.scale}")
    if arguments.runs < 1 or (arguments.threads is not None and arguments.threads < 1):
        raise ConfigError("--runs and --threads must be at least 1")
    queries, engines = parse_queries(arguments.queries), parse_engines(arguments.engines)
    threads = arguments.threads or len(os.sched_getaffinity(0))
    folder = tpch_folder(arguments.scale, arguments.data)
    return _Plan(folder, queries, engines, threads, arguments.memory_limit, arguments.runs)


def _measure(plan: _Plan, scratch: Path) -> dict[tuple[int, str], QueryReport]:
    reports: dict[tuple[int, str], QueryReport] = {}
    with _processes(plan) as processes:
        for run_number in range(plan.runs):
            for count, query in enumerate(plan.queries):
                _progress(run_number * len(plan.queries) + count + 1, plan.runs * len(plan.queries), query)
                turn = (run_number + count) % len(plan.engines)
                for engine in plan.engines[turn:] + plan.engines[:turn]:
                    report = reports.setdefault((query, engine), QueryReport(query, engine))
                    _run_one(
                        processes[engine], report, _result_file(scratch, query, engine) if run_number == 0 else None
                    )
                if run_number == 0:
                    _check(query, plan.engines, reports, processes.get(ORACLE), scratch)
    _progress(0, 0, 0)
    return {(query, engine): reports[query, engine] for query in plan.queries for engine in plan.engines}


@contextmanager
def _processes(plan: _Plan) -> Iterator[dict[str, EngineProcess]]:
    """A process for each engine, and one for the oracle."""
    processes: dict[str, EngineProcess] = {}
    try:
        for engine in plan.engines:
            processes[engine] = EngineProcess(engine, plan.folder, plan.threads, plan.memory_limit)
        if ORACLE not in processes:
            try:
                processes[ORACLE] = EngineProcess(ORACLE, plan.folder, plan.threads, None)
            except ConfigError as error:
                print(f"answers are not checked: {error}", file=sys.stderr)
        yield processes
    finally:
        for process in processes.values():
            process.close()


def _run_one(process: EngineProcess, report: QueryReport, result: Path | None) -> None:
    if report.error is not None:
        return
    ran = process.run(query_text(report.query), result)
    report.error = ran.error
    report.peak_bytes = max(report.peak_bytes, ran.peak_bytes)
    if ran.error is None:
        report.seconds.append(ran.seconds)
        report.rows = ran.rows


def _check(
    query: int,
    engines: Sequence[str],
    reports: dict[tuple[int, str], QueryReport],
    oracle: EngineProcess | None,
    scratch: Path,
) -> None:
    if oracle is None:
        return
    sql = query_text(query)
    right = _result_file(scratch, query, ORACLE)
    if ORACLE not in engines:
        ran = oracle.run(sql, right)
        if ran.error is not None:
            print(f"\nQ{query} is not checked: {ran.error}", file=sys.stderr)
            return
    for engine in engines:
        report = reports[query, engine]
        if report.error is None:
            differs = difference(_read(_result_file(scratch, query, engine)), _read(right), order_columns(sql))
            report.checked = differs is None
            if differs is not None:
                report.error = f"wrong answer: {differs}"


def _result_file(scratch: Path, query: int, engine: str) -> Path:
    return scratch / f"q{query}-{engine}.arrow"


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _progress(done: int, total: int, query: int) -> None:
    if not sys.stderr.isatty():
        return
    line = f"\r{done}/{total}  Q{query} …" if total else "\r"
    print(f"{line:<30}", end="\r", file=sys.stderr, flush=True)
