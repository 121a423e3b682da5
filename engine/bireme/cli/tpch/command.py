"""`bireme tpch`: runs the 22 queries, checks every answer, says how long they took."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from bireme.cli.harness.measure import measure
from bireme.cli.harness.report import Reports, print_table, write_json
from bireme.cli.harness.workload import Setup, Workload, parse_engines
from bireme.cli.tpch.data import TABLES, tpch_folder
from bireme.cli.tpch.selection import parse_queries, query_text
from bireme.cli.tpch.shuffle import shuffled_folder
from bireme.errors import ConfigError, SinkFailed


def run(arguments: argparse.Namespace) -> int:
    """Runs the harness; the exit code is 1 where a query failed or an answer was wrong."""
    setup = _setup(arguments)
    workload = _workload(arguments)
    reports = measure(workload, setup)
    labels = [engine.label for engine in setup.engines]
    print_table(Console(), _title(arguments), labels, reports)
    if arguments.json is not None:
        _write(arguments.json, reports, arguments, setup)
    return int(any(report.failed for (_, label), report in reports.items() if label == labels[0]))


def _setup(arguments: argparse.Namespace) -> Setup:
    if arguments.scale <= 0:
        raise ConfigError(f"the scale must be positive, not {arguments.scale}")
    if arguments.runs < 1 or (arguments.threads is not None and arguments.threads < 1):
        raise ConfigError("--runs and --threads must be at least 1")
    return Setup(
        engines=parse_engines(arguments.engines),
        threads=arguments.threads or len(os.sched_getaffinity(0)),
        memory_limit=arguments.memory_limit,
        runs=arguments.runs,
        hot=arguments.hot,
        cache=arguments.cache,
    )


def _workload(arguments: argparse.Namespace) -> Workload:
    queries = {f"Q{number}": query_text(number) for number in parse_queries(arguments.queries)}
    folder = tpch_folder(arguments.scale, arguments.data)
    if arguments.shuffled:
        folder = shuffled_folder(folder)
    return Workload("tpch", {table: folder / f"{table}.parquet" for table in TABLES}, queries, {})


def _title(arguments: argparse.Namespace) -> str:
    return f"TPC-H at scale {arguments.scale:g}{', rows in random order' if arguments.shuffled else ''}" + (
        ", tables in memory" if arguments.hot else ", bireme with its cache" if arguments.cache else ""
    )


def _write(path: Path, reports: Reports, arguments: argparse.Namespace, setup: Setup) -> None:
    try:
        write_json(
            path,
            reports.values(),
            suite="tpch",
            scale=arguments.scale,
            threads=setup.threads,
            memory_limit=setup.memory_limit,
            shuffled=arguments.shuffled,
            hot=setup.hot,
            cache=setup.cache,
        )
    except OSError as error:
        raise SinkFailed(f"cannot write {path}: {error.strerror}") from error
