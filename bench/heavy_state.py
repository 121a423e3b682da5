"""Queries whose state is far larger than the memory limit: a sort, groups, a join, distinct texts, a window.

    python bench/heavy_state.py [--scale 10] [--memory-limit 512MB] [--threads 2] [--cases groups,join]
                                [--engines bireme,duckdb] [--runs 3] [--data FOLDER] [--scratch FOLDER] [--json FILE]

The texts are in `queries/heavy_state`; all are over TPC-H's lineitem. Every run is in a process of its own, engines
take turns, and both spill into the scratch folder. Answers are compared with DuckDB's under the same limit, or, where
it failed, under `--oracle-limit`. The sort goes to a Parquet file: DuckDB counts and hashes its rows against the
table's, and their order is looked at batch by batch. Peaks are of the resident set of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from suite import QUERIES

from bireme.cli.harness.answers import difference, order_columns
from bireme.cli.harness.engine_process import read_answer
from bireme.cli.harness.report import QueryReport, print_table, write_json
from bireme.cli.tpch.data import cache_folder, tpch_folder
from bireme.units import format_bytes

CASES: Final = ("sort", "groups", "join", "distinct", "row_number")
TO_FILE: Final = ("sort",)
ONE_RUN: Final = Path(__file__).resolve().parent / "one_run.py"
_SORT_KEYS: Final = ("l_extendedprice", "l_comment")


class Bench:
    """All runs of one command."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self._options = options
        self._scratch = scratch
        self._lineitem = tpch_folder(options.scale, options.data) / "lineitem.parquet"
        self._found: dict[str, list[tuple[QueryReport, pa.Table]]] = {}

    def run(self, case: str, report: QueryReport) -> None:
        """Runs a case once more."""
        if report.error is not None:
            return
        ran, answer = self._process(case, report.engine, self._options.memory_limit)
        report.error = ran["error"]
        report.peak_bytes = max(report.peak_bytes, ran["peak_bytes"])
        processors, peak = ran["processor_seconds"], format_bytes(ran["peak_bytes"])
        how = ran["error"] or f"{ran['seconds']:.2f} s, processors {processors:.2f} s, peak {peak}"
        print(f"{case} on {report.engine}: {how}", flush=True)
        if report.error is not None:
            return
        report.seconds.append(ran["seconds"])
        report.rows = ran["rows"]
        if case in TO_FILE:
            _judge(report, sorted_differs(answer, self._lineitem))
            answer.unlink()
        else:
            self._found.setdefault(case, []).append((report, read_answer(answer)))

    def check(self) -> None:
        """Compares the answers of all runs with DuckDB's."""
        for case, found in self._found.items():
            right = next((table for report, table in found if report.engine == "duckdb"), None)
            if right is None:
                right = self._right(case)
            for report, table in found:
                if right is not None and report.error is None:
                    _judge(report, difference(table, right, order_columns(text_of(case))))

    def _right(self, case: str) -> pa.Table | None:
        for limit in dict.fromkeys((self._options.memory_limit, self._options.oracle_limit)):
            ran, answer = self._process(case, "duckdb", limit)
            if ran["error"] is None:
                return read_answer(answer)
        print(f"{case} is not checked; raise --oracle-limit: {ran['error']}", file=sys.stderr)
        return None

    def _process(self, case: str, engine: str, limit: str) -> tuple[dict[str, Any], Path]:
        answer = self._scratch / f"answer.{'parquet' if case in TO_FILE else 'arrow'}"
        answer.unlink(missing_ok=True)  # what was read of it stays
        request = {
            "engine": engine, "sql": text_of(case), "lineitem": str(self._lineitem), "limit": limit,
            "threads": self._options.threads, "to": str(answer) if case in TO_FILE else "", "answer": str(answer),
            "scratch": str(self._scratch / engine),
        }  # fmt: skip
        command = [sys.executable, str(ONE_RUN), json.dumps(request)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"the process ended with {done.returncode}"]
            return {"seconds": 0.0, "processor_seconds": 0.0, "rows": 0, "peak_bytes": 0, "error": last[0]}, answer
        ran: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return ran, answer


def _judge(report: QueryReport, differs: str | None) -> None:
    report.checked = differs is None and report.checked is not False
    if differs is not None:
        report.error = f"wrong answer: {differs}"


def text_of(case: str) -> str:
    """The query of a case."""
    text: str = (QUERIES / "heavy_state" / f"{case}.sql").read_text()
    return text.strip()


def sorted_differs(file: Path, lineitem: Path) -> str | None:
    """What is wrong with the sorted copy of a table; None for nothing."""
    before: tuple[Any, ...] | None = None
    for number, batch in enumerate(pq.ParquetFile(file).iter_batches(columns=list(_SORT_KEYS))):
        keys = [np.asarray(batch.column(0).cast(pa.float64())), batch.column(1).to_numpy(zero_copy_only=False)]
        rises = keys[0][1:] > keys[0][:-1]
        keeps = (keys[0][1:] == keys[0][:-1]) & (keys[1][1:] >= keys[1][:-1])
        first = (keys[0][0], keys[1][0])
        if not (rises | keeps).all() or (before is not None and first < before):
            return f"batch {number} of the sorted file is out of order"
        before = (keys[0][-1], keys[1][-1])
    sums = "select count(*), sum(hash(columns(*))::hugeint) from read_parquet('{}')"
    with duckdb.connect(config={"threads": 1, "memory_limit": "1GB"}) as connection:
        counts = [connection.sql(sums.format(path)).fetchall() for path in (file, lineitem)]
    return None if counts[0] == counts[1] else "the sorted file has other rows than the table"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--memory-limit", default="512MB")
    parser.add_argument("--oracle-limit", default="4GB")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--engines", default="bireme,duckdb")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--data", type=Path, default=cache_folder())
    parser.add_argument("--scratch", type=Path, default=None, help="folder of spills and sorted files")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    engines, cases = options.engines.split(","), options.cases.split(",")
    reports = {(case, engine): QueryReport(case, engine) for case in cases for engine in engines}
    with tempfile.TemporaryDirectory(prefix="bireme-heavy-", dir=options.scratch) as scratch:
        bench = Bench(options, Path(scratch))
        for run in range(options.runs):
            for place, case in enumerate(cases):
                turn = (run + place) % len(engines)
                for engine in engines[turn:] + engines[:turn]:
                    bench.run(case, reports[case, engine])
        bench.check()
    title = f"heavy state, scale {options.scale:g}, {options.memory_limit}, {options.threads} threads"
    print_table(Console(), title, engines, reports)
    if options.json is not None:
        context = {"suite": "heavy_state", "scale": options.scale, "threads": options.threads}
        write_json(options.json, reports.values(), memory_limit=options.memory_limit, **context)
    return int(any(report.failed for (_, engine), report in reports.items() if engine == engines[0]))


if __name__ == "__main__":
    sys.exit(main())
