"""What the query suites here share: their options, their texts, and a run with its table and JSON lines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from bireme.cli.harness.measure import measure
from bireme.cli.harness.report import print_table, write_json
from bireme.cli.harness.workload import Setup, Workload, parse_engines
from bireme.cli.tpch.data import cache_folder

QUERIES = Path(__file__).resolve().parents[1] / "queries"


def suite_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every suite."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=cache_folder(), help="folder that keeps the generated data")
    parser.add_argument("--queries", default="", help="names, separated by commas; all without it")
    parser.add_argument("--engines", default="bireme,duckdb,polars")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--hot", action="store_true", help="engines load the tables before queries are timed")
    parser.add_argument("--fresh", action="store_true", help="a process for each run: for answers of many gigabytes")
    parser.add_argument("--memory-limit", default=None)
    parser.add_argument("--json", type=Path, default=None, help="also write JSON lines to this file")
    return parser


def suite_texts(suite: str, wanted: str) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The texts of a suite, `NAME.sql`, and those for one engine only, `NAME.ENGINE.sql`."""
    texts, dialects = {}, {}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for path in sorted((QUERIES / suite).glob("*.sql")):
        name, _, engine = path.stem.partition(".")
        if names and name not in names:
            continue
        if engine:
            dialects[name, engine] = path.read_text()
        else:
            texts[name] = path.read_text()
    if not texts:
        raise SystemExit(f"{suite} has no query called {wanted}")
    return texts, dialects


def run_suite(suite: str, title: str, tables: Mapping[str, Path], options: argparse.Namespace, **context: Any) -> int:
    """Runs the chosen queries of a suite; the exit code is 1 where the first engine failed or was wrong."""
    queries, dialects = suite_texts(suite, options.queries)
    setup = Setup(
        engines=parse_engines(options.engines),
        threads=options.threads,
        memory_limit=options.memory_limit,
        runs=options.runs,
        hot=options.hot,
        fresh=options.fresh,
    )
    reports = measure(Workload(suite, tables, queries, dialects), setup)
    labels = [engine.label for engine in setup.engines]
    print_table(Console(), title, labels, reports)
    if options.json is not None:
        write_json(
            options.json,
            reports.values(),
            suite=suite,
            threads=setup.threads,
            memory_limit=setup.memory_limit,
            hot=setup.hot,
            fresh=setup.fresh,
            **context,
        )
    return int(any(report.failed for (_, label), report in reports.items() if label == labels[0]))
